"""What one instance of all servers does for the events of all realms: collect, trim, deliver.

It is one coordinated task with long runs: whoever holds it goes on for an hour, so the lease costs little and
events are told within seconds. When its server dies another one takes over; positions say where to go on.

Must not break: one realm's or one sink's trouble does not hold up the others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cynosure.auth.audit.collect import EventCollector
from cynosure.auth.audit.deliver import Delivery
from cynosure.auth.audit.retention import trim_events
from cynosure.auth.settings import AuditSettings
from cynosure.common.errors import CynosureError, LeaseLost
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import RealmId
from cynosure.persistence.tasks import Retry, Task, TaskRun

TASK_NAME: Final = "audit.keep"
_RUN_S: Final = 3_600.0
_TRIM_EVERY_S: Final = 600.0
_log = Log(__name__)


class Keeper:
    """Keeps the events of all realms."""

    def __init__(
        self,
        persistence: Persistence,
        collector: EventCollector,
        deliveries: Sequence[Delivery],
        settings: AuditSettings,
        *,
        run_s: float = _RUN_S,
    ) -> None:
        self._persistence = persistence
        self._collector = collector
        self._deliveries = deliveries
        self._settings = settings
        self._run_s = run_s
        self._every_s = settings.collect_every.total_seconds()

    def task(self) -> Task:
        """The coordinated task. Due again at once: between two runs others get their chance."""
        retry = Retry(first_s=self._every_s, max_s=60.0)
        return Task(name=TASK_NAME, every_s=self._every_s, run=self.run, retry=retry)

    async def run(self, task_run: TaskRun) -> str:
        """One long run."""
        until_s = self._persistence.clock.monotonic_s() + self._run_s
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._repeat(until_s, task_run, self._collect))
                group.create_task(self._repeat(until_s, task_run, self._trim, every_s=_TRIM_EVERY_S))
                for delivery in self._deliveries:
                    group.create_task(self._repeat(until_s, task_run, _delivering(delivery)))
        except* LeaseLost as lost:
            raise lost.exceptions[0] from None
        counts = [f"{each.delivered} to {each.name}" for each in self._deliveries]
        return f"delivered {', '.join(counts)}" if counts else "collected"

    async def _repeat(
        self, until_s: float, task_run: TaskRun, work: "_Work", *, every_s: float | None = None
    ) -> None:
        clock = self._persistence.clock
        every_s = self._every_s if every_s is None else every_s
        while (left_s := until_s - clock.monotonic_s()) > 0:
            has_more = False
            try:
                realms = await list_realms(self._persistence.committer(REALMS))
                has_more = await work(realms, task_run.check)
            except LeaseLost:
                raise
            except CynosureError as error:
                _log.event("audit.keeping_failed", level=WARNING, error=error)
            if not has_more:
                await clock.sleep(min(every_s, left_s))

    async def _collect(self, realms: list[RealmId], check: "_Check") -> bool:
        is_complete = True
        for realm in realms:
            check()
            try:
                is_complete &= await self._collector.collect(realm)
            except CynosureError as error:
                _log.event("audit.collecting_failed", level=WARNING, realm=realm, error=error)
        return not is_complete

    async def _trim(self, realms: list[RealmId], check: "_Check") -> bool:
        for realm in realms:
            check()
            await trim_events(self._persistence, realm, self._settings.retention)
        return False


_Check = Callable[[], None]
_Work = Callable[[list[RealmId], _Check], Awaitable[bool]]
"""Does something for all realms; whether there is more to do at once."""


def _delivering(delivery: Delivery) -> _Work:
    return delivery.run_once
