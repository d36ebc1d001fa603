"""The same updates given to PyIceberg must give the same table.

Where PyIceberg differs from the reference implementation we follow the latter, and the comparison leaves
that out:

- `last-updated-ms`, and times in the snapshot log, when the request brings no snapshot: PyIceberg reads the
  clock.
- After remove-snapshots PyIceberg forgets the parents of those that stay and keeps history with gaps; it also
  keeps partition statistics of removed snapshots.
- PyIceberg keeps heads of main in the log that the same request replaced: one request here moves main once.
- PyIceberg takes ids of schemas, specs and orders from the client, and adds equal ones again: the requests
  here bring new ones with the id that the table would choose.
- PyIceberg removes only what is there; we ignore the rest: the requests here name what is there.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadataUtil, new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import TableUpdate, update_table_metadata
from pyiceberg.typedef import IcebergBaseModel

from cynosure.iceberg.metadata import TableMetadata, encode_metadata, parse_metadata
from tests.iceberg.samples import NOW_MS, UUID, add, encoded, new_table, set_ref, snapshot, to_json, update

UPDATES = TypeAdapter(tuple[TableUpdate, ...])
PRIMITIVES = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz"]
PRIMITIVES += ["string", "uuid", "binary", "fixed[5]", "decimal(9, 2)"]


def normal(document: dict[str, Any]) -> dict[str, Any]:
    """Without what is spelled differently but means the same."""
    document = json.loads(json.dumps(document))
    for schema in document["schemas"]:
        if not schema.get("identifier-field-ids"):
            schema.pop("identifier-field-ids", None)
    for name in ("schema", "partition-spec"):
        document.pop(name, None)
    for name in ("snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics"):
        document.setdefault(name, [])
    if document.get("current-snapshot-id") is None:
        document["current-snapshot-id"] = -1
    # Version 1 has neither; PyIceberg writes some of them.
    document.setdefault("last-sequence-number", 0)
    for one in document["snapshots"]:
        one.setdefault("sequence-number", 0)
    return document


def by_pyiceberg(table: TableMetadata, updates: list[dict[str, Any]]) -> dict[str, Any]:
    base = TableMetadataUtil.parse_raw(encode_metadata(table).decode())
    result = update_table_metadata(base, UPDATES.validate_json(to_json(updates)), enforce_validation=True)
    # The method of the common base class: that of version 3 refuses, because PyIceberg does not write it yet.
    return normal(json.loads(IcebergBaseModel.model_dump_json(result, by_alias=True, exclude_none=True)))


@st.composite
def requests(draw: st.DrawFn, table: TableMetadata, number: int) -> list[dict[str, Any]]:
    """One request that the table accepts."""
    snapshots = [*table.snapshots.keys()]
    updates: list[dict[str, Any]] = []
    kinds = draw(
        st.lists(
            st.sampled_from(sorted(KINDS)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    for alone in ("remove", "unref", "upgrade"):
        if alone in kinds:
            kinds = [alone]
    for kind in kinds:
        updates += draw(KINDS[kind](table, number, snapshots))
    return updates


def properties(table, number, snapshots):
    return st.dictionaries(st.sampled_from("abcde"), st.text(max_size=5), min_size=1).map(
        lambda values: [{"action": "set-properties", "updates": values}]
    )


def unset(table, number, snapshots):
    names = sorted(table.properties)
    if not names:
        return st.just([])
    return st.lists(st.sampled_from(names), min_size=1, unique=True).map(
        lambda gone: [{"action": "remove-properties", "removals": gone}]
    )


def location(table, number, snapshots):
    return st.just([{"action": "set-location", "location": f"s3://bucket/{number}"}])


def schema(table, number, snapshots):
    column = {
        "id": table.last_column_id + 1,
        "name": f"column_{number}",
        "required": False,
        "type": "string",
        "doc": "d",
    }
    columns = [*encoded(table)["schemas"][-1]["fields"], column]
    id_ = max(one.value.schema_id for one in table.schemas) + 1
    added = {
        "action": "add-schema",
        "schema": {"type": "struct", "schema-id": id_, "fields": columns},
        "last-column-id": table.last_column_id + 1,
    }
    return st.sampled_from([[added], [added, {"action": "set-current-schema", "schema-id": -1}]])


def spec(table, number, snapshots):
    id_ = max(one.value.spec_id for one in table.partition_specs) + 1
    field_id = 1000 if table.format_version == 1 else table.last_partition_id + 1
    field = {"source-id": 1, "field-id": field_id, "transform": f"bucket[{number + 1}]", "name": f"b{number}"}
    added = {"action": "add-spec", "spec": {"spec-id": id_, "fields": [field]}}
    return st.sampled_from([[added], [added, {"action": "set-default-spec", "spec-id": -1}]])


def order(table, number, snapshots):
    id_ = max(one.value.order_id for one in table.sort_orders) + 1
    field = {
        "source-id": 1,
        "transform": f"bucket[{number + 1}]",
        "direction": "desc",
        "null-order": "nulls-last",
    }
    added = {"action": "add-sort-order", "sort-order": {"order-id": id_, "fields": [field]}}
    return st.sampled_from([[added], [added, {"action": "set-default-sort-order", "sort-order-id": -1}]])


def write(table, number, snapshots):
    id_ = 1000 + number
    document = snapshot(table, id_)
    branches = [name for name, ref in table.refs.items() if ref.value.type == "branch"]
    moves = [[], *([set_ref(name, id_)] for name in {"main", "dev", *branches})]
    return st.sampled_from(moves).map(lambda move: [add(document), *move])


def ref(table, number, snapshots):
    if not snapshots:
        return st.just([])
    return st.one_of(
        st.builds(
            lambda id_: [set_ref(f"tag{number}", id_, "tag", max_ref_age_ms=number + 1)],
            st.sampled_from(snapshots),
        ),
        st.builds(
            lambda id_: [set_ref(f"branch{number}", id_, min_snapshots_to_keep=2, max_snapshot_age_ms=9)],
            st.sampled_from(snapshots),
        ),
    )


def unref(table, number, snapshots):
    if not table.refs:
        return st.just([])
    return st.sampled_from(sorted(table.refs)).map(
        lambda name: [{"action": "remove-snapshot-ref", "ref-name": name}]
    )


def statistics(table, number, snapshots):
    if not snapshots:
        return st.just([])

    def about(id_):
        file = {
            "snapshot-id": id_,
            "statistics-path": f"s3://bucket/{number}.puffin",
            "file-size-in-bytes": number,
            "file-footer-size-in-bytes": 2,
            "blob-metadata": [],
        }
        return [{"action": "set-statistics", "snapshot-id": id_, "statistics": file}]

    return st.sampled_from(snapshots).map(about)


def no_statistics(table, number, snapshots):
    known = [*table.statistics.keys()]
    return (
        st.sampled_from(known).map(lambda id_: [{"action": "remove-statistics", "snapshot-id": id_}])
        if known
        else st.just([])
    )


def partition_statistics(table, number, snapshots):
    if not snapshots:
        return st.just([])

    def about(id_):
        file = {
            "snapshot-id": id_,
            "statistics-path": f"s3://bucket/{number}.parquet",
            "file-size-in-bytes": number,
        }
        return [{"action": "set-partition-statistics", "partition-statistics": file}]

    return st.sampled_from(snapshots).map(about)


def remove(table, number, snapshots):
    if not snapshots:
        return st.just([])
    return st.lists(st.sampled_from(snapshots), min_size=1, unique=True).map(
        lambda ids: [{"action": "remove-snapshots", "snapshot-ids": ids}]
    )


def upgrade(table, number, snapshots):
    # PyIceberg does not upgrade to version 3 yet.
    if table.format_version == 3:
        return st.just([])
    return st.just([{"action": "upgrade-format-version", "format-version": 2}])


KINDS = {
    "properties": properties,
    "unset": unset,
    "location": location,
    "schema": schema,
    "spec": spec,
    "order": order,
    "write": write,
    "ref": ref,
    "unref": unref,
    "statistics": statistics,
    "no-statistics": no_statistics,
    "partition-statistics": partition_statistics,
    "remove": remove,
    "upgrade": upgrade,
}


def compare(ours: dict[str, Any], theirs: dict[str, Any], updates: list[dict[str, Any]]) -> None:
    actions = {one["action"] for one in updates}
    if "add-snapshot" not in actions:
        for document in (ours, theirs):
            del document["last-updated-ms"]
            for entry in document["snapshot-log"]:
                del entry["timestamp-ms"]
    if "remove-snapshots" in actions:
        removed = updates[0]["snapshot-ids"]
        for document in (ours, theirs):
            for one in document["snapshots"]:
                if one.get("parent-snapshot-id") in (*removed, None):
                    one.pop("parent-snapshot-id", None)
            del document["partition-statistics"]
        kept = theirs.pop("snapshot-log")
        assert ours["snapshot-log"] == kept[len(kept) - len(ours["snapshot-log"]) :]
        del ours["snapshot-log"]
    assert ours == theirs


@given(st.data(), st.sampled_from([1, 2, 3]))
def test_updates_give_the_table_that_pyiceberg_gives(data, version):
    table = new_table(format_version=version)
    for number in range(data.draw(st.integers(1, 6))):
        updates = data.draw(requests(table, number))
        if not updates:
            continue
        theirs = by_pyiceberg(table, updates)

        table = update(table, *updates)

        compare(normal(encoded(table)), theirs, updates)
        assert parse_metadata(encode_metadata(table)) == table


@st.composite
def types(draw: st.DrawFn, ids: list[int], depth: int = 0) -> Any:
    kind = draw(
        st.sampled_from(["primitive", "primitive", "struct", "list", "map"] if depth < 3 else ["primitive"])
    )
    if kind == "struct":
        return {"type": "struct", "fields": draw(fields(ids, depth + 1))}
    if kind == "list":
        return {
            "type": "list",
            "element-id": ids.pop(),
            "element": draw(types(ids, depth + 1)),
            "element-required": draw(st.booleans()),
        }
    if kind == "map":
        return {
            "type": "map",
            "key-id": ids.pop(),
            "key": draw(st.sampled_from(PRIMITIVES)),
            "value-id": ids.pop(),
            "value": draw(types(ids, depth + 1)),
            "value-required": draw(st.booleans()),
        }
    return draw(st.sampled_from(PRIMITIVES))


@st.composite
def fields(draw: st.DrawFn, ids: list[int], depth: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "id": ids.pop(),
            "name": f"f{at}",
            "required": draw(st.booleans()),
            "type": draw(types(ids, depth)),
            **draw(st.sampled_from([{}, {"doc": "words"}])),
        }
        for at in range(draw(st.integers(1, 3)))
    ]


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    ids = random.Random(draw(st.integers(0, 1000))).sample(range(1, 1000), 500)
    columns = [{"id": ids.pop(), "name": "key", "required": True, "type": "long"}, *draw(fields(ids))]
    identifiers = draw(st.sampled_from([[], [columns[0]["id"]]]))
    return {"type": "struct", "schema-id": 0, "fields": columns, "identifier-field-ids": identifiers}


@given(schemas())
def test_columns_are_numbered_as_pyiceberg_numbers_them(document):
    theirs = assign_fresh_schema_ids(Schema.model_validate_json(json.dumps(document)))

    table = new_table(schema=document)

    assert json.loads(table.schemas[0].json) == json.loads(theirs.model_dump_json(exclude_none=True))
    assert table.last_column_id == theirs.highest_field_id


@given(schemas(), st.sampled_from([1, 2]), st.booleans(), st.booleans())
def test_a_new_table_is_the_one_that_pyiceberg_makes(document, version, is_partitioned, is_sorted):
    key = document["fields"][0]["id"]
    partition = {"source-id": key, "field-id": 1000, "transform": "bucket[4]", "name": "shard"}
    spec_ = {"spec-id": 0, "fields": [partition] if is_partitioned else []}
    sorting = {"source-id": key, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
    order_ = {"order-id": 1, "fields": [sorting]} if is_sorted else {"order-id": 0, "fields": []}
    theirs = new_table_metadata(
        schema=Schema.model_validate_json(json.dumps(document)),
        partition_spec=PartitionSpec.model_validate_json(json.dumps(spec_)),
        sort_order=SortOrder.model_validate_json(json.dumps(order_)),
        location="s3://bucket/table",
        properties={"format-version": str(version), "write.parquet.compression-codec": "zstd"},
    )

    ours = new_table(
        schema=document, partition_spec=spec_, sort_order=order_, properties={"format-version": str(version)}
    )

    expected = normal(json.loads(theirs.model_dump_json(by_alias=True, exclude_none=True)))
    expected |= {"table-uuid": UUID, "last-updated-ms": NOW_MS}
    assert normal(encoded(ours)) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_what_we_write(version):
    table = new_table(format_version=version)
    for id_ in range(1, 4):
        table = update(table, add(snapshot(table, id_)), set_ref("main", id_))

    for short in ("all", "refs"):
        theirs = TableMetadataUtil.parse_raw(encode_metadata(table, snapshots=short).decode())
        assert theirs.current_snapshot().snapshot_id == 3
    assert TableMetadataUtil.parse_raw(encode_metadata(new_table(format_version=version)).decode())
