"""Tasks in a store of ours, on any database that can compare and swap one row.

Every change is one commit to the realm's `tasks` reference; changes of one process that come together share
one (group commit). What a change was worked out on is compared when it is committed, so two workers never
take one task.

A maintainer must not break: each method that changes something reads all it decides by through the view.
"""

# ruff: noqa: D102 - the contract is written once, in port.py

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import OutcomeUnknown
from cynosure.delegation.store.lost_answers import LostAnswers
from cynosure.delegation.store.port import Leased, Receipt, Receipts, TaskFilter
from cynosure.delegation.store.stored import DELEGATED_TASK, Lease, to_record
from cynosure.delegation.store.task_index import (
    CHILDREN,
    CREATED,
    DUE,
    ENDED,
    HISTORY,
    LEASED,
    LEASES,
    PROGRESS,
    RECEIPTS,
    Edit,
    TaskNow,
    created_key,
    decode_receipt,
    find_task,
    load_records,
    receipt_key,
    task_of,
)
from cynosure.delegation.store.waiting import RELEASED_US, Place, found_as
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import check_change, follow_up
from cynosure.delegation.transitions import leased as make_leased
from cynosure.persistence.commit import Committed, Committer, Prepared, Request, State, View
from cynosure.persistence.commit.request import Prepare
from cynosure.persistence.index import after as behind
from cynosure.persistence.index import decode_id_key, decode_key, encode_id_key, encode_key, prefix_of
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import RealmId

R = TypeVar("R")
_FORGET_AT_ONCE: Final = 100
_LIST_AT_ONCE: Final = 200
_TIME_BYTES: Final = len(encode_id_key(0))


class ObjectTaskStore:
    """`TaskStore` on a store of objects; several processes may share it. The store itself stays open."""

    def __init__(self, persistence: Persistence, realm: RealmId, rng: Random | None = None) -> None:
        self._persistence = persistence
        self._committer: Committer = persistence.committer(realm_reference(realm, "tasks"))
        self._rng = rng or persistence.rng
        self._lost_answers = LostAnswers(self._find_lease)

    # --- tasks ---------------------------------------------------------------------------------

    async def insert(self, record: TaskRecord) -> TaskRecord:
        async def prepare(view: View) -> Prepared[TaskRecord]:
            known = await find_task(view, record.task_id)
            if known is not None:
                return Prepared(known.record)
            edit, first = self._edit(), replace(record, version=1)
            edit.add(first)
            return Prepared(first, edit.changes, edit.objects)

        return await self._commit("submit-task", prepare)

    async def find(self, task_id: str) -> TaskRecord | None:
        found = await load_records(await self._read(), [encode_key(task_id)])
        return found[0] if found else None

    async def history(self, task_id: str) -> Sequence[TaskRecord]:
        state = await self._read()
        entries = await scan_all(state, HISTORY, prefix_of(task_id))
        ids = [ObjRef.unpack(value).id for _, value in entries]
        return [to_record(each) for each in await state.load_many(DELEGATED_TASK, ids)] if ids else []

    async def list(
        self, wanted: TaskFilter, *, limit: int, after: str | None = None
    ) -> tuple[Sequence[TaskRecord], str | None]:
        start = b""
        if after is not None:
            place = Place.open(after)
            start = behind(created_key(place.created_us, place.task_id))
        state = await self._read()
        found: list[TaskRecord] = []
        while len(found) <= limit:
            entries = await state.scan(CREATED, start=start, limit=_LIST_AT_ONCE)
            records = await load_records(state, [task for _, task in entries])
            found += [each for each in records if _is_wanted(each, wanted)]
            if len(entries) < _LIST_AT_ONCE:
                break
            start = behind(entries[-1][0])
        page = found[:limit]
        is_more = len(found) > limit and bool(page)
        return page, Place(page[-1].created_us, page[-1].task_id).seal() if is_more else None

    async def children(self, task_id: str) -> Sequence[TaskRecord]:
        state = await self._read()
        entries = await scan_all(state, CHILDREN, prefix_of(task_id))
        return await load_records(state, [task for _, task in entries])

    async def swap(self, expected: TaskRecord, record: TaskRecord) -> TaskRecord | None:
        check_change(expected, record)

        async def prepare(view: View) -> Prepared[TaskRecord | None]:
            now = await find_task(view, expected.task_id)
            if now is None or not _is_same(now.record, expected):
                return Prepared(None)
            edit = self._edit()
            after = replace(record, version=now.record.version + 1)
            lease = now.lease if after.status.is_leased else None
            stored = edit.move(now, after, lease)
            following = follow_up(after)
            if following is not None:
                edit.move(TaskNow(stored, lease), following, None)
                await edit.clear_receipts(view, after.task_id)
            return Prepared(following or after, edit.changes, edit.objects)

        return await self._commit("change-task", prepare)

    # --- leases --------------------------------------------------------------------------------

    async def lease(self, worker: str, *, now_us: int, lease_us: int) -> Leased | None:
        regained = await self._lost_answers.find(now_us)
        if regained is not None:
            return regained
        token = f"{self._rng.getrandbits(128):032x}"
        until_us = now_us + lease_us

        async def prepare(view: View) -> Prepared[Leased | None]:
            entries = await view.scan(DUE, end=encode_id_key(now_us + 1), limit=1)
            if not entries:
                return Prepared(None)
            now = await find_task(view, decode_key(task_of(entries[0][0]))[0])
            assert now is not None  # noqa: S101 - `due` and `current` move together
            edit = self._edit()
            record = make_leased(now.record, worker=worker, token=token, now_us=now_us)
            edit.move(now, record, Lease(until_us, worker))
            result = Leased(record, until_us, found_as(now.record.status))
            return Prepared(result, edit.changes, edit.objects)

        try:
            return await self._commit("lease-task", prepare)
        except OutcomeUnknown:
            self._lost_answers.remember(token, until_us)
            raise

    async def keep(self, leased: Leased, *, now_us: int, lease_us: int) -> Leased | None:
        async def prepare(view: View) -> Prepared[Leased | None]:
            now = await find_task(view, leased.record.task_id)
            if now is None or not now.is_leased_under(leased.record.lease_token):
                return Prepared(None)
            assert now.lease is not None  # noqa: S101 - asked right above
            if now.lease.until_us <= now_us:
                return Prepared(None)
            until_us = max(now.lease.until_us, now_us + lease_us)
            edit = self._edit()
            edit.prolong(now, replace(now.lease, until_us=until_us))
            return Prepared(replace(leased, lease_until_us=until_us), edit.changes)

        return await self._commit("keep-lease", prepare)

    async def report(self, leased: Leased, progress: TaskProgress) -> None:
        async def prepare(view: View) -> Prepared[None]:
            now = await find_task(view, leased.record.task_id)
            if now is None or not now.is_leased_under(leased.record.lease_token):
                return Prepared(None)
            value = msgspec.msgpack.encode(progress)
            return Prepared(None, {PROGRESS: {encode_key(leased.record.task_id): value}})

        await self._commit("report-progress", prepare)

    async def progress(self, task_id: str) -> TaskProgress | None:
        value = await (await self._read()).find(PROGRESS, encode_key(task_id))
        return None if value is None else msgspec.msgpack.decode(value, type=TaskProgress)

    async def release(self, worker: str) -> int:
        async def prepare(view: View) -> Prepared[int]:
            edit, count = self._edit(), 0
            for key, value in await scan_all(view, LEASES, b""):
                lease = Lease.decode(value)
                now = await find_task(view, decode_key(key)[0])
                if lease.worker == worker and lease.until_us != RELEASED_US and now is not None:
                    edit.prolong(now, replace(lease, until_us=RELEASED_US))
                    count += 1
            return Prepared(count, edit.changes)

        return await self._commit("release-leases", prepare)

    async def put_receipts(self, leased: Leased, receipts: Sequence[Receipt]) -> bool:
        async def prepare(view: View) -> Prepared[bool]:
            task_id = leased.record.task_id
            now = await find_task(view, task_id)
            if now is None or not now.is_leased_under(leased.record.lease_token):
                return Prepared(False)
            edit = self._edit()
            # Backwards: of several for one batch the first one stays.
            for receipt in reversed(receipts):
                key = receipt_key(task_id, receipt.batch)
                if await view.find(RECEIPTS, key) is None:
                    edit.set(RECEIPTS, key, msgspec.msgpack.encode(receipt))
            return Prepared(True, edit.changes)

        return await self._commit("put-receipts", prepare)

    async def receipts(self, task_id: str) -> Receipts:
        entries = await scan_all(await self._read(), RECEIPTS, prefix_of(task_id))
        kept = [decode_receipt(value) for _, value in entries]
        return Receipts({receipt.batch: receipt for receipt in kept})

    async def next_due_us(self) -> int | None:
        state = await self._read()
        start = b""
        while entries := await state.scan(DUE, start=start, limit=_LIST_AT_ONCE):
            for key, value in entries:
                if value != LEASED:
                    return decode_id_key(key[:_TIME_BYTES])
            start = behind(entries[-1][0])
        return None

    async def forget(self, before_us: int) -> int:
        async def prepare(view: View) -> Prepared[int]:
            entries = await view.scan(ENDED, end=encode_id_key(max(before_us, 0)), limit=_FORGET_AT_ONCE)
            edit = self._edit()
            for _, task in entries:
                now = await find_task(view, decode_key(task)[0])
                assert now is not None  # noqa: S101 - `ended` and `current` move together
                await edit.remove(view, now)
            return Prepared(len(entries), edit.changes)

        total = 0
        while count := await self._commit("forget-tasks", prepare):
            total += count
        return total

    async def close(self) -> None:
        """Nothing: whoever opened the store closes it."""

    # --- within --------------------------------------------------------------------------------

    async def _read(self) -> State:
        # Fresh, also where heads may be old: whoever waits for a task asks again and again.
        return (await self._committer.read(is_fresh=True)).state

    async def _commit(self, operation: str, prepare: Prepare[R]) -> R:
        outcome = await self._committer.commit(Request(prepare, "system", operation=operation))
        assert isinstance(outcome, Committed)  # noqa: S101 - the request has no idempotency key
        return outcome.result

    async def _find_lease(self, token: str, until_us: int) -> Leased | None:
        state = await self._read()
        for key, _ in await scan_all(state, DUE, encode_id_key(until_us)):
            now = await find_task(state, decode_key(task_of(key))[0])
            if now is not None and now.is_leased_under(token):
                before = (await self.history(now.record.task_id))[-2]
                return Leased(now.record, until_us, found_as(before.status))
        return None

    def _edit(self) -> Edit:
        return Edit(self._persistence.ids)


def _is_wanted(record: TaskRecord, wanted: TaskFilter) -> bool:
    return (
        wanted.status in (None, record.status)
        and wanted.task_type in (None, record.task_type)
        and wanted.catalog in (None, record.catalog)
    )


def _is_same(newest: TaskRecord, expected: TaskRecord) -> bool:
    """Whether it is that version, of that task: one that was forgotten and made anew is another."""
    return (newest.version, newest.status, newest.lease_token, newest.created_us) == (
        expected.version,
        expected.status,
        expected.lease_token,
        expected.created_us,
    )
