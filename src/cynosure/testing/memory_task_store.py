"""A `TaskStore` in memory whose answers a test can lose. The kit holds it to what real stores promise."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Literal, TypeVar

from msgspec.structs import replace

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadPageToken, OutcomeUnknown, Unavailable
from cynosure.delegation.store.port import Leased, Receipt, Receipts, TaskFilter
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import check_change, follow_up, leased

T = TypeVar("T")
Luck = Literal["answered", "unavailable", "applied, answer lost", "not applied, answer lost"]
Rule = Callable[[str], Luck | Awaitable[Luck]]
"""What becomes of the next call of this name; one that waits holds the call up."""
_WAITING = (TaskStatus.SUBMITTED, TaskStatus.RETRY_SCHEDULED)

_RELEASED_US = 0
"""The end of a lease whose worker is known to be dead."""


class MemoryTaskStore:
    """Tasks of one realm, for the instances of one test."""

    def __init__(self, rng: Random | None = None) -> None:
        self.versions: dict[str, list[TaskRecord]] = {}
        self.rule: Rule | None = None
        self.calls: list[str] = []
        self._until_us: dict[str, int] = {}
        self._receipts: dict[str, dict[str, Receipt]] = {}
        self._progress: dict[str, tuple[str, TaskProgress]] = {}
        self._lost_leases: dict[str, Leased] = {}
        self._rng = rng or Random(7)

    async def insert(self, record: TaskRecord) -> TaskRecord:
        return await self._call("insert", lambda: self._insert(record))

    async def find(self, task_id: str) -> TaskRecord | None:
        return await self._call("find", lambda: self._newest(task_id))

    async def history(self, task_id: str) -> Sequence[TaskRecord]:
        return await self._call("history", lambda: [*self.versions.get(task_id, ())])

    async def list(
        self, wanted: TaskFilter, *, limit: int, after: str | None = None
    ) -> tuple[Sequence[TaskRecord], str | None]:
        newest = sorted(
            (each[-1] for each in self.versions.values() if _matches(each[-1], wanted)),
            key=_listed_by,
        )
        if after is not None:
            try:
                created_us, task_id = after.split(" ")
                place = (-int(created_us), task_id)
            except ValueError:
                raise BadPageToken("Not a token of this listing", field="after", fix="List again.") from None
            newest = [each for each in newest if _listed_by(each) > place]
        page = newest[:limit]
        more = f"{page[-1].created_us} {page[-1].task_id}" if len(newest) > limit else None
        return page, more

    async def children(self, task_id: str) -> Sequence[TaskRecord]:
        found = (each[-1] for each in self.versions.values() if each[-1].parent_id == task_id)
        return sorted(found, key=lambda record: (record.created_us, record.task_id))

    async def swap(self, expected: TaskRecord, record: TaskRecord) -> TaskRecord | None:
        return await self._call("swap", lambda: self._swap(expected, record))

    async def lease(self, worker: str, *, now_us: int, lease_us: int) -> Leased | None:
        lost = self._lost_leases.pop(worker, None)
        if lost is not None and self._is_held(lost) and self._until_us[lost.record.task_id] > now_us:
            # As the real stores do: one whose answer was lost is looked for first.
            return lost
        return await self._call("lease", lambda: self._lease(worker, now_us, lease_us))

    async def keep(self, leased: Leased, *, now_us: int, lease_us: int) -> Leased | None:
        return await self._call("keep", lambda: self._keep(leased, now_us, lease_us))

    async def report(self, leased: Leased, progress: TaskProgress) -> None:
        if self._is_held(leased):
            self._progress[leased.record.task_id] = (leased.record.lease_token, progress)

    async def progress(self, task_id: str) -> TaskProgress | None:
        found = self._progress.get(task_id)
        return None if found is None else found[1]

    async def release(self, worker: str) -> int:
        return await self._call("release", lambda: self._release(worker))

    async def put_receipts(self, leased: Leased, receipts: Sequence[Receipt]) -> bool:
        return await self._call("put_receipts", lambda: self._put_receipts(leased, receipts))

    async def receipts(self, task_id: str) -> Receipts:
        return await self._call("receipts", lambda: Receipts(dict(self._receipts.get(task_id, {}))))

    async def next_due_us(self) -> int | None:
        waiting = (each[-1] for each in self.versions.values() if each[-1].status in _WAITING)
        return min((_due_us(each) for each in waiting), default=None)

    async def forget(self, before_us: int) -> int:
        old = [
            task_id
            for task_id, each in self.versions.items()
            if each[-1].status.is_terminal and each[-1].last_status_change_us < before_us
        ]
        for task_id in old:
            for rows in (self.versions, self._until_us, self._receipts, self._progress):
                rows.pop(task_id, None)
        return len(old)

    async def close(self) -> None:
        pass

    # --- one step each --------------------------------------------------------------------------

    async def _call(self, name: str, apply: Callable[[], T]) -> T:
        self.calls.append(name)
        luck = "answered" if self.rule is None else self.rule(name)
        if not isinstance(luck, str):
            luck = await luck
        if luck == "unavailable":
            raise Unavailable("The store does not answer")
        if luck == "not applied, answer lost":
            raise OutcomeUnknown("The answer of the store was lost")
        result = apply()
        if luck == "applied, answer lost":
            if isinstance(result, Leased) and name == "lease":
                self._lost_leases[result.record.worker or ""] = result
            raise OutcomeUnknown("The answer of the store was lost")
        return result

    def _newest(self, task_id: str) -> TaskRecord | None:
        versions = self.versions.get(task_id)
        return None if versions is None else versions[-1]

    def _insert(self, record: TaskRecord) -> TaskRecord:
        return self.versions.setdefault(record.task_id, [replace(record, version=1)])[-1]

    def _swap(self, expected: TaskRecord, record: TaskRecord) -> TaskRecord | None:
        check_change(expected, record)
        newest = self._newest(expected.task_id)
        if newest is None or newest.version != expected.version:
            return None
        if newest.status.is_leased and newest.lease_token != expected.lease_token:
            return None
        self._append(replace(record, version=newest.version + 1))
        following = follow_up(record)
        if following is not None:
            self._receipts.pop(record.task_id, None)
            self._append(replace(following, version=newest.version + 2))
        if not record.status.is_leased:
            self._until_us.pop(record.task_id, None)
        return self._newest(record.task_id)

    def _append(self, record: TaskRecord) -> None:
        self.versions[record.task_id].append(record)

    def _lease(self, worker: str, now_us: int, lease_us: int) -> Leased | None:
        free = [each[-1] for each in self.versions.values() if self._is_free(each[-1], now_us)]
        if not free:
            return None
        record = min(free, key=self._ready_us)
        found = "new" if record.status is TaskStatus.SUBMITTED else "retry"
        found = "lost" if record.status.is_leased else found
        token = f"{self._rng.getrandbits(64):016x}"
        taken = replace(leased(record, worker=worker, token=token, now_us=now_us), version=record.version + 1)
        self._append(taken)
        self._until_us[taken.task_id] = now_us + lease_us
        return Leased(taken, now_us + lease_us, found)

    def _ready_us(self, record: TaskRecord) -> int:
        return self._until_us[record.task_id] if record.status.is_leased else _due_us(record)

    def _is_free(self, record: TaskRecord, now_us: int) -> bool:
        if record.status.is_leased:
            return self._until_us[record.task_id] <= now_us
        return record.status in _WAITING and record.next_scheduled_run_us <= now_us

    def _is_held(self, leased: Leased) -> bool:
        newest = self._newest(leased.record.task_id)
        if newest is None or self._until_us.get(newest.task_id, _RELEASED_US) == _RELEASED_US:
            return False
        return newest.lease_token == leased.record.lease_token

    def _keep(self, leased: Leased, now_us: int, lease_us: int) -> Leased | None:
        task_id = leased.record.task_id
        if not self._is_held(leased) or self._until_us[task_id] <= now_us:
            return None
        self._until_us[task_id] = max(self._until_us[task_id], now_us + lease_us)
        return replace(leased, lease_until_us=self._until_us[task_id])

    def _release(self, worker: str) -> int:
        held = [each[-1] for each in self.versions.values() if each[-1].status.is_leased]
        mine = [each.task_id for each in held if each.worker == worker]
        mine = [each for each in mine if self._until_us[each] != _RELEASED_US]
        self._until_us |= dict.fromkeys(mine, _RELEASED_US)
        return len(mine)

    def _put_receipts(self, leased: Leased, receipts: Sequence[Receipt]) -> bool:
        if not self._is_held(leased):
            return False
        kept = self._receipts.setdefault(leased.record.task_id, {})
        for each in receipts:
            kept.setdefault(each.batch, each)
        return True


def _listed_by(record: TaskRecord) -> tuple[int, str]:
    return -record.created_us, record.task_id


def _due_us(record: TaskRecord) -> int:
    return max(record.next_scheduled_run_us, record.last_status_change_us)


def _matches(record: TaskRecord, wanted: TaskFilter) -> bool:
    return (
        wanted.status in (None, record.status)
        and wanted.task_type in (None, record.task_type)
        and wanted.catalog in (None, record.catalog)
    )
