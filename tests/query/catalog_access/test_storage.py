"""Files of an S3 server: credentials that read, are renewed, and are missing where nobody can give any."""

from dataclasses import replace
from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.query.catalog_access.port import OpenedTable, TableName
from cynosure.query.local.engine import LocalEngine
from cynosure.query.settings import QuerySettings
from cynosure.storage.errors import StorageRefused
from cynosure.testing.s3_servers import S3Server
from tests.query.coordinator.asking import ask, open_service
from tests.query.governed_world import NS, READ, World, orders

pytestmark = pytest.mark.anyio


async def open_lake(world: World, store: S3Server) -> tuple[World, str]:
    """Another catalog of the same server, on S3, and somebody who may read there."""
    lake = await world.server.create_catalog_on(store, world.fresh("s3lake"))
    other = replace(world, lake=lake)
    await other.send("POST", "namespaces", {"namespace": list(NS)})
    return other, await other.add_user(world.fresh("reader"), *READ)


async def test_credentials_read_and_are_renewed(world: World, sts_server: S3Server, tmp_path: Path):
    lake, user = await open_lake(world, sts_server)
    table = await lake.make_table()
    await lake.append(table, orders(0, 3, "EU"))
    await lake.append(table, orders(3, 3, "US"))
    await lake.restrict(table, filter="region = 'EU'")
    session = await lake.open(user)
    opened = await session.open_name(TableName(lake.lake.name, NS, table), None)
    assert isinstance(opened, OpenedTable)
    planned = await session.plan(opened, (1,), TRUE)
    now_ms = SystemClock().now_us() // 1000
    assert planned.credentials.expires_ms > now_ms
    assert planned.credentials.properties["s3.session-token"]
    assert planned.places
    assert planned.renew is not None
    newer = await planned.renew()
    assert newer.number > planned.credentials.number
    assert newer.properties.keys() == planned.credentials.properties.keys()
    local = LocalEngine(QuerySettings(), spill_dir=tmp_path, clock=SystemClock())
    async with open_service(local) as service:
        _, rows = await ask(service, session, f"SELECT id FROM {table} ORDER BY id", catalog=lake.lake.name)
        assert [each["id"] for each in rows] == [0, 1, 2]
    await local.close()


@pytest.mark.parametrize(("renews", "minutes"), [(True, 15), (False, 60)])
async def test_credentials_that_are_renewed_live_for_15_minutes_and_others_as_long_as_any_clients(
    world: World, sts_server: S3Server, renews: bool, minutes: int
):
    lake, user = await open_lake(world, sts_server)
    table = await lake.make_table()
    await lake.append(table, orders(0, 3, "EU"))
    session = await lake.make_sessions(renews_credentials=renews).open(None, lake.token_of(user))
    opened = await session.open_name(TableName(lake.lake.name, NS, table), None)
    assert isinstance(opened, OpenedTable)
    planned = await session.plan(opened, (1,), TRUE)
    assert planned.renew is not None
    for given in (planned.credentials, await planned.renew()):
        left_s = given.expires_ms / 1000 - SystemClock().now_us() / 1_000_000
        # New, or from memory: at least what the gateway renews in time, without hurry.
        assert (minutes - 5) * 60 < left_s <= minutes * 60 + 5


async def test_without_credentials_it_is_said_what_to_do(world: World, plain_s3_server: S3Server):
    lake, user = await open_lake(world, plain_s3_server)
    table = await lake.make_table()
    await lake.append(table, orders(0, 3, "EU"))
    session = await lake.open(user)
    opened = await session.open_name(TableName(lake.lake.name, NS, table), None)
    assert isinstance(opened, OpenedTable)
    with pytest.raises(StorageRefused) as raised:
        await session.plan(opened, (1,), TRUE)
    assert "token service" in raised.value.fix
