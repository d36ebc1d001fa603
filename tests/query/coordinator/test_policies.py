"""Row filters as the catalog sends them: understood exactly, or the table is hidden."""

from typing import Any

import msgspec
import pytest

from cynosure.iceberg.expressions import encode_expression, parse_expression
from cynosure.iceberg.expressions.nodes import TRUE, And, Constant, IdReference, Membership
from cynosure.iceberg.schema import decode_schema
from cynosure.iceberg.types import STRING
from cynosure.query.catalog_access.opening import open_table
from cynosure.query.catalog_access.port import MappingFilter, OpenedTable, RowFilter, TableName
from cynosure.query.catalog_access.wire import LoadedTable
from cynosure.query.coordinator import policies
from cynosure.query.errors import NotReadable, PolicyHides
from cynosure.query.scan_task import Mask

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "int", "required": True},
        {"id": 2, "name": "region", "type": "string", "required": False},
        {
            "id": 3,
            "name": "address",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 4, "name": "zip", "type": "string", "required": False},
                    {"id": 5, "name": "city", "type": "string", "required": False},
                ],
            },
        },
        {
            "id": 6,
            "name": "tags",
            "required": False,
            "type": {"type": "list", "element-id": 7, "element": "string", "element-required": False},
        },
    ],
}
TYPED = decode_schema(msgspec.json.encode(SCHEMA))
NAME = TableName("lake", ("shop",), "t")
MAPPING = MappingFilter(0, TableName("lake", ("gov",), "m"), "region", b"true", "gov.p")


def opened(
    expression: Any, mappings: tuple[MappingFilter, ...] = (), masks: tuple[Mask, ...] = ()
) -> OpenedTable:
    return OpenedTable(
        name=NAME,
        uuid="u",
        snapshot_id=1,
        schema=msgspec.json.encode(SCHEMA),
        is_current_schema=True,
        row_filter=RowFilter(msgspec.json.encode(expression), mappings),
        masks=masks,
        policies=("gov.p",),
        places=("s3://b/t",),
    )


def column(id_: int) -> dict[str, Any]:
    return {"type": "reference", "id": id_}


def equals(id_: int, value: Any, type_: str) -> dict[str, Any]:
    return {
        "type": "eq",
        "left": column(id_),
        "right": {"type": "literal", "value": value, "data-type": type_},
    }


def both(left: Any, right: Any) -> dict[str, Any]:
    return {"type": "and", "left": left, "right": right}


IN = {"type": "in-mapping", "term": column(2), "mapping": 0}


def test_a_filter_is_exact_and_by_id():
    found = policies.resolve_filter(opened(both(equals(1, 7, "int"), equals(4, "x", "string"))), TYPED, {})
    assert encode_expression(found) == msgspec.json.encode(
        both(equals(1, 7, "int"), equals(4, "x", "string"))
    )
    assert policies.resolve_filter(opened(True), TYPED, {}) == TRUE


def test_constants_become_those_of_the_schema_that_is_read_with():
    # The column was made wider since the snapshot: the filter has the wide type.
    found = policies.resolve_filter(opened(equals(1, 7, "long")), TYPED, {})
    assert msgspec.json.decode(encode_expression(found))["right"]["data-type"] == "int"


@pytest.mark.parametrize(
    "expression",
    [
        {"type": "surprise", "child": column(2)},
        {"type": "not", "child": equals(2, "EU", "string")},
        equals(99, "EU", "string"),
        equals(7, "EU", "string"),
        equals(3, "EU", "string"),
        {"type": "eq", "left": {"type": "reference", "name": "region"}, "right": "EU"},
        equals(2, 7, "int"),
        {"type": "eq", "left": column(2), "right": column(4)},
        {**equals(2, "EU", "string"), "more": 1},
        both(True, {"type": "not-in-mapping", "term": column(2), "mapping": 0}),
        {**IN, "more": 1},
        {**IN, "mapping": 1},
        {**IN, "mapping": -1},
        {**IN, "mapping": True},
        {**IN, "term": "region"},
        {**IN, "term": {"type": "reference", "id": 99}},
        {"type": "not", "child": IN},
        "text",
        None,
        7,
    ],
)
def test_whatever_is_not_understood_hides_the_table(expression: Any):
    table = opened(expression, (MAPPING,))
    with pytest.raises(PolicyHides) as raised:
        policies.resolve_filter(table, TYPED, {key: ["EU"] for key in policies.find_mappings(table)})
    assert "gov.p" in str(raised.value)
    assert "EU" not in str(raised.value)


def test_mappings_become_constants_and_nothing_shows_nothing():
    table = opened(both(IN, equals(1, 7, "int")), (MAPPING,))
    assert policies.find_mappings(table) == ((0, 2),)
    found = msgspec.json.decode(
        encode_expression(policies.resolve_filter(table, TYPED, {(0, 2): ["a", "b"]}))
    )
    assert found["left"]["values"] == {"type": "literals", "values": ["a", "b"], "data-type": "string"}
    nobody = msgspec.json.decode(encode_expression(policies.resolve_filter(table, TYPED, {(0, 2): []})))
    assert nobody["left"] is False
    with pytest.raises(PolicyHides):
        policies.resolve_filter(table, TYPED, {})


def test_masks_hide_what_is_inside_and_choose_no_files():
    table = opened(True, masks=(Mask(3, "replace-with-null"),))
    masked = policies.masked_ids(table, TYPED)
    assert masked == {3, 4, 5}
    wanted = policies.resolve_filter(opened(both(equals(4, "x", "string"), equals(1, 7, "int"))), TYPED, {})
    assert policies.columns_of(policies.prunable(wanted, masked, TYPED)) == {1}
    inner = policies.masked_ids(opened(True, masks=(Mask(4, "mask-alphanum"),)), TYPED)
    other = policies.resolve_filter(opened(equals(5, "x", "string")), TYPED, {})
    assert policies.prunable(other, inner, TYPED) == other
    with pytest.raises(PolicyHides):
        policies.masked_ids(opened(True, masks=(Mask(99, "mask-alphanum"),)), TYPED)


def test_conditions_that_only_save_work_are_left_out_when_they_are_too_large():
    small = parse_expression(equals(2, "EU", "string"))
    assert policies.passable(small) == small
    many = Membership(
        "in", IdReference(2), tuple(Constant("x" * 90 + str(at), STRING) for at in range(7_000))
    )
    assert policies.passable(many) == TRUE
    deep = small
    for _ in range(500):
        deep = And(deep, small)
    assert policies.passable(deep) == TRUE


METADATA = {
    "table-uuid": "u",
    "location": "s3://b/t",
    "current-schema-id": 0,
    "schemas": [SCHEMA],
    "snapshots": [],
}


@pytest.mark.parametrize(
    "restrictions",
    [
        {"required-something-new": True},
        {"required-column-projections": [{"field-id": 2, "action": "surprise"}]},
        {"required-column-projections": [{"action": "mask-alphanum"}]},
        {"required-column-projections": ["x"]},
        {"cynosure-mappings": [{"name": "m"}]},
        {"cynosure-mappings": [7]},
    ],
)
def test_restrictions_of_a_newer_catalog_hide_the_table(restrictions: dict[str, Any]):
    loaded = LoadedTable(METADATA, {"cynosure-policies": ["gov.p"], **restrictions})
    with pytest.raises(PolicyHides, match=r"does not understand.*gov\.p"):
        open_table(NAME, loaded, None)


def test_metadata_that_is_not_whole_is_an_error_with_a_fix():
    loaded = LoadedTable({**METADATA, "current-schema-id": 7})
    with pytest.raises(NotReadable) as raised:
        open_table(NAME, loaded, None)
    assert raised.value.fix
