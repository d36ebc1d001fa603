"""Processes and sessions on the store under test."""

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cynosure.persistence.spi import Backend, CatalogId, ObjId, ObjKey, RealmId, RefKey
from cynosure.testing.backend_kit.samples import reference
from cynosure.testing.harness.processes import ManagedProcess, Processes

from .postgres_calls import opened

SCRIPT = Path(__file__).with_name("store_process.py")

StartStoreProcess = Callable[..., Awaitable[ManagedProcess]]


@pytest.fixture
def start_store_process(processes: Processes) -> StartStoreProcess:
    """Starts `store_process.py`; see there."""

    async def start(command: str, url: str, *arguments: object) -> ManagedProcess:
        argv = [sys.executable, str(SCRIPT), command, url, *map(str, arguments)]
        return await processes.start(f"{command}-{len(processes.all)}", argv)

    return start


@pytest.fixture
def check_acknowledged() -> Callable[[Backend, ManagedProcess], Awaitable[int]]:
    """Checks that all that a `move` process printed is there, wholly; how many moves that is."""

    async def check(backend: Backend, process: ManagedProcess) -> int:
        last: dict[str, int] = {}
        # Whole lines only: the last one may be cut by the kill.
        for name, head in re.findall(r"acknowledged (\w+) (\d+)\n", process.log()):
            last[name] = int(head)
        for name, head in last.items():
            (current,) = await backend.fetch_refs([RefKey(RealmId("default"), CatalogId("c"), name)])
            assert current is not None
            # The swap that was under way when the process died is wholly there or not at all.
            assert current.head in (head, head + 1)
            types = [f"{name}-{part}" for part in range(3)]
            keys = [
                ObjKey(RealmId("default"), CatalogId("c"), type_, ObjId(moved))
                for type_ in types
                for moved in range(2, current.head + 2)
            ]
            rows = await backend.fetch(keys)
            assert [row is not None for row in rows] == [key.id <= current.head for key in keys]
        return sum(last.values()) - len(last)

    return check


@pytest.fixture
def check_relaxed() -> Callable[[Backend, ManagedProcess], Awaitable[int]]:
    """Checks that all that a `relax` process printed is there; how many calls that is."""

    async def check(backend: Backend, process: ManagedProcess) -> int:
        calls = re.findall(r"acknowledged (w\d+) (\d+)\n", process.log())
        for writer, number in calls:
            keys = [
                ObjKey(RealmId("default"), CatalogId("c"), f"{writer}-{part}", ObjId(int(number)))
                for part in range(3)
            ]
            assert None not in await backend.fetch(keys)
        return len(calls)

    return check


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
async def postgres_backend(postgres_schema_url: str) -> AsyncIterator[Backend]:
    """A store whose reference stands at 1."""
    async with opened(f"{postgres_schema_url}&turn_timeout_s=5") as backend:
        await backend.setup()
        await backend.insert_ref(reference(1))
        yield backend


@pytest.fixture
def schema(postgres_schema_url: str) -> str:
    return postgres_schema_url.rpartition("=")[2]


@pytest.fixture
async def admin(postgres_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()
