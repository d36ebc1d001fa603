import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, CorruptObject, TooLarge
from cynosure.persistence.index.buffer import EMPTY_BUFFER, Buffer, entry_bytes
from cynosure.persistence.index.columns import Reader
from cynosure.persistence.index.limits import MAX_KEY_BYTES, MAX_VALUE_BYTES

KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=4).map(bytes)
CHANGES = st.dictionaries(KEYS, st.binary(max_size=4) | st.none(), max_size=12)


def made_of(rounds: list[dict[bytes, bytes | None]]) -> Buffer:
    buffer = EMPTY_BUFFER
    for changes in rounds:
        buffer = buffer.apply(changes)
    return buffer


@given(st.lists(CHANGES, max_size=5))
def test_entries_are_in_the_order_of_their_last_change(rounds: list[dict[bytes, bytes | None]]) -> None:
    expected: list[tuple[bytes, bytes | None]] = []
    for changes in rounds:
        expected = [entry for entry in expected if entry[0] not in changes] + list(changes.items())

    buffer = made_of(rounds)

    assert list(buffer.entries.items()) == expected
    assert buffer.ordered == sorted(buffer.entries)
    assert buffer.size_bytes == sum(entry_bytes(key, value) for key, value in expected)


@given(st.lists(CHANGES, max_size=4))
def test_the_stored_form_keeps_entries_order_and_size(rounds: list[dict[bytes, bytes | None]]) -> None:
    buffer = made_of(rounds)
    stored = buffer.encode()
    reader = Reader(stored)

    decoded = Buffer.decode(reader)

    reader.finish()
    assert list(decoded.entries.items()) == list(buffer.entries.items())
    assert decoded.size_bytes == buffer.size_bytes


@given(CHANGES, st.data())
def test_spilled_keys_are_gone_and_the_rest_is_as_before(
    changes: dict[bytes, bytes | None], data: st.DataObject
) -> None:
    buffer = EMPTY_BUFFER.apply(changes)
    spilled = data.draw(st.sets(st.sampled_from(sorted(changes)))) if changes else set()

    left = buffer.without(spilled)

    assert list(left.entries.items()) == [entry for entry in changes.items() if entry[0] not in spilled]
    assert left.ordered == sorted(left.entries)
    assert left.size_bytes == Buffer(left.entries).size_bytes
    assert list(buffer.entries.items()) == list(changes.items())


def test_a_key_with_nul_is_refused() -> None:
    with pytest.raises(BadInput, match="NUL"):
        EMPTY_BUFFER.apply({b"a\0b": b"1"})


@pytest.mark.parametrize(
    ("key", "value"), [(b"k" * (MAX_KEY_BYTES + 1), b""), (b"k", b"v" * (MAX_VALUE_BYTES + 1))]
)
def test_an_entry_that_no_node_can_hold_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(TooLarge):
        EMPTY_BUFFER.apply({key: value})


def test_a_key_stored_twice_is_reported_as_corrupt() -> None:
    stored = EMPTY_BUFFER.apply({b"a": b"1", b"b": b"2"}).encode().replace(b"a\0b", b"a\0a")

    with pytest.raises(CorruptObject, match="twice"):
        Buffer.decode(Reader(stored))
