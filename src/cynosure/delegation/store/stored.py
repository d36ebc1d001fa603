"""Tasks as they are kept by `ObjectTaskStore`: one object for each version.

A maintainer must not break: new fields have defaults; the next version is made out of the one before it
(`next_version`), so that what a newer server wrote is kept.
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from cynosure.common.delegated.record import ExecutionResult
from cynosure.delegation.store.waiting import read_words
from cynosure.delegation.task_record import TaskRecord
from cynosure.persistence.objects import Stored, struct_type


class StoredTask(Stored, frozen=True, omit_defaults=True):
    """One version of a task; fields as in `TaskRecord`."""

    task_id: str
    version: int
    task_type: str
    task_payload: str
    status: str
    received_us: int
    last_status_change_us: int
    created_us: int
    attempt_count: int = 0
    parent_id: str | None = None
    lease_acquired_us: int = 0
    next_scheduled_run_us: int = 0
    result_summary: str | None = None
    result_extended: str | None = None
    error_code: str | None = None
    is_begun: bool = False
    execution_result: dict[str, Any] = msgspec.field(default_factory=dict)
    worker: str | None = None
    lease_token: str = ""
    fingerprint: str = ""
    correlation_id: str = ""
    catalog: str = ""


DELEGATED_TASK = struct_type("delegated-task", StoredTask)


class Lease(Struct, frozen=True, array_like=True):
    """Who has a task, and until when; an index value."""

    until_us: int
    worker: str

    def encode(self) -> bytes:
        """As an index value."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, value: bytes) -> "Lease":
        """From an index value."""
        return msgspec.msgpack.decode(value, type=cls)


def to_record(stored: StoredTask) -> TaskRecord:
    """As the port has it."""
    fields = asdict(stored)
    del fields["unknown"]
    fields["task_type"], fields["status"] = read_words(stored.task_type, stored.status)
    fields["execution_result"] = msgspec.convert(stored.execution_result, ExecutionResult)
    return TaskRecord(**fields)


def first_version(record: TaskRecord) -> StoredTask:
    """The version to keep of a task that is new."""
    return StoredTask(**_fields_of(record))


def next_version(before: StoredTask, record: TaskRecord) -> StoredTask:
    """The version to keep after another."""
    return replace(before, **_fields_of(record))


def _fields_of(record: TaskRecord) -> dict[str, Any]:
    fields = asdict(record)
    fields["task_type"] = str(record.task_type)
    fields["status"] = str(record.status)
    fields["execution_result"] = msgspec.to_builtins(record.execution_result)
    return fields
