"""A record of the store as it is told about."""

from datetime import UTC, datetime, timedelta

from cynosure.common.delegated.payload import decode_order
from cynosure.common.delegated.record import TaskDetails, TaskProgress
from cynosure.delegation.task_record import TaskRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_details(record: TaskRecord, progress: TaskProgress | None = None) -> TaskDetails:
    """One version of a task, for those outside."""
    table = decode_order(record.task_payload).table
    return TaskDetails(
        task_id=record.task_id,
        version=record.version,
        task_type=record.task_type,
        status=record.status,
        task_payload=record.task_payload,
        received_timestamp=_moment(record.received_us),
        last_status_change_ts=_moment(record.last_status_change_us),
        created_ts=_moment(record.created_us),
        attempt_count=record.attempt_count,
        parent_id=record.parent_id,
        lease_acquired_ts=_find_moment(record.lease_acquired_us),
        next_scheduled_run_ts=_find_moment(record.next_scheduled_run_us),
        result_summary=record.result_summary,
        result_extended=record.result_extended,
        error_code=record.error_code,
        is_begun=record.is_begun,
        execution_result=record.execution_result,
        progress=progress if record.status.is_leased else None,
        worker=record.worker,
        correlation_id=record.correlation_id,
        table=".".join((table.catalog_name, *table.path)),
    )


def _moment(us: int) -> datetime:
    # Not `fromtimestamp`: a float does not hold the microseconds of our time exactly.
    return _EPOCH + timedelta(microseconds=us)


def _find_moment(us: int) -> datetime | None:
    return _moment(us) if us else None
