import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import CorruptObject, Damaged, MissingObject
from cynosure.persistence import parts
from cynosure.persistence.objects import Stored, open_envelope, seal, struct_type
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId, Row

KEY = ObjKey(RealmId("r"), CatalogId("c"), "shape", ObjId(5))
LIMIT_BYTES = 64


class Blob(Stored, frozen=True, kw_only=True):
    data: bytes


BLOB = struct_type("shape", Blob, is_compressed=False)


def row_of(size: int) -> Row:
    return Row(KEY, seal(BLOB, Blob(data=bytes(number % 251 for number in range(size)))), created_us=17)


@given(size=st.integers(0, 2000), limit_bytes=st.integers(32, 512))
def test_split_then_join_is_the_identity(size: int, limit_bytes: int) -> None:
    row = row_of(size)

    *pieces, main = parts.split(row, limit_bytes)

    assert all(len(piece.blob) <= limit_bytes for piece in [*pieces, main])
    assert parts.part_keys(main) == [piece.key for piece in pieces]
    assert (parts.join(main, pieces) if pieces else main) == row


def test_parts_come_before_the_row_that_points_to_them() -> None:
    rows = parts.split(row_of(150), LIMIT_BYTES)

    assert [row.key.type for row in rows] == ["shape#1", "shape#2", "shape#3", "shape"]
    assert {row.key.id for row in rows} == {KEY.id}
    assert {row.created_us for row in rows} == {17}


def test_a_row_that_fits_stays_one_row() -> None:
    row = row_of(10)

    assert parts.split(row, len(row.blob)) == [row]
    assert parts.part_keys(row) == []


def test_golden_index_of_parts() -> None:
    main = parts.split(row_of(150), LIMIT_BYTES)[-1]

    assert main.blob.hex() == "01020000000300000000000000aad003fb5c6aaf20fb"


@given(lost=st.sets(st.integers(0, 2), min_size=1))
def test_a_missing_part_is_named(lost: set[int]) -> None:
    *pieces, main = parts.split(row_of(150), LIMIT_BYTES)
    found = [None if number in lost else piece for number, piece in enumerate(pieces)]

    with pytest.raises(MissingObject) as missing:
        parts.join(main, found)

    assert missing.value.details["parts"] == [number + 1 for number in sorted(lost)]


def test_parts_of_another_object_do_not_fit() -> None:
    *_, main = parts.split(row_of(150), LIMIT_BYTES)
    *others, _ = parts.split(row_of(151), LIMIT_BYTES)

    with pytest.raises(CorruptObject):
        parts.join(main, others)


@given(data=st.data())
def test_every_flipped_bit_in_a_part_is_damage(data: st.DataObject) -> None:
    *pieces, main = parts.split(row_of(150), LIMIT_BYTES)
    at = data.draw(st.integers(0, len(pieces) - 1))
    blob = bytearray(pieces[at].blob)
    bit = data.draw(st.integers(0, 8 * len(blob) - 1))
    blob[bit // 8] ^= 1 << bit % 8
    pieces[at] = pieces[at]._replace(blob=bytes(blob))

    with pytest.raises(CorruptObject):
        parts.join(main, pieces)


def open_as_the_store_does(blob: bytes) -> None:
    """Parts are looked for first; then the envelope is opened."""
    if not parts.part_keys(Row(KEY, blob)):
        open_envelope(KEY, blob)


def test_every_flipped_bit_in_the_index_of_parts_is_damage() -> None:
    index = parts.split(row_of(150), LIMIT_BYTES)[-1].blob

    for bit in range(8 * len(index)):
        blob = bytearray(index)
        blob[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            open_as_the_store_does(bytes(blob))


def test_every_truncated_index_of_parts_is_damage() -> None:
    index = parts.split(row_of(150), LIMIT_BYTES)[-1].blob

    for cut in range(len(index)):
        with pytest.raises(Damaged):
            open_as_the_store_does(index[:cut])
