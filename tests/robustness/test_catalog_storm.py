"""Commits through the REST protocol while servers are killed, stopped, or lose their storage."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cynosure.testing.catalog_server import (
    CatalogServer,
    ServedCatalog,
    start_catalog_server,
)
from cynosure.testing.catalog_storm.clients import NAMESPACE, Clients, Ledger
from cynosure.testing.catalog_storm.judge import judge, metadata_files
from cynosure.testing.catalog_storm.places import PlaceStorm
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import make_credential
from cynosure.testing.s3_servers import find_s3_servers

from .conftest import IS_SOAK
from .lakes import problems_of
from .phoenix import start_phoenix, until

pytestmark = pytest.mark.anyio

TABLES = ["t0", "t1", "t2"]


@asynccontextmanager
async def blowing(clients: Clients, number: int, *, first: int = 0) -> AsyncIterator[None]:
    """Clients that commit inside the block. At its end what is in flight is cut off."""
    task = asyncio.create_task(clients.blow(number, first=first))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("part", range(10 if IS_SOAK else 1))
async def test_kill_9_at_random_moments_loses_no_acknowledged_commit(
    processes: Processes, store_url: str, tmp_path: Path, rng: random.Random, part: int
) -> None:
    """I4, I5: and every table loads, and its file says what the server says."""
    phoenix = await start_phoenix(processes, tmp_path, store_url)
    lake = await phoenix.server.create_catalog("lake")
    ledger = Ledger()
    clients = Clients(lake, TABLES, ledger, rng.getrandbits(32))
    await clients.create_tables()

    async with blowing(clients, 8):
        for _ in range(20):
            # A life that was acknowledged something, so that none is killed before it served.
            told = ledger.count("acknowledged")
            await until(lambda told=told: ledger.count("acknowledged") > told)
            await asyncio.sleep(rng.uniform(0.0, 0.2))
            await phoenix.kill()
        told = ledger.count("acknowledged")
        await until(lambda: ledger.count("acknowledged") > told + 10)

    await phoenix.server.process.stop()
    await phoenix.server.process.start()
    assert await judge(lake, TABLES, ledger) == []
    assert ledger.unexpected() == []
    assert ledger.count("unknown") == 0, "a server that answers knows what it did"

    # What the killed ones left behind goes, and nothing that a table names.
    named = metadata_files([await load(lake, name) for name in TABLES])
    swept = await phoenix.server.run_cli("tables", "sweep", "lake", "--grace", "0s", "--thorough", "--json")
    left = set(phoenix.server.warehouse.rglob("*.metadata.json"))
    assert left >= named
    assert json.loads(swept)["files"] >= len(named)
    assert await strays_in(phoenix.server, "lake") == []
    assert await problems_of(phoenix.server) == []
    assert await judge(lake, TABLES, ledger) == []
    assert await phoenix.server.process.stop() == 0


@pytest.mark.s3
@pytest.mark.parametrize("part", range(10 if IS_SOAK else 1))
async def test_kill_9_among_tables_that_want_the_same_places_leaves_none_overlapping(
    processes: Processes, tmp_path: Path, rng: random.Random, part: int
) -> None:
    """I27, I46, I51, I60, I61, I62: and who is restricted reads nothing without its restriction."""
    phoenix = await start_phoenix(processes, tmp_path, f"sqlite:{tmp_path}/store.db")
    store = find_s3_servers()["minio"]
    base = store.fresh_location("storms")
    lake = await phoenix.server.create_catalog_on(store, "lake", location=base)
    storm = PlaceStorm(phoenix.server, lake, base, rng.getrandbits(32))
    await storm.prepare()

    blowing = asyncio.create_task(storm.blow(6))
    for _ in range(8):
        told, read = storm.told.total(), storm.restricted_reads
        await until(
            lambda told=told, read=read: storm.told.total() > told + 10 and storm.restricted_reads > read
        )
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        await phoenix.kill()
    told = storm.told.total()
    await until(lambda: storm.told.total() > told + 10)
    blowing.cancel()
    with suppress(asyncio.CancelledError):
        await blowing

    assert storm.unexpected == []
    assert {"create", "stage", "send_files", "drop", "attach"} <= storm.told.keys()
    assert await storm.judge() == []
    assert await problems_of(phoenix.server) == []
    assert await phoenix.server.process.stop() == 0
    store.delete_below(base)


@pytest.mark.postgres
async def test_a_server_that_was_stopped_goes_on_without_harm(
    processes: Processes, postgres_schema_url: str, tmp_path: Path, rng: random.Random
) -> None:
    """I4, I14: another one on the same database commits to the same tables meanwhile."""
    shared = tmp_path / "shared"
    env = {
        "CYNOSURE_PERSISTENCE__URL": postgres_schema_url,
        "CYNOSURE_STORAGE__FILE_ROOTS__SHARED": str(shared),
        "CYNOSURE_KEYRING__FILE": str(tmp_path / "keyring.json"),
    }
    root = make_credential()
    first, second = [
        await start_catalog_server(
            processes, tmp_path, data=tmp_path / name, name=name, credential=root, env=env
        )
        for name in ("first", "second")
    ]
    lake = await first.create_catalog("lake", location=(shared / "lake").as_uri())
    ledger = Ledger()
    seed = rng.getrandbits(32)
    on_first = Clients(lake, TABLES, ledger, seed)
    on_second = Clients(second.get("lake"), TABLES, ledger, seed + 1)
    await on_first.create_tables()

    def told(clients: range) -> int:
        return sum(each.outcome == "acknowledged" for each in ledger.sent if each.client in clients)

    mine, others = range(4), range(4, 8)
    async with blowing(on_first, 4), blowing(on_second, 4, first=4):
        await until(lambda: told(mine) > 5 and told(others) > 5)
        for _ in range(3):
            first.process.sigstop()
            before = told(others)
            await until(lambda before=before: told(others) > before + 10)
            first.process.sigcont()
            before = told(mine)
            await until(lambda before=before: told(mine) > before + 3)

    for server in (first, second):
        assert await server.process.stop() == 0
    await second.process.start()
    assert await judge(second.get("lake"), TABLES, ledger) == []
    assert ledger.unexpected() == []


async def load(catalog: ServedCatalog, table: str) -> dict[str, Any]:
    async with catalog.client() as http:
        answer = await http.get(f"{catalog.url}/namespaces/{NAMESPACE}/tables/{table}")
        return answer.raise_for_status().json()


async def strays_in(server: CatalogServer, catalog: str) -> list[str]:
    looked = await server.run_cli(
        "tables", "sweep", catalog, "--grace", "0s", "--thorough", "--dry-run", "--json"
    )
    return json.loads(looked)["locations"]
