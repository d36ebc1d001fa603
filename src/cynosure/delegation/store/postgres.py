"""Tasks in tables of PostgreSQL, as the proposal lays them out. For several instances of the service.

A lease is the proposal's query: one statement that takes the task which has waited longest, new, due or lost,
and passes over those that others are about to take (`FOR UPDATE SKIP LOCKED`).

A maintainer must not break: what a lost answer was about is read, never done again.
"""

# ruff: noqa: D102 - the contract is written once, in port.py

from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadInput, Contended, CynosureError, OutcomeUnknown
from cynosure.delegation.store.lost_answers import LostAnswers
from cynosure.delegation.store.port import Leased, Receipt, Receipts, TaskFilter
from cynosure.delegation.store.postgres_rows import to_changing, to_record, to_rows, to_time
from cynosure.delegation.store.postgres_statements import TaskStatements
from cynosure.delegation.store.waiting import Place, found_as, is_task_id, ready_of
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import check_change, follow_up
from cynosure.persistence.backends.postgres.address import Address
from cynosure.persistence.backends.postgres.sessions import Sessions

_FORGET_AT_ONCE: Final = 500
_INSERT_ATTEMPTS: Final = 3


class PostgresTaskStore:
    """`TaskStore` in one schema of a PostgreSQL database. Call `setup` first."""

    def __init__(self, address: Address, realm: str, rng: Random) -> None:
        self._place = f"{address.place}, schema {address.schema}"
        self._realm = realm
        self._rng = rng
        self._statements = TaskStatements(address.schema)
        self._sessions = Sessions(address, self._statements)
        self._lost_answers = LostAnswers(self._find_lease)

    def __repr__(self) -> str:
        return f"PostgresTaskStore({self._place!r})"

    async def setup(self) -> None:
        """Create the tables unless they are there."""
        await self._sessions.setup()

    # --- tasks ---------------------------------------------------------------------------------

    async def insert(self, record: TaskRecord) -> TaskRecord:
        if not is_task_id(record.task_id):
            raise BadInput(
                "A task id is not a UUID", field="task_id", fix="Take it from `TaskOrder.task_id`."
            )
        first = replace(record, version=1)
        for _ in range(_INSERT_ATTEMPTS):
            rows = to_rows(self._realm, [first])
            if await self._sessions.write(self._statements.insert, rows, ready_of(first, 0)):
                return first
            known = await self.find(record.task_id)
            if known is not None:
                return known
            # It was there and has been forgotten in between.
        raise Contended("A task is being made and forgotten all the time", task_id=record.task_id)

    async def find(self, task_id: str) -> TaskRecord | None:
        rows = await self._read_task(self._statements.find, task_id)
        return to_record(rows[0]) if rows else None

    async def history(self, task_id: str) -> Sequence[TaskRecord]:
        return [to_record(row) for row in await self._read_task(self._statements.history, task_id)]

    async def list(
        self, wanted: TaskFilter, *, limit: int, after: str | None = None
    ) -> tuple[Sequence[TaskRecord], str | None]:
        place = None if after is None else Place.open(after)
        rows = await self._sessions.read(
            self._statements.list,
            self._realm,
            wanted.status,
            wanted.task_type,
            wanted.catalog,
            None if place is None else to_time(place.created_us),
            None if place is None else place.task_id,
            limit + 1,
        )
        page = [to_record(row) for row in rows[:limit]]
        is_more = len(rows) > limit and bool(page)
        return page, Place(page[-1].created_us, page[-1].task_id).seal() if is_more else None

    async def children(self, task_id: str) -> Sequence[TaskRecord]:
        return [to_record(row) for row in await self._read_task(self._statements.children, task_id)]

    async def swap(self, expected: TaskRecord, record: TaskRecord) -> TaskRecord | None:
        check_change(expected, record)
        after = replace(record, version=expected.version + 1)
        following = follow_up(after)
        newest = following or after
        of_expected = (
            self._realm,
            expected.task_id,
            expected.version,
            expected.status,
            expected.lease_token,
            to_time(expected.created_us),
        )
        ready_us = ready_of(newest, 0)
        try:
            if following is None:
                is_swapped = await self._sessions.write(
                    self._statements.swap,
                    *of_expected,
                    after.status.is_leased,
                    ready_us,
                    *to_changing(after),
                )
            else:
                rows = to_rows(self._realm, [after, following])
                is_swapped = await self._sessions.write(
                    self._statements.swap_and_follow, *of_expected, rows, ready_us
                )
        except OutcomeUnknown as unknown:
            await self._settle_swap(newest, unknown)
            return newest
        return newest if is_swapped else None

    # --- leases --------------------------------------------------------------------------------

    async def lease(self, worker: str, *, now_us: int, lease_us: int) -> Leased | None:
        regained = await self._lost_answers.find(now_us)
        if regained is not None:
            return regained
        token = f"{self._rng.getrandbits(128):032x}"
        until_us = now_us + lease_us
        values = (self._realm, now_us, to_time(now_us), worker, token, until_us)
        try:
            rows = await self._sessions.write_many(self._statements.lease, [values])
        except OutcomeUnknown:
            self._lost_answers.remember(token, until_us)
            regained = await self._regain(now_us)
            if regained is None:
                raise
            return regained
        if not rows:
            return None
        return Leased(to_record(rows[0]), until_us, found_as(TaskStatus(rows[0][-1])))

    async def keep(self, leased: Leased, *, now_us: int, lease_us: int) -> Leased | None:
        values = (*self._held(leased), now_us, now_us + lease_us)
        rows = await self._sessions.write_many(self._statements.keep, [values])
        return replace(leased, lease_until_us=rows[0][0]) if rows else None

    async def report(self, leased: Leased, progress: TaskProgress) -> None:
        text = msgspec.json.encode(progress).decode()
        await self._sessions.write(self._statements.report, *self._held(leased), text)

    async def progress(self, task_id: str) -> TaskProgress | None:
        rows = await self._read_task(self._statements.progress, task_id)
        if not rows or rows[0][0] is None:
            return None
        return msgspec.json.decode(rows[0][0], type=TaskProgress)

    async def release(self, worker: str) -> int:
        return len(await self._sessions.write_many(self._statements.release, [(self._realm, worker)]))

    async def put_receipts(self, leased: Leased, receipts: Sequence[Receipt]) -> bool:
        return await self._sessions.write(
            self._statements.put_receipts,
            *self._held(leased),
            [each.batch for each in receipts],
            [each.files for each in receipts],
            [each.bytes for each in receipts],
            [each.finished_us for each in receipts],
        )

    async def receipts(self, task_id: str) -> Receipts:
        rows = await self._read_task(self._statements.receipts, task_id)
        return Receipts({row[0]: Receipt(*row) for row in rows})

    async def next_due_us(self) -> int | None:
        rows = await self._sessions.read(self._statements.next_due, self._realm)
        return rows[0][0] if rows else None

    async def forget(self, before_us: int) -> int:
        total = 0
        values = (self._realm, to_time(max(before_us, 0)), _FORGET_AT_ONCE)
        while gone := await self._sessions.write_many(self._statements.forget, [values]):
            total += len(gone)
        return total

    async def close(self) -> None:
        await self._sessions.close()

    # --- within --------------------------------------------------------------------------------

    async def _read_task(self, statement: str, task_id: str) -> Sequence[Sequence[Any]]:
        if not is_task_id(task_id):
            return []
        return await self._sessions.read(statement, self._realm, task_id)

    def _held(self, leased: Leased) -> tuple[str, str, str]:
        return self._realm, leased.record.task_id, leased.record.lease_token

    async def _settle_swap(self, newest: TaskRecord, unknown: OutcomeUnknown) -> None:
        """Whether a change whose answer was lost is there; `unknown` where that cannot be told."""
        try:
            known = await self.history(newest.task_id)
        except CynosureError:
            raise unknown from None
        if newest not in known:
            # Not there yet, or not at all: the statement may still be on its way.
            raise unknown

    async def _regain(self, now_us: int) -> Leased | None:
        try:
            return await self._lost_answers.find(now_us)
        except CynosureError:
            return None

    async def _find_lease(self, token: str, until_us: int) -> Leased | None:
        rows = await self._sessions.read(self._statements.find_lease, self._realm, until_us, token)
        if not rows:
            return None
        return Leased(to_record(rows[0]), until_us, found_as(TaskStatus(rows[0][-1])))
