"""Schemas, specs and orders: ids, reuse, and what must fit together."""

import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import SizeLimits
from tests.iceberg.samples import COLUMNS, SCHEMA, encoded, new_table, update

WIDER = {
    "type": "struct",
    "schema-id": 55,
    "fields": [*COLUMNS, {"id": 9, "name": "more", "required": False, "type": "string", "later": 1}],
    "later": {"x": 1},
}
BY_DAY = {"fields": [{"source-id": 2, "transform": "day", "name": "day"}], "later": 1}
ORDER = {
    "order-id": 77,
    "fields": [
        {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first", "later": 1}
    ],
}


def add_schema(schema):
    return {"action": "add-schema", "schema": schema}


def add_spec(spec):
    return {"action": "add-spec", "spec": spec}


def add_order(order):
    return {"action": "add-sort-order", "sort-order": order}


def set_schema(id_):
    return {"action": "set-current-schema", "schema-id": id_}


def set_spec(id_):
    return {"action": "set-default-spec", "spec-id": id_}


def set_order(id_):
    return {"action": "set-default-sort-order", "sort-order-id": id_}


def test_a_new_schema_gets_the_next_id_and_keeps_unknown_fields():
    table = update(new_table(), add_schema(WIDER), set_schema(-1))

    assert table.current_schema_id == 1
    assert table.last_column_id == 9
    assert encoded(table)["schemas"][1] == {**WIDER, "schema-id": 1}


def test_a_schema_the_table_has_is_not_added_again():
    table = update(new_table(), add_schema(WIDER), set_schema(-1))

    back = update(table, add_schema({**SCHEMA, "schema-id": 8}), set_schema(-1))

    assert len(back.schemas) == 2
    assert back.current_schema_id == 0
    assert back.last_column_id == 9


def test_adding_the_current_schema_again_changes_nothing():
    table = new_table()

    assert update(table, add_schema(SCHEMA), set_schema(-1)) is table


def test_ids_of_dropped_columns_are_never_free_again():
    table = update(new_table(), add_schema(WIDER), set_schema(-1))

    narrower = update(table, add_schema({**SCHEMA, "fields": COLUMNS[:1]}), set_schema(-1))

    assert narrower.last_column_id == 9


def test_ids_of_metadata_columns_are_refused():
    reserved = {"id": 2**31 - 2, "name": "x", "required": False, "type": "int"}

    with pytest.raises(BadInput, match="reserved") as refused:
        update(new_table(), add_schema({**SCHEMA, "fields": [*COLUMNS, reserved]}))

    assert refused.value.field == "updates[0].schema.fields"


def test_the_table_keeps_count_of_columns_itself():
    table = update(new_table(), {**add_schema(WIDER), "last-column-id": 500})

    assert table.last_column_id == 9


def test_a_new_spec_gets_ids_for_itself_and_its_fields():
    table = update(new_table(), add_spec(BY_DAY), set_spec(-1))

    assert table.default_spec_id == 1
    assert table.last_partition_id == 1000
    assert encoded(table)["partition-specs"][1] == {
        "spec-id": 1,
        "later": 1,
        "fields": [{"source-id": 2, "transform": "day", "name": "day", "field-id": 1000}],
    }


def test_a_field_without_id_gets_that_of_the_same_field_elsewhere():
    table = update(new_table(), add_spec(BY_DAY))
    both = {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "shard"}, *BY_DAY["fields"]]}

    table = update(table, add_spec(both))

    fields = table.partition_specs[-1].value.fields
    assert [(field.name, field.field_id) for field in fields] == [("shard", 1001), ("day", 1000)]


def test_a_spec_the_table_has_is_not_added_again():
    table = update(new_table(), add_spec(BY_DAY))

    again = update(table, add_spec({"spec-id": 9, **BY_DAY}), set_spec(-1))

    assert len(again.partition_specs) == 2
    assert again.default_spec_id == 1


def test_a_new_order_gets_the_next_id_and_keeps_unknown_fields():
    table = update(new_table(), add_order(ORDER), set_order(-1))

    assert table.default_sort_order_id == 1
    assert encoded(table)["sort-orders"][1] == {**ORDER, "order-id": 1}
    assert update(table, add_order({**ORDER, "order-id": 3}), set_order(-1)) is table
    assert update(table, add_order({"order-id": 5, "fields": []}), set_order(-1)).default_sort_order_id == 0


def test_unsorted_is_always_order_0():
    sorted_from_the_start = new_table(sort_order=ORDER)
    assert sorted_from_the_start.default_sort_order_id == 1

    table = update(sorted_from_the_start, add_order({"order-id": 5, "fields": []}), set_order(-1))

    assert table.default_sort_order_id == 0
    assert [one.value.order_id for one in table.sort_orders] == [1, 0]


@pytest.mark.parametrize("set_", [set_schema, set_spec, set_order])
def test_minus_one_needs_something_added_in_the_same_request(set_):
    table = update(new_table(), add_schema(WIDER), add_spec(BY_DAY), add_order(ORDER))

    with pytest.raises(BadInput, match="-1 means"):
        update(table, set_(-1))


@pytest.mark.parametrize("set_", [set_schema, set_spec, set_order])
def test_an_id_the_table_does_not_have_is_refused(set_):
    with pytest.raises(BadInput, match="none with this id"):
        update(new_table(), set_(7))


def test_minus_one_is_what_was_added_last():
    bucket = {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "shard"}]}

    table = update(new_table(), add_spec(BY_DAY), add_spec(bucket), add_spec(BY_DAY), set_spec(-1))

    assert table.default_spec_id == 1


def test_a_current_schema_must_carry_the_default_spec():
    table = update(new_table(), add_spec(BY_DAY), set_spec(-1))

    with pytest.raises(BadInput, match="source column of a partition field") as refused:
        update(table, add_schema({**SCHEMA, "fields": COLUMNS[:1]}), set_schema(-1))

    assert refused.value.field == "updates"


def test_a_current_schema_must_carry_the_default_order():
    table = update(new_table(), add_order(ORDER), set_order(-1))

    with pytest.raises(BadInput, match="source column of a sort field"):
        update(table, add_schema({**SCHEMA, "fields": COLUMNS[1:]}), set_schema(-1))


def test_an_old_spec_may_name_a_column_that_is_gone():
    table = update(new_table(), add_spec(BY_DAY), set_spec(-1))

    table = update(table, set_spec(0), add_schema({**SCHEMA, "fields": COLUMNS[:1]}), set_schema(-1))

    assert len(table.partition_specs) == 2


@pytest.mark.parametrize(
    ("update_", "field"),
    [
        (add_schema({"type": "struct"}), "updates[0].schema.fields"),
        (
            add_schema({**SCHEMA, "fields": [{**COLUMNS[0], "type": "variant"}]}),
            "updates[0].schema.fields",
        ),
        (add_schema({**SCHEMA, "identifier-field-ids": [3]}), "updates[0].schema.identifier-field-ids"),
        (add_spec({"fields": [{"source-id": 9, "transform": "day", "name": "d"}]}), None),
        (add_order({"order-id": 1, "fields": [{**ORDER["fields"][0], "source-id": 9}]}), None),
    ],
)
def test_what_does_not_fit_is_refused_with_the_field(update_, field):
    with pytest.raises(BadInput) as refused:
        update(new_table(), update_)

    assert field is None or refused.value.field == field
    assert refused.value.field.startswith("updates[0].")


def test_too_many_columns_are_refused():
    with pytest.raises(BadInput, match="too many columns"):
        update(new_table(), add_schema(WIDER), limits=SizeLimits(max_columns=3))


def test_schemas_and_specs_in_use_stay():
    table = update(new_table(), add_schema(WIDER), set_schema(-1), add_spec(BY_DAY), set_spec(-1))

    for wrong in (
        {"action": "remove-schemas", "schema-ids": [0, 1]},
        {"action": "remove-partition-specs", "spec-ids": [1]},
    ):
        with pytest.raises(BadInput, match="in use"):
            update(table, wrong)
    table = update(
        table,
        {"action": "remove-schemas", "schema-ids": [0, 99]},
        {"action": "remove-partition-specs", "spec-ids": [0]},
    )
    assert [one.value.schema_id for one in table.schemas] == [1]
    assert [one.value.spec_id for one in table.partition_specs] == [1]


def test_version_1_needs_field_ids_without_gaps():
    table = new_table(format_version=1, partition_spec=BY_DAY)
    replaced = {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "shard", "field-id": 1001}]}

    with pytest.raises(BadInput, match="without gaps"):
        update(table, add_spec(replaced))
    kept = {"fields": [{"source-id": 2, "transform": "void", "name": "day"}, {**replaced["fields"][0]}]}
    kept["fields"][0]["field-id"] = 1000
    assert update(table, add_spec(kept)).last_partition_id == 1001
