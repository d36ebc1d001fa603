import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, CorruptObject
from cynosure.persistence.index.keys import (
    MAX_ID,
    after,
    decode_id_key,
    decode_key,
    encode_id_key,
    encode_key,
    end_of_prefix,
    prefix_of,
)

NAMES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x00\x01\x02\x03ab"), max_size=5)
TUPLES = st.lists(NAMES, min_size=1, max_size=4).map(tuple)
IDS = st.integers(min_value=0, max_value=MAX_ID)


@given(TUPLES)
def test_a_key_decodes_to_its_elements_and_holds_no_nul(parts: tuple[str, ...]) -> None:
    key = encode_key(*parts)

    assert decode_key(key) == parts
    assert b"\0" not in key


@given(TUPLES, TUPLES)
def test_keys_sort_as_their_tuples_do(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert (encode_key(*left) < encode_key(*right)) == (left < right)


@given(TUPLES, TUPLES)
def test_a_prefix_matches_exactly_what_lies_below_its_elements(
    parent: tuple[str, ...], child: tuple[str, ...]
) -> None:
    lies_below = len(child) > len(parent) and child[: len(parent)] == parent

    assert encode_key(*child).startswith(prefix_of(*parent)) == lies_below


@given(IDS, IDS)
def test_id_keys_round_trip_in_order_without_nul(left: int, right: int) -> None:
    assert decode_id_key(encode_id_key(left)) == left
    assert (encode_id_key(left) < encode_id_key(right)) == (left < right)
    assert b"\0" not in encode_id_key(left)


@given(st.binary(max_size=4), st.binary(max_size=6))
def test_the_end_of_a_prefix_divides_what_starts_with_it_from_what_follows(prefix: bytes, key: bytes) -> None:
    end = end_of_prefix(prefix)

    is_inside = key >= prefix and (end is None or key < end)
    assert is_inside == key.startswith(prefix)


@given(TUPLES, TUPLES)
def test_nothing_lies_between_a_key_and_the_bound_after_it(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert (encode_key(*other) >= after(encode_key(*one))) == (encode_key(*other) > encode_key(*one))


@given(st.binary(max_size=12))
def test_foreign_bytes_decode_to_their_own_key_or_are_reported_as_corrupt(data: bytes) -> None:
    try:
        parts = decode_key(data)
    except CorruptObject:
        return

    assert encode_key(*parts) == data


def test_the_stored_form_of_keys_is_fixed() -> None:
    assert encode_key("sales", "eu", "orders") == b"sales\x01eu\x01orders"
    assert encode_key("a\x00b\x01c\x02d", "") == b"a\x02\x10b\x02\x11c\x02\x12d\x01"
    assert encode_id_key(0) == b"\x80" * 9
    assert encode_id_key(MAX_ID) == b"\xff" * 9
    assert encode_id_key(0x0123456789ABCDEF).hex() == "8191d1acf8cdaf9bef"


@pytest.mark.parametrize("number", [-1, MAX_ID + 1])
def test_an_id_beyond_63_bits_is_refused(number: int) -> None:
    with pytest.raises(BadInput):
        encode_id_key(number)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(BadInput, match="valid Unicode"):
        encode_key("a\ud800")


def test_a_key_without_elements_is_refused_and_its_prefix_is_everything() -> None:
    assert prefix_of() == b""
    with pytest.raises(BadInput):
        encode_key()


@pytest.mark.parametrize("key", [b"", b"\x80" * 8, b"\x80" * 8 + b"\x01"])
def test_a_key_that_is_no_id_is_reported_as_corrupt(key: bytes) -> None:
    with pytest.raises(CorruptObject):
        decode_id_key(key)
