"""From a policy to files that are gone: the scheduler, tasks in a real store, a worker and its job."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.upkeep.list_maintenance import list_maintenance
from cynosure.catalog.upkeep.runs import Run
from cynosure.catalog.upkeep.scheduler import Rounds
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.settings import DelegationSettings, MaintenanceSettings, ServiceSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.access_local import CatalogHere
from cynosure.delegation.executors.local import LocalTaskExecutor
from cynosure.delegation.jobs.registry import open_jobs
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.store.objects import ObjectTaskStore
from cynosure.delegation.worker.worker import Worker
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.manifests.writing import load
from tests.catalog.tables import T, make
from tests.catalog.upkeep.made import NS, ON_CATALOG, ORPHANS, SYSTEM, append

pytestmark = pytest.mark.anyio
SETTINGS = DelegationSettings(
    service=ServiceSettings(polling=timedelta(milliseconds=50)),
    maintenance=MaintenanceSettings(default_schedule="P1D"),
)
DAY_S = 86_400


class WholeExecutor(LocalTaskExecutor):
    """The service of one realm, in this process, with a job that needs no Spark."""

    is_delegated = True

    def __init__(self, directory: Directory, service: TaskService) -> None:
        super().__init__(SETTINGS, directory, Random(1))
        self._service = service

    async def remove_orphan_files(self, order: TaskOrder) -> TaskDetails:
        return await self._service.submit(order)

    async def find(self, realm: str, task_id: str) -> TaskDetails | None:
        return await self._service.find(task_id)


@asynccontextmanager
async def serving(directory: Directory) -> AsyncIterator[None]:
    persistence = directory.shared.persistence
    service = TaskService(
        ObjectTaskStore(persistence, DEFAULT_REALM, rng=Random(2)),
        realm=DEFAULT_REALM,
        clock=persistence.clock,
        jobs=open_jobs([TaskType.ORPHAN_FILE_REMOVAL]),
        settings=SETTINGS,
    )
    worker = Worker(
        service, catalog=CatalogHere(directory, DEFAULT_REALM), instance="one", rng=Random(3), slots=1
    )
    directory.shared.use_executor(WholeExecutor(directory, service))
    await worker.start()
    try:
        yield
    finally:
        await worker.close(5.0)


async def test_a_policy_removes_orphan_files_and_tells_what_it_did(tmp_path: Path) -> None:
    async with open_directory_in(tmp_path, delegation=SETTINGS) as directory, serving(directory):
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, NS, {})
        await make(catalog)
        await append(catalog, 2)
        folder = Path((await load(catalog)).metadata.location.removeprefix("file://"))
        old, young = folder / "data" / "old.parquet", folder / "data" / "young.parquet"
        for each in (old, young):
            each.parent.mkdir(parents=True, exist_ok=True)
            each.write_bytes(b"12345")
        for each in folder.rglob("*"):
            if each != young:
                os.utime(each, (time.time() - 9 * DAY_S,) * 2)
        kept = {each for each in folder.rglob("*") if each.is_file()} - {old}
        path = Identifier(NS, "p")
        content = '{"enable":true,"max_orphan_file_age_in_days":7}'
        await create_policy(catalog, ROOT, CreatePolicy(path, ORPHANS, content))
        await attach_policy(catalog, ROOT, path, ON_CATALOG, {})
        rounds = Rounds()

        assert await rounds.keep_up(catalog, SYSTEM) == 1
        run = await ended(lambda: newest(catalog))
        assert await rounds.keep_up(catalog, SYSTEM) == 0

        assert (run.outcome, run.files_deleted, run.bytes_deleted) == ("SUCCESS", 1, 5), run.text
        assert {each for each in folder.rglob("*") if each.is_file()} == kept
        assert (await load(catalog, T)).metadata.find_current_snapshot() is not None


async def newest(catalog) -> Run:
    (entry,) = (await list_maintenance(catalog, ROOT, Paging(size=9))).entries
    return entry.upkeep.runs[0]


async def ended(look) -> Run:
    give_up_s = time.monotonic() + 60
    while True:
        run = await look()
        if not run.is_under_way:
            return run
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.05)
