"""New columns: where they go, which ids they get, and what is refused."""

from typing import Any

import pytest
from msgspec import structs

from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import ColumnExists
from cynosure.iceberg.shaping.name_mapping import NAME_MAPPING
from tests.iceberg.samples import encoded, new_table, update
from tests.iceberg.shaping.shapes import POINT, current_fields, partitioned, table, with_columns

NOTE = {"name": "note", "type": "string"}
WITHOUT_IDS = {
    "type": "struct",
    "fields": [
        {
            "name": "m",
            "required": True,
            "type": {
                "type": "map",
                "key": "string",
                "value": {"type": "list", "element": "int", "element-required": True},
                "value-required": False,
            },
        },
        {"name": "n", "required": False, "type": "int", "doc": "Of it."},
    ],
}


def test_a_column_gets_the_id_after_the_last_one_and_the_schema_becomes_current():
    made = with_columns(table(), {**NOTE, "doc": "What it is."})

    assert current_fields(made)[-1] == {
        "id": 10,
        "name": "note",
        "required": False,
        "type": "string",
        "doc": "What it is.",
    }
    assert (made.current_schema_id, made.last_column_id, len(made.schemas)) == (1, 10, 2)


def test_ids_of_dropped_columns_are_not_given_again():
    base = with_columns(table(), NOTE)
    narrower = update(
        base,
        {"action": "add-schema", "schema": {"type": "struct", "fields": current_fields(base)[:1]}},
        {"action": "set-current-schema", "schema-id": -1},
    )

    assert current_fields(with_columns(narrower, NOTE))[-1]["id"] == 11


def test_ids_in_use_are_not_given_again_where_a_registered_file_counted_wrong():
    base = structs.replace(table(), last_column_id=2)

    assert current_fields(with_columns(base, NOTE))[-1]["id"] == 10


def test_parts_of_a_type_are_numbered_behind_their_column_level_by_level():
    *_, added, last = current_fields(with_columns(table(), {"name": "s", "type": WITHOUT_IDS}, NOTE))

    outer = {each["name"]: each for each in added["type"]["fields"]}
    assert (added["id"], outer["m"]["id"], outer["n"]["id"]) == (10, 11, 12)
    assert (outer["m"]["type"]["key-id"], outer["m"]["type"]["value-id"]) == (13, 14)
    assert outer["m"]["type"]["value"]["element-id"] == 15
    assert last["id"] == 16


def test_ids_that_a_client_sends_do_not_count():
    sent = current_fields(with_columns(table(), {"name": "s", "type": POINT}))[-1]
    left_out = {
        "type": "struct",
        "fields": [{key: value for key, value in each.items() if key != "id"} for each in POINT["fields"]],
    }

    assert sent == current_fields(with_columns(table(), {"name": "s", "type": left_out}))[-1]
    assert [each["id"] for each in sent["type"]["fields"]] == [11, 12]


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ({}, ["id", "ts", "name", "point", "points", "note"]),
        ({"first": True}, ["note", "id", "ts", "name", "point", "points"]),
        ({"after": "ts"}, ["id", "ts", "note", "name", "point", "points"]),
    ],
)
def test_a_column_goes_where_it_is_wanted(column: dict[str, Any], names: list[str]):
    assert [each["name"] for each in current_fields(with_columns(table(), {**NOTE, **column}))] == names


@pytest.mark.parametrize("name", ["points.t", "points.element.t", ["points", "t"]])
def test_a_column_can_be_a_part_of_a_struct_in_a_list(name: Any):
    added = with_columns(table(), {"name": name, "type": "int"})

    fields = current_fields(added)[-1]["type"]["element"]["fields"]
    assert [(each["id"], each["name"]) for each in fields] == [(9, "z"), (10, "t")]


def test_a_column_can_go_into_a_struct_that_the_same_request_adds():
    made = with_columns(
        table(),
        {"name": "s", "type": {"type": "struct", "fields": []}},
        {"name": "s.t", "type": "int"},
        {"name": "point.w", "type": "int", "after": "x"},
    )

    *_, point, _, s = current_fields(made)
    assert [(each["id"], each["name"]) for each in s["type"]["fields"]] == [(11, "t")]
    assert [each["name"] for each in point["type"]["fields"]] == ["x", "w", "y"]


def test_a_name_that_holds_a_dot_is_sent_as_a_list():
    assert current_fields(with_columns(table(), {"name": ["a.b"], "type": "int"}))[-1]["name"] == "a.b"


def test_what_this_version_does_not_know_of_a_schema_stays():
    fields = [{"id": 1, "name": "id", "required": True, "type": "long", "later": 1}]
    base = update(
        new_table(),
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields, "later": 2}},
        {"action": "set-current-schema", "schema-id": -1},
    )

    schema = encoded(with_columns(base, NOTE))["schemas"][-1]

    assert (schema["later"], schema["fields"][0]) == (2, fields[0])


@pytest.mark.parametrize("mapping", ["", "7", '[{"names":7}]', "[" * 10_000])
def test_a_mapping_of_names_that_cannot_be_read_stays(mapping: str):
    made = with_columns(table(properties={NAME_MAPPING: mapping}), NOTE)

    assert made.properties[NAME_MAPPING] == mapping


def test_identifier_fields_stay():
    base = new_table(
        schema={
            "type": "struct",
            "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
            "identifier-field-ids": [1],
        }
    )

    assert with_columns(base, NOTE).current_schema().identifier_field_ids == (1,)


def test_a_default_of_rows_is_that_of_writers_unless_they_have_another():
    same, other = current_fields(
        with_columns(
            table(3),
            {"name": "a", "type": "int", "required": True, "initial-default": 7},
            {"name": "b", "type": "int", "initial-default": 7, "write-default": 8},
        )
    )[-2:]

    assert (same["initial-default"], same["write-default"], same["required"]) == (7, 7, True)
    assert (other["initial-default"], other["write-default"]) == (7, 8)


@pytest.mark.parametrize("name", ["id", "point.x", ["point", "x"], "points.z", "points.element.z"])
def test_a_name_that_is_taken_is_told_with_the_column(name: Any):
    with pytest.raises(ColumnExists) as refused:
        with_columns(table(), NOTE, {"name": name, "type": "int"})

    assert refused.value.details["field"] == "columns[1].name"
    assert refused.value.details["column"].endswith("".join(name).rpartition(".")[2][-1])


DEEP: dict[str, Any] = {"type": "list", "element": "int", "element-required": True}
for _ in range(150):
    DEEP = {"type": "list", "element": DEEP, "element-required": True}


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ({"name": "", "type": "int"}, "columns[1].name"),
        ({"name": [], "type": "int"}, "columns[1].name"),
        ({"name": "a..b", "type": "int"}, "columns[1].name"),
        ({"name": "note", "type": "int"}, "columns[1].name"),
        ({"name": "nobody.x", "type": "int"}, "columns[1].name"),
        ({"name": "id.x", "type": "int"}, "columns[1].name"),
        ({"name": "points.key.x", "type": "int"}, "columns[1].name"),
        ({"name": ["point.x"], "type": "int"}, None),
        ({"name": "name_trunc_4", "type": "int"}, "columns[1].name"),
        ({"name": "a", "type": "integer"}, "columns[1].type"),
        ({"name": "a", "type": 7}, "columns[1].type"),
        ({"name": "a", "type": {"type": "set"}}, "columns[1].type.type"),
        ({"name": "a", "type": {"type": "list", "element": "int"}}, "columns[1].type.element-required"),
        ({"name": "a", "type": {"type": "struct", "fields": {}}}, "columns[1].type.fields"),
        ({"name": "a", "type": {"type": "struct", "fields": [3]}}, "columns[1].type.fields[0]"),
        ({"name": "a", "type": {"type": "struct", "fields": [{}]}}, "columns[1].type.fields[0].name"),
        (
            {"name": "a", "type": {"type": "struct", "fields": [POINT["fields"][0]] * 2}},
            "columns[1].type",
        ),
        ({"name": "a", "type": DEEP}, None),
        ({"name": "a", "type": "variant"}, "columns[1].type"),
        ({"name": "a", "type": "int", "required": True}, "columns[1].required"),
        ({"name": "a", "type": "int", "initial-default": 7}, "columns[1].type"),
        ({"name": "a", "type": "int", "after": "x"}, "columns[1].after"),
        ({"name": "a", "type": "int", "after": "point.x"}, "columns[1].after"),
        ({"name": "a", "type": "int", "after": "id", "first": True}, "columns[1].after"),
        ({"name": "point.a", "type": "int", "after": "id"}, "columns[1].after"),
    ],
)
def test_what_cannot_be_added_is_refused_by_its_place(column: dict[str, Any], field: str | None):
    base = partitioned(table(), {"source": "name", "transform": "truncate[4]"})

    with pytest.raises((BadInput, ColumnExists)) as refused:
        with_columns(base, NOTE, column)

    told = str(refused.value.details["field"])
    assert told == field if field else told.startswith("columns[1].")
    assert refused.value.fix


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ({"type": "int", "initial-default": "x"}, "columns[0].initial-default"),
        ({"type": "int", "write-default": "x"}, "columns[0].write-default"),
        (
            {"type": "int", "required": True, "initial-default": 1, "write-default": None},
            "columns[0].write-default",
        ),
        ({"type": "unknown", "required": True, "initial-default": 1}, "columns[0].initial-default"),
        (
            {
                "type": {
                    "type": "struct",
                    "fields": [{"name": "x", "required": False, "type": "int", "initial-default": "x"}],
                }
            },
            "columns[0].type.x.initial-default",
        ),
    ],
)
def test_a_default_that_is_no_value_of_the_type_is_refused(column: dict[str, Any], field: str):
    with pytest.raises(BadInput) as refused:
        with_columns(table(3), {"name": "a", **column})

    assert refused.value.field == field


def test_no_columns_are_refused():
    with pytest.raises(BadInput, match="no column"):
        with_columns(table())
