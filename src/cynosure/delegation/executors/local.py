"""The executor that purges tables in the catalog's own process, and does nothing else.

The same service core and the same worker as those of a delegation service, on the catalog's own store: so all
servers of a store, and all their processes, share the tasks, and any of them goes on with what another left.

A maintainer must not break: a realm has a worker in this process from the first question about its tasks on,
and from the start if it has any (`revive`). So no task waits for a server that is gone.
"""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Final, NoReturn

from msgspec.structs import replace

from cynosure.catalog.directory import Directory
from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Conflict, CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.delegation.access_local import CatalogHere
from cynosure.delegation.jobs.registry import open_jobs
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.store.objects import ObjectTaskStore
from cynosure.delegation.store.port import TaskFilter
from cynosure.delegation.worker.worker import Worker
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import RealmId

_LONGEST_LEASE: Final = timedelta(minutes=1)
"""No lock proves that another process of the catalog is dead, as one does for a service; so what it had must
be free soon. A lease is kept every ten seconds at most."""
_SLOTS: Final = 2
"""Tasks of one realm that one process works on at once, beside its requests."""
_log = Log(__name__)


class LocalTaskExecutor:
    """A `TaskExecutor`: `cynosure.catalog.task_executor`."""

    is_delegated = False

    def __init__(self, settings: DelegationSettings, directory: Directory, rng: Random) -> None:
        # Telling costs nothing here, and an asynchronous purge ends at once.
        self._settings = replace(settings, service=replace(settings.service, callback=True))
        self._directory = directory
        self._rng = rng
        self._instance = f"{directory.shared.persistence.owner}:{rng.getrandbits(48):012x}"
        self._realms: dict[str, tuple[TaskService, Worker]] = {}
        self._is_closed = False

    async def purge_table(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        return await (await self._open(order.realm)).submit(order)

    async def expire_snapshots(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        _refuse(order)

    async def compact_data(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        _refuse(order)

    async def remove_orphan_files(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        _refuse(order)

    async def compact_metadata(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        _refuse(order)

    async def convert_format(self, order: TaskOrder) -> TaskDetails:  # noqa: D102
        _refuse(order)

    async def find(self, realm: str, task_id: str) -> TaskDetails | None:  # noqa: D102
        return await (await self._open(realm)).find(task_id)

    async def wait(self, realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:  # noqa: D102
        return await (await self._open(realm)).wait(task_id, timeout_s)

    async def history(self, realm: str, task_id: str) -> Sequence[TaskDetails]:  # noqa: D102
        return await (await self._open(realm)).history(task_id)

    async def list(self, realm: str, query: TaskQuery) -> TaskPage:  # noqa: D102
        return await (await self._open(realm)).list(query)

    async def retry(self, realm: str, task_id: str) -> TaskDetails:  # noqa: D102
        return await (await self._open(realm)).retry(task_id)

    async def cancel(self, realm: str, task_id: str) -> TaskDetails:  # noqa: D102
        return await (await self._open(realm)).cancel(task_id)

    async def revive(self) -> None:
        """Go on with what was left by servers that are gone, in all realms."""
        persistence = self._directory.shared.persistence
        for realm in await list_realms(persistence.committer(REALMS)):
            try:
                found, _ = await ObjectTaskStore(persistence, realm).list(TaskFilter(), limit=1)
                if found:
                    await self._open(realm)
            except CynosureError as error:
                # The outbox comes to it, too.
                _log.event("executor.realm_not_revived", level=WARNING, realm=realm, error=error)

    async def close(self, drain_s: float) -> None:
        """Let those go who wait; give back what is not done after so long."""
        self._is_closed = True
        for service, _ in self._realms.values():
            service.stop_waiting()
        for _, worker in self._realms.values():
            await worker.close(drain_s)

    async def _open(self, realm: str) -> TaskService:
        opened = self._realms.get(realm)
        if opened is not None:
            return opened[0]
        persistence = self._directory.shared.persistence
        service = TaskService(
            ObjectTaskStore(persistence, RealmId(realm), rng=self._rng),
            realm=realm,
            clock=persistence.clock,
            jobs=open_jobs([TaskType.TABLE_PURGE]),
            settings=self._settings,
        )
        worker = Worker(
            service,
            catalog=CatalogHere(self._directory, RealmId(realm)),
            instance=self._instance,
            rng=self._rng,
            slots=_SLOTS,
            lease=min(self._settings.task.lease.lost_timeout, _LONGEST_LEASE),
        )
        # Order: kept before it starts, so that nobody who asks meanwhile makes another one.
        self._realms[realm] = (service, worker)
        if not self._is_closed:
            await worker.start()
        return service


def _refuse(order: TaskOrder) -> NoReturn:
    raise Conflict(
        "Tasks of this kind need a delegation service",
        fix="Start one with 'cynosure serve delegation' and set delegation.endpoint; 'cynosure up' has one.",
        field="delegation.endpoint",
        type=order.task_type,
    )
