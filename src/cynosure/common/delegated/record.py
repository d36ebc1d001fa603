"""A task as it is told about: all that the service keeps of it, in the names of the proposal.

A maintainer must not break: times are RFC 3339 in UTC on the wire, microseconds since 1970 in code.
"""

from datetime import datetime

from msgspec import Struct

from cynosure.common.delegated.vocabulary import TaskStatus, TaskType


class ExecutionResult(Struct, frozen=True, omit_defaults=True):
    """What a task has done."""

    files_deleted: int = 0
    bytes_deleted: int = 0
    details: dict[str, int | float | str | bool | list[str]] = {}
    """What else the kind of task counts: files and bytes before and after, say."""


class TaskProgress(Struct, frozen=True):
    """How far a running task is."""

    phase: str
    done: int
    total: int | None = None
    unit: str = "files"


class TaskDetails(Struct, frozen=True, omit_defaults=True):
    """One task, as `GET …/tasks/{id}` answers it."""

    task_id: str
    version: int
    task_type: TaskType
    status: TaskStatus
    task_payload: str
    received_timestamp: datetime
    last_status_change_ts: datetime
    created_ts: datetime
    attempt_count: int = 0
    parent_id: str | None = None
    lease_acquired_ts: datetime | None = None
    next_scheduled_run_ts: datetime | None = None
    result_summary: str | None = None
    result_extended: str | None = None
    # --- beyond the proposal ---
    error_code: str | None = None
    """Of a task that failed, or is to be tried again: what went wrong, for programs."""
    is_begun: bool = False
    """Whether it may have deleted or changed anything. A purge that failed before is as if never ordered."""
    execution_result: ExecutionResult = ExecutionResult()
    progress: TaskProgress | None = None
    worker: str | None = None
    correlation_id: str = ""
    table: str = ""
    """Catalog and path, for people."""
