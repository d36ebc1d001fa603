"""PyIceberg lets us plan its scans (`scan-planning-mode=server`), and reads what it reads by itself."""

from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import RESTError
from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    Not,
    NotNull,
    StartsWith,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, StructType, TimestampType

from tests.engines.planning_server import PLANNED, VENDED, PlanningLake, open_planning_lake
from tests.engines.poison import POISON
from tests.engines.pyiceberg_client import DAY_US, connect

pytestmark = pytest.mark.s3

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "city", StringType(), required=False),
    NestedField(3, "at", TimestampType(), required=False),
    NestedField(4, "price", DecimalType(9, 2), required=False),
    NestedField(5, "part", StructType(NestedField(6, "code", StringType(), required=False)), required=False),
)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("city", pa.string()),
        pa.field("at", pa.timestamp("us")),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("part", pa.struct([pa.field("code", pa.string())])),
    ]
)
FILTERS: list[BooleanExpression] = [
    EqualTo("city", "Oslo"),
    And(GreaterThanOrEqual("id", 3), LessThan("id", 8)),
    In("id", {1, 9, 11}),
    Not(In("city", {"Oslo", "Rome"})),
    StartsWith("city", "L"),
    LessThan("at", "1970-01-05T00:00:00"),
    EqualTo("price", Decimal("4.50")),
    StartsWith("part.code", "c1"),
    IsNull("part.code"),
    And(NotNull("price"), EqualTo("id", 10)),
]


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlanningLake]:
    with open_planning_lake(tmp_path_factory.mktemp("plans")) as lake:
        yield lake


@pytest.fixture(scope="module")
def local(lake: PlanningLake) -> Iterator[Catalog]:
    with connect(lake.served.to_rest(), **VENDED) as client:
        client.create_namespace("ns")
        yield client


@pytest.fixture(scope="module")
def planned(lake: PlanningLake, local: Catalog) -> Iterator[Catalog]:
    with connect(lake.served.to_rest(), **VENDED, **PLANNED) as client:
        yield client


@pytest.fixture(scope="module")
def table(local: Catalog) -> Table:
    """Twelve rows in files of several partitions, of two specs."""
    table = local.create_table(
        "ns.t", SCHEMA, partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
    )
    table.append(make_rows(1, 7))
    with table.update_spec() as change:
        change.remove_field("city")
        change.add_field("id", BucketTransform(3), "bucket")
    table.append(make_rows(7, 13))
    return table


def make_rows(first: int, end: int) -> pa.Table:
    ids = range(first, end)
    columns = {
        "id": list(ids),
        "city": [["Oslo", "Rome", "Lima"][number % 3] for number in ids],
        "at": [number * DAY_US for number in ids],
        "price": [None if number % 5 == 0 else Decimal(number) / 2 for number in ids],
        "part": [{"code": None if number % 4 == 0 else f"c{number}"} for number in ids],
    }
    return pa.table(columns, schema=ARROW)


def read(table: Table, **scan: object) -> list[dict[str, object]]:
    found = table.scan(**scan).to_arrow()  # type: ignore[arg-type]
    return sorted(found.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("condition", FILTERS, ids=str)
def test_a_filter_finds_what_it_finds_without_us(
    lake: PlanningLake, local: Catalog, planned: Catalog, table: Table, condition: BooleanExpression
):
    expected = read(local.load_table("ns.t"), row_filter=condition)
    before = lake.count("planTableScan")

    found = read(planned.load_table("ns.t"), row_filter=condition)

    assert found == expected
    assert lake.count("planTableScan") == before + 1


def test_a_plan_of_several_pages_is_read_to_its_end(lake: PlanningLake, planned: Catalog, table: Table):
    before = lake.count("fetchScanTasks")

    found = read(planned.load_table("ns.t"), selected_fields=("id",))

    assert [row["id"] for row in found] == [*range(1, 13)]
    assert lake.count("fetchScanTasks") > before


def test_an_older_snapshot_is_planned(planned: Catalog, table: Table):
    first = table.snapshots()[0].snapshot_id

    found = read(planned.load_table("ns.t"), snapshot_id=first)

    assert [row["id"] for row in found] == [*range(1, 7)]


def test_rows_are_counted_from_the_plan(planned: Catalog, table: Table):
    assert planned.load_table("ns.t").scan(EqualTo("city", "Rome")).count() == 4


def test_an_unknown_column_is_refused_with_its_name(lake: PlanningLake, planned: Catalog, table: Table):
    # PyIceberg sends names as they are and leaves it to the server to know them.
    with pytest.raises((ValueError, RESTError), match="nothing"):
        read(planned.load_table("ns.t"), row_filter=EqualTo("nothing", 1))


def test_a_partition_that_is_null_is_beyond_pyiceberg(local: Catalog, planned: Catalog):
    """Its model of a content file has no null among the partition values, which the protocol allows."""
    table = local.create_table(
        "ns.nulls", SCHEMA, partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
    )
    rows = make_rows(1, 2)
    table.append(rows.set_column(1, ARROW.field("city"), pa.nulls(1, pa.string())))

    assert [row["id"] for row in read(table)] == [1]
    with pytest.raises(ValidationError, match="partition"):
        read(planned.load_table("ns.nulls"))
