import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.purging.tombstone import Tombstone, find_newest
from cynosure.common.delegated.settings import DelegationSettings, PurgeMode
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import T


@dataclass
class Purging:
    """A catalog, and whoever does its long work: as a test says."""

    directory: Directory
    catalog: OpenCatalog
    executor: ScriptedExecutor

    def use(self, **settings: object) -> None:
        """Other settings of delegated work."""
        object.__setattr__(self.directory.shared, "delegation", DelegationSettings(**settings))

    async def start_drop(self, table: Identifier = T, *, mode: PurgeMode = "sync") -> asyncio.Task[None]:
        """A request that waits for its purge, which has been ordered."""
        self.use(mode=mode)
        orders = len(self.executor.orders)
        drop = asyncio.create_task(drop_table(self.catalog, ROOT, table, is_purge_requested=True))
        await self.executor.until(lambda: len(self.executor.orders) > orders or drop.done())
        return drop

    async def tombstone(self, table: Identifier = T) -> Tombstone:
        """The one of this table."""
        found = await self.find_tombstone(table)
        assert found is not None
        return found

    async def find_tombstone(self, table: Identifier = T) -> Tombstone | None:
        """The one of this table, if there is one."""
        return await find_newest(await self.catalog.read(), (*table.namespace, table.name))

    async def begin(self, table: Identifier = T) -> str:
        """As a worker that is about to delete the first file; its task."""
        tombstone = await self.tombstone(table)
        await begin_purging(self.catalog, ROOT, tombstone.entity_id, tombstone.task_id)
        return tombstone.task_id

    async def succeed(self, table: Identifier = T) -> None:
        """As a worker that has deleted the last one."""
        await self.executor.end(await self.begin(table))

    async def fail(self, code: str, *, is_begun: bool, table: Identifier = T) -> None:
        """As a worker that cannot go on."""
        tombstone = await self.tombstone(table)
        if is_begun:
            await self.begin(table)
        await self.executor.end(
            tombstone.task_id,
            TaskStatus.FAILURE,
            error_code=code,
            result_summary="it went wrong",
            is_begun=is_begun,
        )


@pytest.fixture
async def purging(tmp_path: Path) -> AsyncIterator[Purging]:
    async with open_directory_in(tmp_path) as directory:
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, ("ns",), {})
        executor = ScriptedExecutor(directory.shared.persistence.clock)
        directory.shared.use_executor(executor)
        made = Purging(directory, catalog, executor)
        made.use(sync_timeout=timedelta(seconds=30))
        yield made
