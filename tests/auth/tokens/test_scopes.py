import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.auth.tokens.errors import TokenRefused
from cynosure.auth.tokens.scopes import format_scope, narrow_scope, parse_scope

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)
SCOPES = st.none() | st.lists(NAMES.filter(lambda name: name != "ALL"), min_size=1, unique=True).map(
    lambda names: tuple(sorted(names))
)


@given(SCOPES)
def test_a_scope_survives_a_token(roles):
    assert parse_scope(format_scope(roles)) == roles


@given(SCOPES, SCOPES)
def test_narrowing_never_adds_a_role(had, wanted):
    try:
        got = narrow_scope(had, wanted)
    except TokenRefused:
        assert had is not None
        assert not set(wanted or ()) <= set(had)
        return
    assert had is None or (got is not None and set(got) <= set(had))
    assert wanted is None or got == wanted


@pytest.mark.parametrize("text", ["x", "PRINCIPAL_ROLE:", "PRINCIPAL_ROLE: x", "PRINCIPAL_ROLE", "a\tb"])
def test_anything_else_is_no_scope(text):
    with pytest.raises(TokenRefused, match="not of this server"):
        parse_scope(text)
