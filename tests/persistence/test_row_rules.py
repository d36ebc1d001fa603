import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.persistence.row_rules import check_realm, check_ref
from cynosure.persistence.spi import MAX_ID, TEXT_BYTES
from cynosure.testing.backend_kit.samples import reference


def can_be_stored(text: str) -> bool:
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return 1 <= len(encoded) <= TEXT_BYTES and b"\0" not in encoded


@given(
    st.one_of(
        st.text(st.characters(codec=None, categories=None), max_size=300),
        st.text("a\0é", min_size=TEXT_BYTES - 130, max_size=TEXT_BYTES + 2),
    )
)
def test_a_text_is_accepted_exactly_when_it_is_short_utf_8_without_nul(text: str) -> None:
    if can_be_stored(text):
        check_realm(text)
        return
    with pytest.raises(BadInput) as refused:
        check_realm(text)

    assert refused.value.field == "realm"
    # The text may hold anything, so it is not repeated.
    assert set(refused.value.details) == {"field"}


@pytest.mark.parametrize("field", ["head", "generation", "created_us"])
def test_numbers_of_a_reference_keep_to_63_bits(field: str) -> None:
    for number in (0, MAX_ID):
        check_ref(reference(1)._replace(**{field: number}))
    for number in (-1, MAX_ID + 1):
        with pytest.raises(BadInput) as refused:
            check_ref(reference(1)._replace(**{field: number}))
        assert refused.value.field == field


def test_recent_heads_are_checked_one_by_one() -> None:
    with pytest.raises(BadInput) as refused:
        check_ref(reference(1, recent=(1, -2)))

    assert refused.value.field == "recent"
