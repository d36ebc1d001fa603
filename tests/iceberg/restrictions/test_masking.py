"""Masks by name become one action for each field: the strictest, on everything that ever had the name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.restrictions.actions import RANKS, STRICTNESS, Action, find_fitting, fits
from cynosure.iceberg.restrictions.masking import check_masks, mask_columns
from cynosure.iceberg.restrictions.wire import ReadRestrictions, mark_of
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    ListType,
    NestedField,
    StructType,
    Type,
)

ADDRESS = StructType((NestedField(11, "zip", STRING, True), NestedField(12, "born", DATE, False)))
SCHEMA = Schema(
    0,
    (
        NestedField(1, "id", INT, True),
        NestedField(2, "ssn", STRING, False),
        NestedField(3, "address", ADDRESS, False),
        NestedField(4, "home", StructType((NestedField(13, "zip", STRING, False),)), True),
        NestedField(5, "phones", ListType(14, STRING, False), False),
        NestedField(6, "tags", ListType(15, STRING, False), True),
    ),
)
FIELD = "content.columns"


def test_an_action_fits_the_types_that_the_protocol_lists() -> None:
    fitting: dict[Action, set[str]] = {
        action: {
            type_.name
            for type_ in (STRING, DATE, TIMESTAMPTZ, INT, BOOLEAN, DOUBLE, BINARY, UUID, UNKNOWN, VARIANT)
            if fits(action, type_, is_required=True)
        }
        for action in STRICTNESS
    }

    text, times = {"string"}, {"date", "timestamptz"}
    assert fitting.pop("mask-to-fixed-value") == text | times | {"int", "boolean", "double", "binary", "uuid"}
    assert fitting.pop("replace-with-null") == set()
    assert fitting.pop("truncate-to-year") == fitting.pop("truncate-to-month") == times
    assert all(each == text for each in fitting.values())
    assert fits("replace-with-null", SCHEMA.fields[4].type, is_required=False)


UNFIT = {
    "gone": "show-last-4",
    "id": "replace-with-null",
    "address": "mask-to-fixed-value",
    "home": "replace-with-null",
    "phones.element": "show-last-4",
    "tags": "replace-with-null",
}


@pytest.mark.parametrize(("column", "action"), UNFIT.items())
def test_a_mask_that_cannot_be_applied_is_refused_by_name(column: str, action: Action) -> None:
    with pytest.raises(BadInput) as refused:
        check_masks({column: action}, SCHEMA, field=FIELD)

    assert refused.value.field == f"{FIELD}.{column}"


def test_a_struct_and_what_is_in_it_are_not_both_masked() -> None:
    masks: dict[str, Action] = {"address": "replace-with-null", "address.zip": "show-last-4"}

    with pytest.raises(BadInput):
        check_masks(masks, SCHEMA, field=FIELD)

    assert mask_columns([masks], SCHEMA, [], field=FIELD) == {3: "replace-with-null"}


def test_columns_are_found_whatever_the_case_and_in_structs() -> None:
    found = check_masks({"SSN": "show-last-4", "Address.ZIP": "mask-alphanum"}, SCHEMA, field=FIELD)

    assert found == {"SSN": (2,), "Address.ZIP": (11,)}


def test_two_columns_that_are_written_alike_are_both_masked() -> None:
    inner = StructType((NestedField(3, "b", STRING, False),))
    alike = Schema(0, (NestedField(1, "a.b", STRING, False), NestedField(2, "a", inner, False)))

    found = mask_columns([{"a.b": "show-last-4"}], alike, [], field=FIELD)

    assert found == {1: "show-last-4", 3: "show-last-4"}


def test_a_column_on_which_nothing_fits_is_an_error() -> None:
    with pytest.raises(BadInput):
        mask_columns([{"tags": "replace-with-null"}], SCHEMA, [], field=FIELD)


def test_a_field_is_masked_by_every_name_it_ever_had() -> None:
    older = Schema(1, (NestedField(1, "secret", INT, True), NestedField(9, "ssn", STRING, False)))

    found = mask_columns([{"ssn": "show-last-4", "secret": "show-last-4"}], SCHEMA, [older], field=FIELD)

    assert found == {1: "mask-to-fixed-value", 2: "show-last-4", 9: "show-last-4"}


PATHS = ("id", "ssn", "address", "address.zip", "address.born", "home.zip", "phones", "nowhere")
MASKS = st.dictionaries(st.sampled_from(PATHS), st.sampled_from(STRICTNESS), max_size=4)


@given(st.lists(MASKS, max_size=4))
def test_masks_together_are_what_a_naive_reader_makes_of_them(masks: list[dict[str, Action]]) -> None:
    expected: dict[int, Action] = {}
    for id_, place in SCHEMA.places.items():
        asked = [each[place.path] for each in masks if place.path in each]
        outer = {place.path.rsplit(".", depth)[0] for depth in range(1, place.path.count(".") + 1)}
        if not asked or any(name in each for each in masks for name in outer):
            continue
        wanted = sorted(asked, key=STRICTNESS.index)[0]
        options = [wanted, "mask-to-fixed-value", "replace-with-null"]
        required = place.field.is_required
        expected[id_] = next(each for each in options if fits(each, place.field.type, is_required=required))

    assert mask_columns(masks, SCHEMA, [], field=FIELD) == expected


TYPES: list[Type] = [STRING, DATE, INT, UUID, ADDRESS]


@given(st.sampled_from(STRICTNESS), st.sampled_from(TYPES), st.booleans())
def test_what_takes_the_place_of_an_action_that_does_not_fit_shows_nothing(
    action: Action, type_: Type, is_required: bool
) -> None:
    found = find_fitting(action, type_, is_required=is_required)

    if found not in (action, None):
        assert found in ("mask-to-fixed-value", "replace-with-null")
        assert RANKS[found] <= RANKS["replace-with-null"]


def test_restrictions_are_written_as_the_protocol_has_them() -> None:
    masks = ReadRestrictions(projections={9: "show-last-4", 2: "truncate-to-year"})

    assert masks.json == (
        b'{"required-column-projections":[{"field-id":2,"action":"truncate-to-year"},'
        b'{"field-id":9,"action":"show-last-4"}]}'
    )
    assert not ReadRestrictions()
    assert ReadRestrictions().json == b"{}"
    assert mark_of(masks.json) != mark_of(ReadRestrictions(projections={9: "show-last-4"}).json)
