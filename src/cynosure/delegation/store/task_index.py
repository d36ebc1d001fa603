"""The `tasks` reference of a realm: which indexes hold what, and how a change of a task moves them.

| index      | key                       | value                                              |
|------------|---------------------------|----------------------------------------------------|
| `current`  | task                      | its newest version                                 |
| `history`  | task · version            | that version                                       |
| `created`  | time, counted down · task | the task: so the newest come first                 |
| `children` | parent · time · task      | the sub-task                                       |
| `due`      | ready time · task         | whether it is leased; `waiting.py`. None has ended |
| `leases`   | task                      | `Lease`                                            |
| `ended`    | time · task               | the task: what `forget` removes                    |
| `receipts` | task · batch              | `Receipt`                                          |
| `progress` | task                      | `TaskProgress`                                     |

A maintainer must not break: all entries of a task move in one commit, and `due` is right for every task that
has not ended, or it would never be taken again.
"""

from typing import Final

import msgspec

from cynosure.delegation.store.port import Receipt
from cynosure.delegation.store.stored import (
    DELEGATED_TASK,
    Lease,
    StoredTask,
    first_version,
    next_version,
    to_record,
)
from cynosure.delegation.store.waiting import ready_of
from cynosure.delegation.task_record import TaskRecord
from cynosure.persistence.commit import View, find_object
from cynosure.persistence.ids import IdSource
from cynosure.persistence.index import encode_id_key, encode_key, prefix_of
from cynosure.persistence.index.keys import MAX_ID
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject

CURRENT, HISTORY, CREATED, CHILDREN = "current", "history", "created", "children"
DUE, LEASES, ENDED, RECEIPTS, PROGRESS = "due", "leases", "ended", "receipts", "progress"
WAITS: Final = b"waits"
LEASED: Final = b"leased"


def created_key(created_us: int, task_id: str) -> bytes:
    """Key in `created`."""
    return encode_id_key(MAX_ID - created_us) + encode_key(task_id)


def timed_key(time_us: int, task_id: str) -> bytes:
    """Key in `due` and `ended`."""
    return encode_id_key(time_us) + encode_key(task_id)


def task_of(key: bytes) -> bytes:
    """The task's own key, out of one that begins with a time."""
    return key[len(encode_id_key(0)) :]


def receipt_key(task_id: str, batch: str) -> bytes:
    """Key in `receipts`."""
    return encode_key(task_id, batch)


def decode_receipt(value: bytes) -> Receipt:
    """From an index value."""
    return msgspec.msgpack.decode(value, type=Receipt)


async def load_records(view: View, keys: list[bytes]) -> list[TaskRecord]:
    """Newest versions of the tasks with these keys, in their order."""
    values = [await view.find(CURRENT, key) for key in keys]
    ids = [ObjRef.unpack(value).id for value in values if value is not None]
    return [to_record(each) for each in await view.load_many(DELEGATED_TASK, ids)]


class TaskNow:
    """A task in a state, and who has it."""

    def __init__(self, stored: StoredTask, lease: Lease | None) -> None:
        self.stored = stored
        self.record = to_record(stored)
        self.lease = lease

    @property
    def ready_us(self) -> int | None:
        """From when on it can be taken."""
        return ready_of(self.record, self.lease.until_us if self.lease else 0)

    def is_leased_under(self, token: str) -> bool:
        """Whether this lease is the one that holds, and was not ended by `release`."""
        return self.lease is not None and self.lease.until_us > 0 and self.record.lease_token == token


async def find_task(view: View, task_id: str) -> TaskNow | None:
    """The task of this id."""
    key = encode_key(task_id)
    stored = await find_object(view, CURRENT, key, DELEGATED_TASK)
    if stored is None:
        return None
    lease = await view.find(LEASES, key)
    return TaskNow(stored, None if lease is None else Lease.decode(lease))


class Edit:
    """Changes of one commit."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self.changes: dict[str, dict[bytes, bytes | None]] = {}
        self.objects: list[NewObject] = []

    def set(self, index: str, key: bytes, value: bytes | None) -> None:
        """One entry; `None` removes it."""
        self.changes.setdefault(index, {})[key] = value

    def add(self, record: TaskRecord) -> None:
        """A task that is new."""
        task = encode_key(record.task_id)
        self.set(CREATED, created_key(record.created_us, record.task_id), task)
        if record.parent_id is not None:
            self.set(CHILDREN, _child_key(record.parent_id, record), task)
        self._keep(first_version(record))
        self._place(record, ready_of(record, 0))

    def move(self, now: TaskNow, record: TaskRecord, lease: Lease | None) -> StoredTask:
        """The next version of a task. `lease` is of leased versions only."""
        before = now.record
        self._displace(before, now.ready_us)
        stored = next_version(now.stored, record)
        self._keep(stored)
        self._place(record, ready_of(record, lease.until_us if lease else 0))
        if lease is not None:
            self.set(LEASES, encode_key(record.task_id), lease.encode())
        elif now.lease is not None:
            self.set(LEASES, encode_key(record.task_id), None)
        return stored

    def prolong(self, now: TaskNow, lease: Lease) -> None:
        """Another end of the lease; the version stays."""
        self._displace(now.record, now.ready_us)
        self._place(now.record, lease.until_us)
        self.set(LEASES, encode_key(now.record.task_id), lease.encode())

    async def clear_receipts(self, view: View, task_id: str) -> None:
        """Of a run that is over."""
        for key, _ in await scan_all(view, RECEIPTS, prefix_of(task_id)):
            self.set(RECEIPTS, key, None)

    async def remove(self, view: View, now: TaskNow) -> None:
        """All that is kept of a task."""
        record, task = now.record, encode_key(now.record.task_id)
        self._displace(record, now.ready_us)
        self.set(CURRENT, task, None)
        self.set(CREATED, created_key(record.created_us, record.task_id), None)
        self.set(PROGRESS, task, None)
        if record.parent_id is not None:
            self.set(CHILDREN, _child_key(record.parent_id, record), None)
        for key, _ in await scan_all(view, HISTORY, prefix_of(record.task_id)):
            self.set(HISTORY, key, None)
        await self.clear_receipts(view, record.task_id)

    def _keep(self, stored: StoredTask) -> None:
        new = NewObject(DELEGATED_TASK, self._ids.next(), stored)
        value = ObjRef(new.id, DELEGATED_TASK.name).pack()
        self.objects.append(new)
        self.set(CURRENT, encode_key(stored.task_id), value)
        self.set(HISTORY, prefix_of(stored.task_id) + encode_id_key(stored.version), value)

    def _displace(self, record: TaskRecord, ready_us: int | None) -> None:
        if ready_us is None:
            self.set(ENDED, timed_key(record.last_status_change_us, record.task_id), None)
        else:
            self.set(DUE, timed_key(ready_us, record.task_id), None)

    def _place(self, record: TaskRecord, ready_us: int | None) -> None:
        if ready_us is None:
            key = timed_key(record.last_status_change_us, record.task_id)
            self.set(ENDED, key, encode_key(record.task_id))
        else:
            value = LEASED if record.status.is_leased else WAITS
            self.set(DUE, timed_key(ready_us, record.task_id), value)


def _child_key(parent_id: str, record: TaskRecord) -> bytes:
    return prefix_of(parent_id) + timed_key(record.created_us, record.task_id)
