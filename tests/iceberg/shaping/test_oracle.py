"""Changes of shape that PyIceberg makes as a client must give the same table here, ids included.

Left out is where PyIceberg differs from the reference implementation, or from what a request can say here: it
gives a field of an earlier spec a new id in format version 3 and where its name differs; it has its own
default of where nulls go; and it keeps the fields that stay before new ones, in their order.
"""

import json
from typing import Any
from unittest.mock import Mock

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.sorting import NullOrder
from pyiceberg.table.update import update_table_metadata
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.sorting import UpdateSortOrder
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.types import IcebergType

from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.iceberg.shaping.name_mapping import NAME_MAPPING
from tests.iceberg.samples import encoded
from tests.iceberg.shaping.shapes import partitioned, sorted_by, table, with_columns
from tests.iceberg.test_oracle import normal

TYPE = TypeAdapter(IcebergType)
Change = UpdateSchema | UpdateSpec | UpdateSortOrder
COMPARED = (
    *("schemas", "current-schema-id", "last-column-id"),
    *("partition-specs", "default-spec-id", "last-partition-id"),
    *("sort-orders", "default-sort-order-id"),
)

types = st.recursive(
    st.sampled_from(["boolean", "int", "long", "double", "date", "timestamptz", "string", "decimal(9, 2)"]),
    lambda inner: st.one_of(
        st.builds(
            lambda one: {"type": "list", "element-id": 1, "element": one, "element-required": True}, inner
        ),
        st.builds(
            lambda key, value: {
                "type": "map",
                "key-id": 1,
                "key": key,
                "value-id": 2,
                "value": value,
                "value-required": False,
            },
            inner,
            inner,
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: {
                "type": "struct",
                "fields": [
                    {"id": at, "name": f"f{at}", "required": at % 2 == 0, "type": part}
                    for at, part in enumerate(parts, 1)
                ],
            }
        ),
    ),
    max_leaves=5,
)
FIELDS = [
    {"source": "id"},
    {"source": "id", "transform": "bucket[16]"},
    {"source": "name", "transform": "truncate[4]"},
    {"source": "point.x"},
    {"source": "ts", "transform": "day"},
    {"source": "ts", "transform": "hour"},
]
MAPPING = json.dumps(
    [
        {"field-id": 1, "names": ["id", "new0"]},
        {"names": ["gone"]},
        {"field-id": 99, "names": ["new1"]},
        {"field-id": 4, "names": ["point"], "fields": [{"field-id": 6, "names": ["x", "new2"]}]},
    ]
)
KEYS = table().current_schema().ids_by_path


def begin(base: TableMetadata) -> Transaction:
    """A change of this table by PyIceberg that never reaches a catalog."""
    metadata = TableMetadataUtil.parse_raw(encode_metadata(base).decode())
    return Transaction(Table(("ns", "t"), metadata, "s3://bucket/t.json", Mock(), Mock()))


def finish(change: Change) -> dict[str, Any]:
    updates, _ = change._commit()
    made = update_table_metadata(change._transaction.table_metadata, updates)
    return normal(json.loads(IcebergBaseModel.model_dump_json(made, by_alias=True, exclude_none=True)))


def compare(ours: TableMetadata, theirs: dict[str, Any]) -> None:
    mine = normal(encoded(ours))
    assert {name: mine[name] for name in COMPARED} == {name: theirs[name] for name in COMPARED}


@st.composite
def columns(draw: st.DrawFn) -> list[dict[str, Any]]:
    wanted = []
    for number in range(draw(st.integers(1, 3))):
        parent = draw(st.sampled_from(["", "", "point.", "points."]))
        column = {"name": f"{parent}new{number}", "type": draw(types)}
        # PyIceberg moves nothing in the structs of lists.
        places = {"": "ts", "point.": "x"}
        chosen = [{}, {"first": True}, {"after": places[parent]}] if parent in places else [{}]
        place = draw(st.sampled_from(chosen))
        wanted.append({**column, **place, **draw(st.sampled_from([{}, {"doc": "Of it."}]))})
    return wanted


@settings(max_examples=60)
@given(wanted=columns(), version=st.integers(1, 3))
def test_new_columns_are_where_pyiceberg_puts_them_with_the_same_ids(
    wanted: list[dict[str, Any]], version: int
) -> None:
    base = table(version, properties={NAME_MAPPING: MAPPING})
    begun = begin(base)
    change = UpdateSchema(begun, name_mapping=begun.table_metadata.name_mapping())
    for one in wanted:
        path = tuple(one["name"].split("."))
        change.add_column(path, TYPE.validate_python(one["type"]), doc=one.get("doc"))
    for one in wanted:
        parent = one["name"].rpartition(".")[0]
        if "after" in one:
            change.move_after(one["name"], f"{parent}.{one['after']}".lstrip("."))
        elif "first" in one:
            change.move_first(one["name"])

    ours, theirs = with_columns(base, *wanted), finish(change)
    compare(ours, theirs)
    mapped, expected = ours.properties[NAME_MAPPING], theirs["properties"][NAME_MAPPING]
    assert json.loads(mapped) == json.loads(expected)


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.lists(st.sampled_from(FIELDS), max_size=4, unique_by=lambda field: (field["source"], len(field))),
        min_size=1,
        max_size=4,
    ),
    version=st.integers(1, 2),
)
def test_partition_fields_get_the_ids_and_names_that_pyiceberg_gives(
    steps: list[list[dict[str, str]]], version: int
) -> None:
    base = table(version)
    for wanted in steps:
        change = UpdateSpec(begin(base))
        keys = [((KEYS[one["source"]],), one.get("transform", "identity")) for one in wanted]
        there = [(field.sources, field.transform) for field in base.default_spec().fields]
        for field in base.default_spec().fields:
            if field.transform != "void" and (field.sources, field.transform) not in keys:
                change.remove_field(field.name)
        stay = [wanted[keys.index(key)] for key in there if key in keys]
        new = [one for one, key in zip(wanted, keys, strict=True) if key not in there]
        for one in new:
            change.add_field(one["source"], parse_transform(one.get("transform", "identity")))

        changed = partitioned(base, *stay, *new)

        compare(changed, finish(change))
        base = changed


@settings(max_examples=30)
@given(
    steps=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(FIELDS),
                st.sampled_from(["asc", "desc"]),
                st.sampled_from([NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST]),
            ),
            max_size=3,
            unique_by=lambda one: (one[0]["source"], one[0].get("transform")),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_orders_get_the_ids_that_pyiceberg_gives(
    steps: list[list[tuple[dict[str, str], str, NullOrder]]],
) -> None:
    base = table()
    for wanted in steps:
        change = UpdateSortOrder(begin(base))
        for field, direction, nulls in wanted:
            add = change.asc if direction == "asc" else change.desc
            add(field["source"], parse_transform(field.get("transform", "identity")), nulls)
        fields = [
            {**field, "direction": direction, "null-order": nulls.value} for field, direction, nulls in wanted
        ]

        changed = sorted_by(base, *fields)

        compare(changed, finish(change))
        base = changed
