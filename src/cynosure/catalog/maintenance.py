"""What one instance of all servers does for all catalogs from time to time.

Must not break: one catalog's trouble, such as a storage that does not answer, is logged and does not keep the
others waiting.
"""

from collections.abc import Awaitable, Callable

from cynosure.auth.caller import Caller, operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.files.sweep import sweep_strays
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.forget_staged import forget_staged
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.release_locations import release_locations
from cynosure.catalog.purging.outbox import look_after_purges
from cynosure.catalog.roles.sweep_grants import SweepPlaces, sweep_grants
from cynosure.catalog.system import SYSTEM
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.tasks import Task, TaskRun

_log = Log(__name__)
Work = Callable[[OpenCatalog, Caller], Awaitable[int]]


def catalog_tasks(directory: Directory) -> list[Task]:
    """Tasks for the background loop of a server."""
    gc = directory.shared.persistence.settings.gc
    outbox_s = directory.shared.delegation.outbox_interval.total_seconds()
    grace_s, interval_s = gc.grace.total_seconds(), gc.interval.total_seconds()
    return [
        for_every_catalog(directory, "catalog.forget-dropped", forget_dropped, every_s=grace_s),
        for_every_catalog(directory, "catalog.forget-staged", forget_staged, every_s=grace_s),
        for_every_catalog(directory, "catalog.release-locations", _releaser(directory), every_s=grace_s),
        for_every_catalog(directory, "catalog.sweep-metadata", _sweep, every_s=interval_s),
        for_every_catalog(directory, "catalog.sweep-grants", _grants_sweeper(), every_s=interval_s),
        for_every_catalog(
            directory, "catalog.look-after-purges", look_after_purges, every_s=outbox_s, first_after_s=0.0
        ),
    ]


async def _sweep(catalog: OpenCatalog, caller: Caller) -> int:
    return (await sweep_strays(catalog, caller)).strays


def _releaser(directory: Directory) -> Work:
    async def release(catalog: OpenCatalog, caller: Caller) -> int:
        return await release_locations(directory, caller, catalog)

    return release


def _grants_sweeper() -> Work:
    places = SweepPlaces()

    async def sweep(catalog: OpenCatalog, caller: Caller) -> int:
        return await sweep_grants(catalog, caller, places)

    return sweep


def for_every_catalog(
    directory: Directory, name: str, work: Work, *, every_s: float, first_after_s: float | None = None
) -> Task:
    """A task that does the same for each catalog; how much was done is in its account."""
    first_s = every_s if first_after_s is None else first_after_s

    async def run(task_run: TaskRun) -> str:
        done = failed = 0
        for realm in await list_realms(directory.shared.persistence.committer(REALMS)):
            caller = operator_caller(SYSTEM, realm)
            for entity in (await list_catalogs(directory, caller)).catalogs:
                task_run.check()
                try:
                    done += await work(await directory.open(realm, entity.name), caller)
                except CynosureError as error:
                    failed += 1
                    _log.event(f"{name}.failed", level=WARNING, catalog=entity.name, error=error)
        return f"{done} done, {failed} catalogs failed"

    return Task(name=name, every_s=every_s, run=run, first_after_s=first_s)
