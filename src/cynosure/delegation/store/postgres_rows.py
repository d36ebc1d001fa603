"""Tasks as rows of PostgreSQL, and back.

A maintainer must not break: times are whole microseconds on both sides.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from cynosure.common.delegated.record import ExecutionResult
from cynosure.delegation.store.waiting import read_words
from cynosure.delegation.task_record import TaskRecord

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_time(time_us: int) -> datetime:
    """A time as the driver takes it."""
    return _EPOCH + time_us * _MICROSECOND


def to_rows(realm: str, records: Sequence[TaskRecord]) -> str:
    """Versions as the JSON that statements take."""
    return msgspec.json.encode([_to_row(realm, each) for each in records]).decode()


def to_changing(record: TaskRecord) -> tuple[Any, ...]:
    """The columns in `postgres_statements.CHANGING`, in their order."""
    return (
        record.version,
        record.status,
        to_time(record.last_status_change_us),
        record.attempt_count,
        _to_time_or_none(record.lease_acquired_us),
        record.result_summary,
        record.result_extended,
        _to_time_or_none(record.next_scheduled_run_us),
        record.error_code,
        record.is_begun,
        msgspec.json.encode(record.execution_result).decode(),
        record.worker,
        record.lease_token,
    )


def to_record(row: Sequence[Any]) -> TaskRecord:
    """A version from its columns, in the order of `postgres_statements`."""
    (
        _realm, task_id, version, parent_id, task_type, payload, status, received, changed, attempts, created,
        lease_acquired, summary, extended, next_run, error_code, is_begun, result, worker, token, fingerprint,
        correlation_id, catalog,
    ) = row[:23]  # fmt: skip
    kind, state = read_words(task_type, status)
    return TaskRecord(
        task_id=str(task_id),
        version=version,
        task_type=kind,
        task_payload=payload,
        status=state,
        received_us=_to_us(received),
        last_status_change_us=_to_us(changed),
        created_us=_to_us(created),
        attempt_count=attempts,
        parent_id=None if parent_id is None else str(parent_id),
        lease_acquired_us=_to_us(lease_acquired),
        next_scheduled_run_us=_to_us(next_run),
        result_summary=summary,
        result_extended=extended,
        error_code=error_code,
        is_begun=is_begun,
        execution_result=msgspec.json.decode(result, type=ExecutionResult),
        worker=worker,
        lease_token=token,
        fingerprint=fingerprint,
        correlation_id=correlation_id,
        catalog=catalog,
    )


def _to_row(realm: str, record: TaskRecord) -> dict[str, Any]:
    return {
        "realm": realm,
        "task_id": record.task_id,
        "version": record.version,
        "parent_id": record.parent_id,
        "task_type": record.task_type,
        "task_payload": record.task_payload,
        "status": record.status,
        "received_timestamp": to_time(record.received_us),
        "last_status_change_ts": to_time(record.last_status_change_us),
        "attempt_count": record.attempt_count,
        "created_ts": to_time(record.created_us),
        "lease_acquired_ts": _to_time_or_none(record.lease_acquired_us),
        "result_summary": record.result_summary,
        "result_extended": record.result_extended,
        "next_scheduled_run_ts": _to_time_or_none(record.next_scheduled_run_us),
        "error_code": record.error_code,
        "is_begun": record.is_begun,
        "execution_result": msgspec.json.encode(record.execution_result).decode(),
        "worker": record.worker,
        "lease_token": record.lease_token,
        "fingerprint": record.fingerprint,
        "correlation_id": record.correlation_id,
        "catalog": record.catalog,
    }


def _to_time_or_none(time_us: int) -> datetime | None:
    return to_time(time_us) if time_us else None


def _to_us(time: datetime | None) -> int:
    return 0 if time is None else (time - _EPOCH) // _MICROSECOND
