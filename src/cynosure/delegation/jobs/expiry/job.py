"""SNAPSHOT_EXPIRY, in the worker: the instructions, and what was counted.

A maintainer must not break: without an instruction the table's own properties decide, as for any engine.
"""

from datetime import UTC, datetime
from typing import Any, Final

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.delegation.jobs.on_table import run_on_spark
from cynosure.delegation.jobs.port import JobContext

_KNOWN: Final = (
    "min_snapshot_to_keep",
    "max_snapshot_age_days",
    "max_ref_age_days",
    "older_than",
    "retain_last",
    "clean_expired_metadata",
)


_LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the last that a time can be in."""


class ExpiryJob:
    """Expires snapshots of a table."""

    task_type: Final = TaskType.SNAPSHOT_EXPIRY

    def check(self, order: TaskOrder) -> None:
        """Refuse instructions that cannot be followed."""
        _read(order)

    async def run(self, context: JobContext) -> ExecutionResult:
        """Expire."""
        done = await run_on_spark(context, "expiry", _read(context.order))
        return ExecutionResult(done.pop("files_deleted"), done.pop("bytes_deleted"), details=done)


def _read(order: TaskOrder) -> dict[str, Any]:
    given = Instructions(order.properties, _KNOWN)
    return {
        "retain_last": given.find_whole("retain_last", least=1)
        or given.find_whole("min_snapshot_to_keep", least=1),
        "max_age_days": given.find_number("max_snapshot_age_days"),
        "max_ref_age_days": given.find_number("max_ref_age_days"),
        "older_than_ms": _read_time(given),
        "clean_expired_metadata": given.find_flag("clean_expired_metadata", default=False),
    }


def _read_time(given: Instructions) -> int | None:
    """Milliseconds since 1970, or RFC 3339."""
    text = given.find("older_than")
    if text is None or text.isdigit():
        return given.find_whole("older_than", most=_LATEST_MS)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            "An instruction is not a point in time",
            field="operation_parameters.properties.older_than",
            fix="Use milliseconds since 1970, or a time like 2026-01-31T12:00:00Z.",
            value=text[:100],
        ) from error
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
