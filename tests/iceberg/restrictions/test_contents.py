"""The content of policies that restrict: nothing in it is overlooked."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.restrictions.contents import parse_column_mask, parse_row_filter
from cynosure.iceberg.restrictions.readers import Audience, Reader

FILTER = {"enable": True, "filter": "a = 1"}
MASK = {"enable": True, "columns": {"a": "show-last-4"}}


def text(content: object) -> str:
    return msgspec.json.encode(content).decode()


def test_a_filter_and_a_mask_say_whom_they_are_for() -> None:
    parsed = parse_row_filter(text({**FILTER, "roles": ["x", "x"], "except-roles": ["y"]}))

    assert parsed.audience == Audience(("x",), ("y",))
    assert parsed.roles == {"x", "y"}
    assert parse_column_mask(text(MASK)).audience == Audience()


def test_an_action_may_have_the_name_of_an_earlier_draft() -> None:
    parsed = parse_column_mask(text({**MASK, "columns": {"a": "mask-to-default"}}))

    assert parsed.columns == {"a": "mask-to-fixed-value"}


WRONG = {
    "content": [(parse_row_filter, "["), (parse_row_filter, []), (parse_column_mask, 1)],
    "content.enable": [
        (parse_row_filter, {"filter": "a"}),
        (parse_row_filter, {**FILTER, "enable": "true"}),
        (parse_column_mask, {"columns": MASK["columns"]}),
    ],
    "content.filter": [
        (parse_row_filter, {"enable": True}),
        (parse_row_filter, {**FILTER, "filter": 5}),
        (parse_row_filter, {**FILTER, "filter": "a ="}),
        (
            parse_row_filter,
            {**FILTER, "filter": {"type": "eq", "left": {"type": "reference", "id": 1}, "right": 1}},
        ),
    ],
    "content.filter.type": [(parse_row_filter, {**FILTER, "filter": {"type": "sql"}})],
    "content.roles": [
        (parse_row_filter, {**FILTER, "roles": []}),
        (parse_row_filter, {**FILTER, "roles": "x"}),
        (parse_column_mask, {**MASK, "roles": [""]}),
    ],
    "content.except-roles": [(parse_column_mask, {**MASK, "except-roles": {"x": 1}})],
    "content.role": [(parse_column_mask, {**MASK, "role": ["x"]})],
    "content.columns": [
        (parse_column_mask, {"enable": True}),
        (parse_column_mask, {**MASK, "columns": {}}),
        (parse_column_mask, {**MASK, "columns": ["a"]}),
    ],
    "content.columns.a": [
        (parse_column_mask, {**MASK, "columns": {"a": "hide"}}),
        (parse_column_mask, {**MASK, "columns": {"A": "show-last-4", "a": "show-last-4"}}),
        (parse_column_mask, {**MASK, "columns": {"a": 1}}),
    ],
    "content.columns.": [(parse_column_mask, {**MASK, "columns": {"": "show-last-4"}})],
}


@pytest.mark.parametrize(
    ("field", "parse", "content"), [(field, *each) for field, cases in WRONG.items() for each in cases]
)
def test_what_is_wrong_is_refused_by_the_name_of_its_field(field: str, parse, content: object) -> None:
    with pytest.raises(BadInput) as refused:
        parse(content if isinstance(content, str) else text(content))

    assert refused.value.field == field


@given(st.one_of(st.text(), st.recursive(st.none() | st.booleans() | st.text(), st.lists).map(text)))
def test_whatever_the_content_it_is_read_or_bad_input(content: str) -> None:
    for parse in (parse_row_filter, parse_column_mask):
        with pytest.raises(BadInput):
            parse(content)


ROLES = st.frozensets(st.sampled_from("abc"))


@given(st.builds(Audience, st.none() | ROLES.filter(bool).map(tuple), ROLES.map(tuple)), ROLES, ROLES, ROLES)
def test_giving_up_a_role_never_lifts_a_restriction(
    audience: Audience, assigned: frozenset[str], active: frozenset[str], missing: frozenset[str]
) -> None:
    before = Reader("x", assigned, assigned & active, missing - assigned)

    for role in before.active:
        after = Reader("x", assigned, before.active - {role}, before.missing)
        assert audience.includes(after) >= audience.includes(before)
    for role in assigned:
        gone = Reader("x", assigned - {role}, before.active - {role}, before.missing | {role})
        assert audience.includes(gone) >= audience.includes(before), "the role was deleted"
