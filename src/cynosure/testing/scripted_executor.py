"""A `TaskExecutor` in memory that does no work: tests say what becomes of its tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec.structs import replace

from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder, encode_order
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Conflict, CynosureError, NotFound


class ScriptedExecutor:
    """Keeps what is ordered, every version of it. `end` and `change` are for the test."""

    def __init__(self, clock: Clock, *, is_delegated: bool = True) -> None:
        self.is_delegated = is_delegated
        self.orders: list[TaskOrder] = []
        """All that arrived, repeated ones too."""
        self.work: Callable[[TaskOrder], Awaitable[TaskStatus | None]] | None = None
        """Done for every task as soon as it is ordered: how it ends, or `None` if it does not yet."""
        self.refusal: CynosureError | None = None
        """What every call is answered with."""
        self._clock = clock
        self._versions: dict[tuple[str, str], list[TaskDetails]] = {}
        self._fingerprints: dict[tuple[str, str], str] = {}
        self._changed = asyncio.Condition()

    async def purge_table(self, order: TaskOrder) -> TaskDetails:
        """See `TaskExecutor`."""
        return await self._order(order)

    expire_snapshots = compact_data = remove_orphan_files = compact_metadata = convert_format = purge_table

    async def find(self, realm: str, task_id: str) -> TaskDetails | None:
        """See `TaskExecutor`."""
        self._refuse()
        return self._get(realm, task_id)

    async def wait(self, realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:
        """See `TaskExecutor`."""
        self._refuse()

        def has_ended() -> bool:
            task = self._get(realm, task_id)
            return task is None or task.status.is_terminal

        with suppress(TimeoutError):
            await self.until(has_ended, timeout_s=timeout_s)
        return self._get(realm, task_id)

    async def history(self, realm: str, task_id: str) -> Sequence[TaskDetails]:
        """See `TaskExecutor`."""
        self._refuse()
        return tuple(self._versions.get((realm, task_id), ()))

    async def list(self, realm: str, query: TaskQuery) -> TaskPage:
        """See `TaskExecutor`. Page tokens are numbers."""
        self._refuse()
        found = [
            versions[-1]
            for (of, _), versions in reversed(self._versions.items())
            if of == realm
            and query.status in (None, versions[-1].status)
            and query.task_type in (None, versions[-1].task_type)
            and query.catalog in (None, versions[-1].table.partition(".")[0])
        ]
        start = int(query.page_token or 0)
        end = start + query.page_size
        return TaskPage(found[start:end], str(end) if end < len(found) else None)

    async def retry(self, realm: str, task_id: str) -> TaskDetails:
        """See `TaskExecutor`."""
        if self._require(realm, task_id).status not in (TaskStatus.FAILURE, TaskStatus.RETRY_SCHEDULED):
            raise Conflict("The task neither failed nor waits", fix="Wait for it to end.")
        return await self.change(realm, task_id, status=TaskStatus.RETRY_SCHEDULED, attempt_count=0)

    async def cancel(self, realm: str, task_id: str) -> TaskDetails:
        """See `TaskExecutor`."""
        if self._require(realm, task_id).status.is_terminal:
            raise Conflict("The task has ended", fix="Nothing needs to be cancelled.")
        return await self.change(realm, task_id, status=TaskStatus.FAILURE, error_code="CANCELLED")

    async def end(
        self,
        task_id: str,
        status: TaskStatus = TaskStatus.SUCCESS,
        *,
        realm: str = "default",
        **changes: object,
    ) -> TaskDetails:
        """Let a task end."""
        return await self.change(realm, task_id, status=status, **changes)

    async def change(self, realm: str, task_id: str, **changes: object) -> TaskDetails:
        """Another version of a task."""
        last = self._require(realm, task_id)
        new = replace(last, version=last.version + 1, last_status_change_ts=self._now(), **changes)
        async with self._changed:
            self._versions[realm, task_id].append(new)
            self._changed.notify_all()
        return new

    async def until(self, is_so: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        """Wait for something that orders and changes of tasks bring about; `TimeoutError` if they do not."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(is_so), timeout_s)

    def status_of(self, task_id: str, *, realm: str = "default") -> TaskStatus | None:
        """How far a task is."""
        found = self._get(realm, task_id)
        return None if found is None else found.status

    def forget(self, task_id: str, *, realm: str = "default") -> None:
        """As a service that lost its store: there is no such task."""
        self._versions.pop((realm, task_id), None)

    async def _order(self, order: TaskOrder) -> TaskDetails:
        async with self._changed:
            self.orders.append(order)
            self._changed.notify_all()
        self._refuse()
        at = (order.realm, order.task_id)
        if self._fingerprints.setdefault(at, order.fingerprint) != order.fingerprint:
            raise Conflict("Another task has this correlation id", fix="Use another one.")
        if at not in self._versions:
            now = self._now()
            self._versions[at] = [
                TaskDetails(
                    task_id=order.task_id,
                    version=1,
                    task_type=order.task_type,
                    status=TaskStatus.SUBMITTED,
                    task_payload=encode_order(order),
                    received_timestamp=now,
                    last_status_change_ts=now,
                    created_ts=now,
                    correlation_id=order.correlation_id,
                    table=".".join((order.table.catalog_name, *order.table.path)),
                )
            ]
            ended = None if self.work is None else await self.work(order)
            if ended is not None:
                await self.end(order.task_id, ended, realm=order.realm)
        return self._require(*at)

    def _get(self, realm: str, task_id: str) -> TaskDetails | None:
        versions = self._versions.get((realm, task_id))
        return None if versions is None else versions[-1]

    def _require(self, realm: str, task_id: str) -> TaskDetails:
        self._refuse()
        found = self._get(realm, task_id)
        if found is None:
            raise NotFound("There is no such task", fix="List the tasks.", task=task_id)
        return found

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_us() / 1_000_000, UTC)
