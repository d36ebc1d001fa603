"""Tables that PyIceberg wrote, and its own reader as the oracle."""

import asyncio
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from cynosure.testing.catalog_server import start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.scan_kit import read_table, reference, task_from_pyiceberg
from tests.engines.pyiceberg_client import connect

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "flag", BooleanType()),
    NestedField(3, "small", IntegerType()),
    NestedField(4, "single", FloatType()),
    NestedField(5, "twice", DoubleType()),
    NestedField(6, "money", DecimalType(12, 3)),
    NestedField(7, "text", StringType()),
    NestedField(8, "raw", BinaryType()),
    NestedField(9, "exact", FixedType(4)),
    NestedField(10, "key", UUIDType()),
    NestedField(11, "day", DateType()),
    NestedField(12, "seen", TimestampType()),
    NestedField(13, "zoned", TimestamptzType()),
    NestedField(
        14, "point", StructType(NestedField(20, "x", IntegerType()), NestedField(21, "y", StringType()))
    ),
    NestedField(
        15, "many", ListType(22, StructType(NestedField(23, "n", LongType())), element_required=False)
    ),
    NestedField(16, "named", MapType(24, StringType(), 25, DoubleType(), value_required=False)),
)


def make_rows(chance: random.Random, start: int, count: int) -> list[dict[str, Any]]:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    when = datetime(1960, 1, 1) + timedelta(microseconds=chance.randrange(10**17))  # noqa: DTZ001
    return [
        {
            "id": start + at,
            "flag": maybe(chance.random() < 0.5),
            "small": maybe(chance.randrange(-(2**31), 2**31)),
            "single": maybe(chance.choice([0.5, -0.0, 3.25])),
            "twice": maybe(chance.random()),
            "money": maybe(Decimal(chance.randrange(-(10**9), 10**9)).scaleb(-3)),
            "text": maybe(chance.choice(["a", "", "Zürich", "\U0001f600"])),
            "raw": maybe(chance.randbytes(3)),
            "exact": maybe(chance.randbytes(4)),
            "key": maybe(uuid.UUID(int=chance.getrandbits(128)).bytes),
            "day": maybe(date(1950, 1, 1) + timedelta(days=chance.randrange(40_000))),
            "seen": maybe(when),
            "zoned": maybe(when.replace(tzinfo=UTC)),
            "point": maybe({"x": maybe(at), "y": maybe("y")}),
            "many": maybe([maybe({"n": maybe(at)}) for _ in range(chance.randrange(3))]),
            "named": maybe([(f"k{each}", maybe(1.5)) for each in range(chance.randrange(3))]),
        }
        for at in range(count)
    ]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A catalog of ours on local files, as PyIceberg sees it."""
    directory = tmp_path_factory.mktemp("pyiceberg")
    with Processes(directory) as processes:
        server = asyncio.run(start_catalog_server(processes, directory))
        made = connect(asyncio.run(server.create_catalog("local")).to_rest())
        made.create_namespace("ns")
        yield made


def append(table: Any, rows: list[dict[str, Any]]) -> None:
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    table.append(pa.Table.from_pylist(rows, schema=schema))


def normal(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        key = row.get("key")
        row["key"] = (
            str(uuid.UUID(bytes=key)) if isinstance(key, bytes) else None if key is None else str(key)
        )
    return sorted(rows, key=lambda row: row["id"])


def test_all_types_and_nesting(catalog: Catalog) -> None:
    table = catalog.create_table("ns.all", SCHEMA)
    chance = random.Random(3)
    append(table, make_rows(chance, 0, 300))
    append(table, make_rows(chance, 300, 40))
    task = task_from_pyiceberg(table, file_roots=[table.location()])
    assert normal(read_table(task)) == normal(table.scan().to_arrow())
    for filter_, text in (
        (reference("gt", 3, 0), "small > 0"),
        (reference("eq", 7, "Zürich"), "text = 'Zürich'"),
        (reference("is-null", table.schema().find_field("point.x").field_id), "point.x is null"),
        (reference("lt-eq", 11, "1990-05-05"), "day <= '1990-05-05'"),
    ):
        filtered = replace(task, row_filter=msgspec.json.encode(filter_))
        assert normal(read_table(filtered)) == normal(table.scan(row_filter=text).to_arrow()), text


def test_evolution_and_identity_partitions(catalog: Catalog) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "day", DateType()),
        NestedField(3, "n", IntegerType()),
        NestedField(
            4, "s", StructType(NestedField(5, "a", IntegerType()), NestedField(6, "b", StringType()))
        ),
    )
    table = catalog.create_table("ns.evolved", schema)
    with table.update_spec() as spec:
        spec.add_identity("day")

    def write(start: int) -> None:
        fields = {field.name for field in table.schema().fields}
        rows = [
            {
                "id": start + at,
                "day": date(2020, 1, 1 + at % 3),
                "n": at,
                "m": at,
                "s": {"a": at, "b": "x", "c": at},
            }
            for at in range(30)
        ]
        append(table, [{name: value for name, value in row.items() if name in fields} for row in rows])

    write(0)
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.rename_column("n", "m")
        update.add_column(("s", "c"), LongType())
        update.rename_column(("s", "b"), "text")
        update.move_first("day")
    write(100)
    with table.update_schema() as update:
        update.delete_column("m")
        update.add_column("m", StringType())
        update.delete_column(("s", "a"))
    task = task_from_pyiceberg(table, file_roots=[table.location()])
    expected = table.scan().to_arrow()
    found = read_table(task)
    assert found.column_names == ["day", "id", "s", "m"]
    assert normal(found) == normal(expected)
    assert found.num_rows == 60


def test_deletes_of_pyiceberg_rewrite_files(catalog: Catalog) -> None:
    table = catalog.create_table("ns.deleted", SCHEMA)
    append(table, make_rows(random.Random(1), 0, 100))
    table.delete("id < 40")
    task = task_from_pyiceberg(table, file_roots=[table.location()], columns=["id"])
    assert sorted(read_table(task).column("id").to_pylist()) == list(range(40, 100))
