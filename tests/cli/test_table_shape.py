"""`cynosure tables add-columns`, `set-partitioning` and `set-sort-order`."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.cli.table_shape import parse_column, parse_partition_field, parse_sort_field
from cynosure.common.errors import BadInput
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.shaping.sort_order import NewSortField
from cynosure.testing.metadata_files import write_metadata
from tests.cli.running import Cynosure

PLACE = ("--catalog", "lake", "--namespace", "sales")
UUID = "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c11"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
    ],
}


@pytest.fixture
def furnished(cynosure: Cynosure, tmp_path: Path) -> Cynosure:
    """With a table `orders`, which is known only by its metadata file."""
    assert cynosure("catalogs", "create", "lake").code == 0
    file = write_metadata(tmp_path / "data" / "warehouse" / "lake" / "orders", UUID, SCHEMA)
    tables = tmp_path / "tables.jsonl"
    line = {"namespace": ["sales"], "name": "orders", "metadata-location": file}
    tables.write_bytes(msgspec.json.encode(line))
    assert cynosure("tables", "import", "lake", str(tables)).code == 0
    return cynosure


def told(cynosure: Cynosure, *arguments: str) -> Any:
    ended = cynosure(*arguments, "--json")
    assert ended.code == 0, ended.err
    return msgspec.json.decode(ended.out)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("note string", NewColumn(name="note", type="string")),
        (" price   decimal(10, 2) ", NewColumn(name="price", type="decimal(10, 2)")),
        (
            'tags {"type":"list","element":"int","element-required":true}',
            NewColumn(name="tags", type={"type": "list", "element": "int", "element-required": True}),
        ),
        ('{"name":["a.b"],"type":"int","first":true}', NewColumn(name=("a.b",), type="int", first=True)),
    ],
)
def test_a_column_is_a_name_and_a_type_or_json(text: str, column: NewColumn) -> None:
    assert parse_column(text) == column


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("id", NewPartitionField("id")),
        ("identity(id)", NewPartitionField("id")),
        ("day(ts)", NewPartitionField("ts", "day")),
        ("Bucket( 16 , a.b ) AS few", NewPartitionField("a.b", "bucket[16]", "few")),
        ("truncate(4,name)", NewPartitionField("name", "truncate[4]")),
    ],
)
def test_a_partition_field_is_a_column_or_a_transform_of_one(text: str, field: NewPartitionField) -> None:
    assert parse_partition_field(text) == field


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("ts", NewSortField("ts")),
        ("ts desc nulls last", NewSortField("ts", "identity", "desc", "nulls-last")),
        ("ts NULLS FIRST", NewSortField("ts", null_order="nulls-first")),
        ("bucket(8, id) asc", NewSortField("id", "bucket[8]")),
    ],
)
def test_a_sort_field_has_a_direction_and_a_place_for_nulls_or_not(text: str, field: NewSortField) -> None:
    assert parse_sort_field(text) == field


@pytest.mark.parametrize("text", ["", "note", "{", '{"name":"a"}', "a {"])
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_column(text)
    assert refused.value.field == "COLUMN"


@pytest.mark.parametrize("text", ["", "days(ts)", "bucket(id)", "bucket(x, id)", "day()", "truncate(4, )"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="FIELD"):
        parse_partition_field(text)


def test_a_table_gets_columns_partitioning_and_sort_order(furnished: Cynosure) -> None:
    added = told(furnished, "tables", "add-columns", "orders", "note string", "price decimal(10, 2)", *PLACE)
    grouped = told(furnished, "tables", "set-partitioning", "orders", "day(ts)", "bucket(16, id)", *PLACE)
    ordered = told(furnished, "tables", "set-sort-order", "orders", "ts desc nulls last", *PLACE)

    fields = added["metadata"]["schemas"][-1]["fields"]
    assert [(each["id"], each["name"], each["type"]) for each in fields[2:]] == [
        (3, "note", "string"),
        (4, "price", "decimal(10, 2)"),
    ]
    spec = grouped["metadata"]["partition-specs"][-1]["fields"]
    assert [each["name"] for each in spec] == ["ts_day", "id_bucket_16"]
    assert ordered["metadata"]["sort-orders"][-1]["fields"][0]["direction"] == "desc"
    assert ordered["metadata"]["table-uuid"] == UUID


def test_people_read_lines_and_errors_name_the_part(furnished: Cynosure) -> None:
    added = furnished("tables", "add-columns", "orders", "note string", *PLACE)
    twice = furnished("tables", "add-columns", "orders", "note string", *PLACE)
    grouped = furnished("tables", "set-partitioning", "orders", "day(ts)", *PLACE)
    plain = furnished("tables", "set-partitioning", "orders", "--unpartitioned", *PLACE)
    ordered = furnished("tables", "set-sort-order", "orders", "id", *PLACE)
    loose = furnished("tables", "set-sort-order", "orders", "--unsorted", *PLACE)
    neither = furnished("tables", "set-sort-order", "orders", *PLACE)
    both = furnished("tables", "set-partitioning", "orders", "id", "--unpartitioned", *PLACE)

    assert "Table orders has the new columns note." in added.out
    assert twice.code == 1
    assert "Column already exists" in twice.err
    assert "Table orders is partitioned by day(ts)." in grouped.out
    assert "Table orders is not partitioned any more." in plain.out
    assert "Table orders is sorted by id." in ordered.out
    assert "Table orders is not sorted any more." in loose.out
    assert (neither.code, both.code) == (1, 1)
    assert "--unsorted" in neither.err
    assert "--unpartitioned" in both.err
