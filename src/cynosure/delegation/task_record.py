"""One version of a task, as stores keep it and workers change it.

A maintainer must not break: times are microseconds since 1970; what differs between two versions of one task
is said in `transitions.py`, and nothing else does.
"""

from typing import Final

from msgspec import Struct

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType

LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999: the latest time that is kept. A schedule may mean a later one by "never"."""


class TaskRecord(Struct, frozen=True):
    """One version of a task. Times are microseconds since 1970, 0 where there is none."""

    task_id: str
    version: int
    task_type: TaskType
    task_payload: str
    """`common.delegated.payload.encode_order`."""
    status: TaskStatus
    received_us: int
    last_status_change_us: int
    created_us: int
    attempt_count: int = 0
    parent_id: str | None = None
    lease_acquired_us: int = 0
    next_scheduled_run_us: int = 0
    """Not to be leased before; of SUBMITTED and RETRY_SCHEDULED."""
    result_summary: str | None = None
    result_extended: str | None = None
    error_code: str | None = None
    is_begun: bool = False
    execution_result: ExecutionResult = ExecutionResult()
    worker: str | None = None
    """Which instance has it, or had it last."""
    lease_token: str = ""
    """Names one lease; whoever changes a leased task shows it."""
    fingerprint: str = ""
    """Of the order (`TaskOrder.fingerprint`)."""
    correlation_id: str = ""
    catalog: str = ""
