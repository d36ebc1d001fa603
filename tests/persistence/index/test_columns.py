import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import CorruptObject
from cynosure.persistence.index.columns import Reader, common_prefix, pack, unpack

HEADER = struct.Struct(">BII")


@given(st.binary(max_size=400), st.booleans())
def test_a_section_unpacks_to_what_was_packed(body: bytes, is_dense: bool) -> None:
    reader = Reader(pack(body, is_dense=is_dense))

    assert unpack(reader) == body
    reader.finish()


def test_a_section_is_compressed_only_where_that_helps() -> None:
    repeated, scattered = b"orders_" * 100, bytes(range(256))

    assert len(pack(repeated)) < 100
    assert len(pack(repeated, is_dense=True)) == HEADER.size + len(repeated)
    assert len(pack(scattered)) == HEADER.size + len(scattered)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_section_of_another_size_than_promised_is_corrupt(by: int) -> None:
    packed = pack(b"orders_" * 100)
    kind, body_bytes, stored_bytes = HEADER.unpack_from(packed)
    damaged = HEADER.pack(kind, body_bytes + by, stored_bytes) + packed[HEADER.size :]

    with pytest.raises(CorruptObject, match="another size"):
        unpack(Reader(damaged))


@pytest.mark.parametrize("change", [b"", b"surplus"])
def test_a_compressed_section_must_end_where_it_says(change: bytes) -> None:
    packed = pack(b"orders_" * 100)
    kind, body_bytes, _ = HEADER.unpack_from(packed)
    stored = packed[HEADER.size :] + change if change else packed[HEADER.size : -2]

    with pytest.raises(CorruptObject):
        unpack(Reader(HEADER.pack(kind, body_bytes, len(stored)) + stored))


def test_a_section_cannot_ask_for_more_memory_than_any_node_needs() -> None:
    packed = pack(b"orders_" * 100)
    kind, _, stored_bytes = HEADER.unpack_from(packed)

    with pytest.raises(CorruptObject, match="impossible"):
        unpack(Reader(HEADER.pack(kind, 2**32 - 1, stored_bytes) + packed[HEADER.size :]))


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_the_common_prefix_is_common_and_longest(one: bytes, other: bytes) -> None:
    prefix = common_prefix(one, other)

    assert one.startswith(prefix)
    assert other.startswith(prefix)
    assert one[len(prefix) : len(prefix) + 1] != other[len(prefix) : len(prefix) + 1] or one == other
