"""Row filters that ask a mapping table: looked up with the gateway's rights, at its current state (I103)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cynosure.common.clock import SystemClock
from cynosure.query.coordinator import mappings
from cynosure.query.coordinator.service import StatementService
from cynosure.query.errors import PolicyHides
from cynosure.query.local.engine import LocalEngine
from cynosure.query.settings import QuerySettings
from cynosure.testing.admin import Admin, Grant
from tests.query.coordinator.asking import ask, open_service
from tests.query.governed_world import NS, World, orders

pytestmark = pytest.mark.anyio

REGIONS = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "who", "type": "string", "required": False},
        {"id": 2, "name": "Region", "type": "string", "required": False},
    ],
}


@pytest.fixture
async def service(world: World, tmp_path: Path) -> AsyncIterator[StatementService]:
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    async with open_service(local, file_roots=(world.server.warehouse.as_uri(),)) as opened:
        yield opened
    await local.close()


def pairs(*rows: tuple[str | None, str | None]) -> pa.Table:
    return pa.table(
        {
            "who": pa.array([each[0] for each in rows], pa.string()),
            "Region": pa.array([each[1] for each in rows], pa.string()),
        }
    )


async def let_gateway_read(world: World, table: str) -> None:
    async with world.server.client() as http:
        await Admin(http).grant("lake", "gateway", Grant("TABLE_READ_DATA", NS, table))


async def make(
    world: World, *rows: tuple[str | None, str | None], is_readable: bool = True
) -> tuple[str, str, str]:
    table, mapping = await world.make_table(), await world.make_table(world.fresh("map"), schema=REGIONS)
    for region in ("EU", "US", "AP"):
        await world.append(table, orders(0, 2, region))
    await world.append(mapping, pairs(*rows))
    if is_readable:
        await let_gateway_read(world, mapping)
    policy = await world.restrict(
        table, filter=f"region IN (SELECT region FROM shop.{mapping} WHERE who = current_user())"
    )
    return table, mapping, policy


async def regions(service: StatementService, world: World, user: str, table: str) -> list[Any]:
    sql = f"SELECT DISTINCT region FROM {table} ORDER BY region"
    _, rows = await ask(service, await world.open(user), sql)
    return [each["region"] for each in rows]


async def test_everyone_sees_what_the_mapping_gives_them_now(world: World, service: StatementService):
    table, mapping, policy = await make(
        world, ("ann", "EU"), ("ann", "AP"), ("ann", None), ("bob", "US"), (None, "US")
    )
    assert await regions(service, world, "ann", table) == ["AP", "EU"]
    assert await regions(service, world, "bob", table) == ["US"]
    await world.append(mapping, pairs(("ann", "US")))
    assert await regions(service, world, "ann", table) == ["AP", "EU", "US"]
    info, rows = await ask(service, await world.open("ann"), f"EXPLAIN SELECT * FROM {table} WHERE id = 1")
    text = "\n".join(each["plan"] for each in rows)
    assert f"shop.{policy}" in text
    assert "region in (3 values)" in text
    assert "EU" not in text
    assert mapping not in str(info.tables)


async def test_who_is_not_in_the_mapping_sees_nothing(world: World, service: StatementService):
    table, *_ = await make(world, ("somebody", "EU"))
    assert await regions(service, world, "ann", table) == []
    _, rows = await ask(service, await world.open("ann"), f"SELECT count(*) AS n FROM {table}")
    assert rows == [{"n": 0}]


async def test_a_mapping_that_the_gateway_may_not_read_hides_the_table(
    world: World, service: StatementService
):
    table, *_ = await make(world, ("ann", "EU"), is_readable=False)
    with pytest.raises(PolicyHides, match="own principal"):
        await regions(service, world, "ann", table)


async def test_a_mapping_that_is_restricted_for_the_gateway_hides_the_table(
    world: World, service: StatementService
):
    table, mapping, _ = await make(world, ("ann", "EU"))
    await world.restrict(mapping, filter="region = 'US'")
    with pytest.raises(PolicyHides):
        await regions(service, world, "ann", table)


async def test_too_many_values_hide_the_table(
    world: World, service: StatementService, monkeypatch: pytest.MonkeyPatch
):
    table, *_ = await make(world, *(("ann", f"R{at}") for at in range(5)))
    monkeypatch.setattr(mappings, "MAX_VALUES", 4)
    with pytest.raises(PolicyHides, match="more than 4 values") as raised:
        await regions(service, world, "ann", table)
    assert "R3" not in str(raised.value)


async def test_a_mapping_table_that_is_gone_hides_the_table(world: World, service: StatementService):
    table, mapping, policy = await make(world, ("ann", "EU"))
    await world.send("DELETE", f"namespaces/shop/tables/{mapping}")
    with pytest.raises(PolicyHides) as raised:
        await regions(service, world, "ann", table)
    assert policy in str(raised.value)
