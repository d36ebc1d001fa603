"""Which state of a task may follow which, why, and how the next version of a task is made.

The table is that of the proposal, with what it says in words put in: a task whose worker is gone is leased
again (`lost`), a scheduled one begins again (`schedule`), an operator gives a task up or has it tried again.

The functions make the next version out of the newest one; `TaskStore.swap` keeps it. A scheduled task that
succeeded (`next_scheduled_run_us` of a SUCCESS) is followed by its next SUBMITTED in the very same change
(`follow_up`), so no crash can end a schedule.

A maintainer must not break: both stores ask `check_change` before they keep a version; and what a task may
have changed (`is_begun`) is forgotten only when a schedule begins it anew.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from cynosure.common.delegated.payload import TaskOrder, encode_order
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadInput, Conflict
from cynosure.delegation.task_record import LAST_US, TaskRecord

CANCELLED: Final = "CANCELLED"
"""`error_code` of a task that was given up."""
MAX_SUMMARY_CHARS: Final = 2_000
MAX_EXTENDED_CHARS: Final = 20_000


class Cause(StrEnum):
    """Why a task changes its state."""

    LEASE = "lease"
    """A worker takes it."""
    LOST = "lost"
    """Another worker takes it: the one that had it said nothing for too long."""
    WORK = "work"
    """Whoever works on it says so."""
    OPERATOR = "operator"
    """Somebody gives it up, or has it tried again."""
    SCHEDULE = "schedule"
    """It is done again and again."""


_S = TaskStatus
TRANSITIONS: Final[Mapping[TaskStatus, Mapping[TaskStatus, frozenset[Cause]]]] = MappingProxyType(
    {
        _S.SUBMITTED: MappingProxyType(
            {
                _S.ACQUIRING_RESOURCES: frozenset({Cause.LEASE}),
                _S.RUNNING: frozenset({Cause.LEASE}),
                _S.FAILURE: frozenset({Cause.OPERATOR}),
            }
        ),
        _S.ACQUIRING_RESOURCES: MappingProxyType(
            {
                _S.ACQUIRING_RESOURCES: frozenset({Cause.LOST, Cause.WORK}),
                _S.RUNNING: frozenset({Cause.WORK}),
                _S.RETRY_SCHEDULED: frozenset({Cause.WORK}),
                _S.FAILURE: frozenset({Cause.WORK, Cause.OPERATOR}),
            }
        ),
        _S.RUNNING: MappingProxyType(
            {
                _S.ACQUIRING_RESOURCES: frozenset({Cause.LOST}),
                _S.RUNNING: frozenset({Cause.WORK}),
                _S.SUCCESS: frozenset({Cause.WORK}),
                _S.RETRY_SCHEDULED: frozenset({Cause.WORK}),
                _S.FAILURE: frozenset({Cause.WORK, Cause.OPERATOR}),
            }
        ),
        _S.RETRY_SCHEDULED: MappingProxyType(
            {
                _S.ACQUIRING_RESOURCES: frozenset({Cause.LEASE}),
                _S.RUNNING: frozenset({Cause.LEASE}),
                _S.SUBMITTED: frozenset({Cause.OPERATOR}),
                _S.FAILURE: frozenset({Cause.OPERATOR}),
            }
        ),
        _S.SUCCESS: MappingProxyType({_S.SUBMITTED: frozenset({Cause.SCHEDULE})}),
        _S.FAILURE: MappingProxyType({_S.SUBMITTED: frozenset({Cause.OPERATOR})}),
    }
)
"""For each state, those that may follow it, and why."""


def check_transition(before: TaskStatus, after: TaskStatus) -> None:
    """`Conflict` unless a task may go from the one state to the other."""
    allowed = TRANSITIONS[before]
    if after not in allowed:
        raise Conflict(
            "A task in this state cannot go over to that one",
            fix=f"From {before} it can become {' or '.join(sorted(allowed))}.",
            field="status",
            before=str(before),
            after=str(after),
        )


def check_change(expected: TaskRecord, record: TaskRecord) -> None:
    """`Conflict` unless `swap` may make the one out of the other. Only `TaskStore.lease` gives leases."""
    check_transition(expected.status, record.status)
    if record.status.is_leased and not expected.status.is_leased:
        raise Conflict("Only a worker that leases it begins a task", fix="Lease it.", field="status")


# --- versions ------------------------------------------------------------------------------------


def submitted(
    order: TaskOrder, *, now_us: int, parent_id: str | None = None, first_run_us: int = 0
) -> TaskRecord:
    """The first version of a task; it is not leased before `first_run_us`."""
    named = {
        "common_payload.polaris_correlation_id": order.correlation_id,
        "operation_parameters.table_identity.catalog_name": order.table.catalog_name,
    }
    for field, text in named.items():
        if "\0" in text:
            raise BadInput("A name holds a NUL character", field=field, fix="Leave it out.")
    return TaskRecord(
        task_id=order.task_id,
        version=1,
        task_type=order.task_type,
        task_payload=encode_order(order),
        status=TaskStatus.SUBMITTED,
        received_us=now_us,
        last_status_change_us=now_us,
        created_us=now_us,
        parent_id=parent_id,
        next_scheduled_run_us=min(first_run_us, LAST_US),
        fingerprint=order.fingerprint,
        correlation_id=order.correlation_id,
        catalog=order.table.catalog_name,
    )


def leased(record: TaskRecord, *, worker: str, token: str, now_us: int) -> TaskRecord:
    """A worker has it: one attempt more."""
    after = _moved(record, TaskStatus.ACQUIRING_RESOURCES, now_us)
    return replace(
        after,
        attempt_count=record.attempt_count + 1,
        lease_acquired_us=now_us,
        next_scheduled_run_us=0,
        worker=worker,
        lease_token=token,
    )


def running(record: TaskRecord, *, now_us: int) -> TaskRecord:
    """The worker that has it has what it needs."""
    after = _moved(record, TaskStatus.RUNNING, now_us)
    check_change(record, after)
    return after


def begun(record: TaskRecord) -> TaskRecord:
    """From now on it may have changed something. Its state stays."""
    check_transition(record.status, record.status)
    return replace(record, version=record.version + 1, is_begun=True)


def succeeded(
    record: TaskRecord, *, now_us: int, result: ExecutionResult, summary: str = "", next_run_us: int = 0
) -> TaskRecord:
    """All is done. With `next_run_us`, what the store answers is the SUBMITTED that follows (`follow_up`)."""
    after = _ended_attempt(record, TaskStatus.SUCCESS, now_us)
    return replace(
        after,
        next_scheduled_run_us=min(next_run_us, LAST_US),
        result_summary=_cut(summary, MAX_SUMMARY_CHARS),
        result_extended=None,
        error_code=None,
        execution_result=result,
    )


def follow_up(record: TaskRecord) -> TaskRecord | None:
    """What follows this version in the same change: the next run of a task that is done again and again.

    Its receipts go, because they are of the run that has ended; what that run came to stays readable.
    """
    if record.status is not TaskStatus.SUCCESS or not record.next_scheduled_run_us:
        return None
    after = _moved(record, TaskStatus.SUBMITTED, record.last_status_change_us)
    return replace(after, attempt_count=0, is_begun=False)


def retry_scheduled(
    record: TaskRecord, *, now_us: int, due_us: int, code: str, summary: str, extended: str | None = None
) -> TaskRecord:
    """A passing trouble: it is tried again from `due_us` on."""
    after = _troubled(record, TaskStatus.RETRY_SCHEDULED, now_us, code, summary, extended)
    return replace(after, next_scheduled_run_us=min(due_us, LAST_US))


def given_back(record: TaskRecord, *, now_us: int, summary: str) -> TaskRecord:
    """The worker stops before it has finished: another one may go on at once; the attempt does not count."""
    after = _ended_attempt(record, TaskStatus.RETRY_SCHEDULED, now_us)
    return replace(
        after,
        attempt_count=max(record.attempt_count - 1, 0),
        next_scheduled_run_us=now_us,
        result_summary=_cut(summary, MAX_SUMMARY_CHARS),
    )


def failed(
    record: TaskRecord, *, now_us: int, code: str, summary: str, extended: str | None = None,
    result: ExecutionResult | None = None,
) -> TaskRecord:  # fmt: skip
    """It cannot be done, or was tried often enough. `result`: what was done of it."""
    after = _troubled(record, TaskStatus.FAILURE, now_us, code, summary, extended)
    return after if result is None else replace(after, execution_result=result)


def cancelled(
    record: TaskRecord, *, now_us: int, summary: str = "An operator gave the task up"
) -> TaskRecord:
    """An operator gave it up; what it has changed stays changed."""
    return _troubled(record, TaskStatus.FAILURE, now_us, CANCELLED, summary, None)


def resubmitted(record: TaskRecord, *, now_us: int) -> TaskRecord:
    """An operator has it tried again, with all attempts before it. What was done stays done (receipts)."""
    after = _moved(record, TaskStatus.SUBMITTED, now_us)
    return replace(after, attempt_count=0, next_scheduled_run_us=0, error_code=None)


def _moved(record: TaskRecord, status: TaskStatus, now_us: int) -> TaskRecord:
    check_transition(record.status, status)
    changed_us = now_us if status is not record.status or status.is_leased else record.last_status_change_us
    return replace(record, version=record.version + 1, status=status, last_status_change_us=changed_us)


def _ended_attempt(record: TaskRecord, status: TaskStatus, now_us: int) -> TaskRecord:
    return replace(_moved(record, status, now_us), lease_token="", next_scheduled_run_us=0)


def _troubled(
    record: TaskRecord, status: TaskStatus, now_us: int, code: str, summary: str, extended: str | None
) -> TaskRecord:
    return replace(
        _ended_attempt(record, status, now_us),
        error_code=code,
        result_summary=_cut(summary, MAX_SUMMARY_CHARS),
        result_extended=None if extended is None else _cut(extended, MAX_EXTENDED_CHARS),
    )


def _cut(text: str, most: int) -> str:
    # No database keeps NUL in text; what jobs report may quote anything.
    text = text.replace("\0", "")
    return text if len(text) <= most else f"{text[: most - 1]}…"
