"""Metadata tables that a scan makes from manifests, compared with those of PyIceberg."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cynosure.common.clock import SystemClock
from cynosure.query.coordinator.service import StatementService
from cynosure.query.errors import NotAllowed, NotReadable
from cynosure.query.local.engine import LocalEngine
from cynosure.query.settings import QuerySettings
from tests.query.coordinator.asking import ask, open_service
from tests.query.governed_world import World, orders

pytestmark = pytest.mark.anyio

SPEC = {
    "spec-id": 0,
    "fields": [
        {"source-id": 2, "field-id": 1000, "name": "region", "transform": "identity"},
        {"source-id": 5, "field-id": 1001, "name": "day_year", "transform": "year"},
    ],
}
KINDS = ("files", "data_files", "delete_files", "entries", "manifests", "partitions")
NOT_OURS = {"readable_metrics", "partition_summaries"}


@pytest.fixture
async def service(world: World, tmp_path: Path) -> AsyncIterator[StatementService]:
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    async with open_service(local, file_roots=(world.server.warehouse.as_uri(),)) as opened:
        yield opened
    await local.close()


def load(world: World, table: str) -> Any:
    """The table in PyIceberg."""
    from pyiceberg.catalog import load_catalog

    rest = world.lake.to_rest()
    return load_catalog("lake", type="rest", uri=rest.uri, **rest.properties).load_table(f"shop.{table}")


async def make_partitioned(world: World) -> str:
    """Files in two partitions, one of them twice, and one that is gone."""
    table = await world.make_table(spec=SPEC)

    def write() -> None:
        found = load(world, table)
        found.append(orders(0, 3, "EU"))
        found.append(pa.concat_tables([orders(3, 2, "EU"), orders(5, 4, "US")]))
        found.append(orders(9, 1, "gone"))
        found.delete("region = 'gone'")

    await asyncio.to_thread(write)
    return table


def ours(found: pa.Table) -> list[dict[str, Any]]:
    """Rows of PyIceberg, with the columns that we have."""
    return found.select([name for name in found.column_names if name not in NOT_OURS]).to_pylist()


def comparable(rows: list[dict[str, Any]], names: set[str]) -> list[str]:
    """PyIceberg says nothing of zones, and that there is nothing in its own ways."""

    def plain(value: Any) -> Any:
        return value.replace(tzinfo=None) if isinstance(value, datetime) else value or 0

    return sorted(repr(sorted((name, plain(row[name])) for name in names)) for row in rows)


@pytest.mark.parametrize("kind", KINDS)
async def test_rows_are_those_of_another_implementation(world: World, service: StatementService, kind: str):
    table = await make_partitioned(world)
    expected = await asyncio.to_thread(lambda: ours(getattr(load(world, table).inspect, kind)()))
    _, rows = await ask(service, await world.open("ann"), f"SELECT * FROM {table}.{kind}")
    assert len(rows) == len(expected)
    if kind == "entries":
        rows = [{**row.pop("data_file"), **row} for row in rows]
        expected = [{**row.pop("data_file"), **row} for row in expected]
    if expected:
        names = set(expected[0]) & set(rows[0]) - {"partition"}
        assert len(names) >= min(len(expected[0]), 9)
        assert comparable(rows, names) == comparable(expected, names)
        if "partition" in expected[0]:
            assert {repr(row["partition"]) for row in rows} == {repr(row["partition"]) for row in expected}


async def test_they_can_be_asked_like_any_table(world: World, service: StatementService):
    table = await make_partitioned(world)
    ann = await world.open("ann")
    sql = (
        "SELECT f.partition.region, count(*) AS files, sum(f.record_count) AS rows "
        f"FROM {table}.files f JOIN {table}.snapshots s ON s.operation = 'append' "
        "WHERE f.record_count > 0 GROUP BY 1 ORDER BY 1"
    )
    _, rows = await ask(service, ann, sql)
    assert [(each["region"], each["files"], each["rows"]) for each in rows] == [("EU", 6, 15), ("US", 3, 12)]
    _, rows = await ask(service, ann, f"SELECT count(*) AS n FROM {table}.files")
    assert rows == [{"n": 3}]
    _, rows = await ask(service, ann, f"EXPLAIN SELECT path FROM {table}.manifests")
    assert "  metadata of the table, from its manifests" in [each["plan"] for each in rows]


async def test_old_snapshots_have_their_own_files(world: World, service: StatementService):
    table = await make_partitioned(world)
    ann = await world.open("ann")
    _, snapshots = await ask(service, ann, f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
    first = snapshots[0]["snapshot_id"]
    _, rows = await ask(service, ann, f"SELECT record_count FROM {table}.files VERSION AS OF {first}")
    assert rows == [{"record_count": 3}]


async def test_files_of_all_specs_are_in_one_struct(world: World, service: StatementService):
    table = await world.make_table(spec=SPEC)

    def write() -> None:
        found = load(world, table)
        found.append(orders(0, 3, "EU"))
        with found.update_spec() as update:
            update.remove_field("day_year")
            update.add_field("day", "month", "day_month")
        found.append(orders(3, 2, "US"))

    await asyncio.to_thread(write)
    ann = await world.open("ann")
    _, rows = await ask(service, ann, f"SELECT partition, spec_id FROM {table}.files ORDER BY spec_id")
    assert rows == [
        {"partition": {"region": "EU", "day_year": 54, "day_month": None}, "spec_id": 0},
        {"partition": {"region": "US", "day_year": None, "day_month": 657}, "spec_id": 1},
    ]
    sql = f"SELECT partition.region, spec_id, record_count FROM {table}.partitions ORDER BY 1"
    _, rows = await ask(service, ann, sql)
    assert [tuple(each.values()) for each in rows] == [("EU", 0, 3), ("US", 1, 2)]


async def test_a_table_without_snapshots_has_no_rows_there(world: World, service: StatementService):
    table = await world.make_table()
    ann = await world.open("ann")
    for kind in KINDS:
        _, rows = await ask(service, ann, f"SELECT * FROM {table}.{kind}")
        assert rows == []


@pytest.mark.parametrize("policy", [{"filter": "region = 'EU'"}, {"columns": {"owner": "replace-with-null"}}])
async def test_whoever_is_restricted_is_told_nothing(
    world: World, service: StatementService, policy: dict[str, Any]
):
    table = await make_partitioned(world)
    await world.restrict(table, **policy, except_roles=["bob_role"])
    for kind in KINDS:
        with pytest.raises(NotAllowed, match="Policies of this table"):
            await ask(service, await world.open("ann"), f"SELECT * FROM {table}.{kind}")
    _, rows = await ask(service, await world.open("bob"), f"SELECT count(*) AS n FROM {table}.files")
    assert rows == [{"n": 3}]


async def test_a_manifest_that_is_broken_is_an_error_without_its_path(
    world: World, service: StatementService
):
    table = await make_partitioned(world)
    ann = await world.open("ann")
    _, rows = await ask(service, ann, f"SELECT path FROM {table}.manifests")
    path = Path(rows[0]["path"].removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(NotReadable) as failed:
        await ask(service, ann, f"SELECT * FROM {table}.files")
    assert path.name not in str(failed.value)
