"""A catalog with a clock of its own and an executor that does nothing, for tests of maintenance."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cynosure.auth.caller import operator_caller
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.directory import Directory
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.upkeep.assess import Decision
from cynosure.catalog.upkeep.list_maintenance import list_maintenance
from cynosure.catalog.upkeep.plan_maintenance import About, plan_maintenance
from cynosure.catalog.upkeep.runs import Run
from cynosure.catalog.upkeep.scheduler import Rounds
from cynosure.common.delegated.settings import DelegationSettings, MaintenanceSettings
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.testing.appended import data_file
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.manifests.writing import load
from tests.catalog.tables import make

NS, DEEP = ("ns",), ("ns", "deep")
T, U = Identifier(NS, "t"), Identifier(DEEP, "u")
COMPACTION, MANIFESTS = "system.data-compaction", "system.metadata-compaction"
ORPHANS, EXPIRY = "system.orphan-file-removal", "system.snapshot-expiry"
ON_CATALOG, ON_NS = AttachTo("catalog"), AttachTo("namespace", NS)
ON_T = AttachTo("table-like", (*NS, "t"))
SYSTEM = operator_caller("system")
DAY = 86_400


class Kept(NamedTuple):
    """All that a test of maintenance needs. Tables: `ns.t`, `ns.deep.u`."""

    directory: Directory
    catalog: OpenCatalog
    executor: ScriptedExecutor
    clock: ManualClock
    rounds: Rounds

    async def round(self) -> list[tuple[str, TaskType]]:
        """One round of the scheduler; what it ordered."""
        before = len(self.executor.orders)
        await self.rounds.keep_up(self.catalog, SYSTEM)
        return [(".".join(each.table.path), each.task_type) for each in self.executor.orders[before:]]

    async def plan(self, about: About | None = None) -> dict[tuple[str, str], tuple[Decision, str]]:
        """What is decided, by table and kind, and why."""
        page = await plan_maintenance(self.catalog, ROOT, Paging(), about)
        return {
            (str(each.work.table.path), str(each.work.rule.task_type)): (each.decision, each.why)
            for each in page.entries
        }

    async def decisions(self) -> dict[tuple[str, str], Decision]:
        """The plan without reasons."""
        return {key: decision for key, (decision, _) in (await self.plan()).items()}

    async def runs(self) -> list[Run]:
        """All tasks that are known of."""
        page = await list_maintenance(self.catalog, ROOT, Paging(size=100))
        return [run for each in page.entries for run in each.upkeep.runs]

    async def end_all(self, status: TaskStatus = TaskStatus.SUCCESS, **changes: Any) -> None:
        """Let every task under way end."""
        for order in self.executor.orders:
            task = await self.executor.find("default", order.task_id)
            if task is not None and not task.status.is_terminal:
                await self.executor.end(order.task_id, status, **changes)


@asynccontextmanager
async def open_kept(
    folder: Path,
    *,
    is_delegated: bool = True,
    clock: Any = None,
    url: str = "memory:",
    **maintenance: Any,
) -> AsyncIterator[Kept]:
    clock = clock or ManualClock()
    settings = DelegationSettings(maintenance=MaintenanceSettings(**maintenance))
    async with open_directory_in(folder, clock=clock, delegation=settings, url=url) as directory:
        executor = ScriptedExecutor(clock, is_delegated=is_delegated)
        directory.shared.use_executor(executor)
        catalog = await make_catalog(directory, folder)
        for namespace in (NS, DEEP):
            await create_namespace(catalog, ROOT, namespace, {})
        for table in (T, U):
            await make(catalog, table)
        yield Kept(directory, catalog, executor, clock, Rounds())


async def policy(
    catalog: OpenCatalog,
    name: str,
    policy_type: str,
    *to: AttachTo,
    enable: bool = True,
    **config: Any,
) -> Identifier:
    """Create a policy and attach it."""
    content = msgspec.json.encode({"enable": enable, "config": config}).decode()
    path = Identifier(NS, name)
    await create_policy(catalog, ROOT, CreatePolicy(path, policy_type, content))
    for each in to:
        await attach_policy(catalog, ROOT, path, each, {})
    return path


async def append(catalog: OpenCatalog, files: int, table: Identifier = T) -> None:
    """Small files, in one snapshot."""
    metadata = (await load(catalog, table)).metadata
    number = len(metadata.snapshots)
    added = [data_file(metadata.location, f"{number}-{each}") for each in range(files)]
    await append_files(catalog, ROOT, table, Addition(data_files=added))
