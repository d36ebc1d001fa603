"""FORMAT_CONVERSION, in the worker: the instructions, and whether table and order go together.

A maintainer must not break: a directory becomes the table that lies there, and no other: files are never
copied, and no table refers to files outside of its own place.
"""

from typing import Any, Final

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, NotFound
from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.delegation.jobs.on_table import name_table, open_expected, require_spark
from cynosure.delegation.jobs.port import JobContext, JobFailed
from cynosure.storage.location import Location

_KNOWN: Final = ("format_version", "source")
_FIELD: Final = "operation_parameters.properties"
_VERSIONS: Final = (1, 3)


class ConversionJob:
    """Converts a table, or a directory into a table."""

    task_type: Final = TaskType.FORMAT_CONVERSION

    def check(self, order: TaskOrder) -> None:
        """Refuse instructions that cannot be followed."""
        _read(order)

    async def run(self, context: JobContext) -> ExecutionResult:
        """Convert."""
        version, source = _read(context.order)
        if source is None:
            return await _upgrade(context, version or 0)
        return await _adopt(context, source)


def _read(order: TaskOrder) -> tuple[int | None, Location | None]:
    given = Instructions(order.properties, _KNOWN)
    version = given.find_whole("format_version", least=_VERSIONS[0], most=_VERSIONS[1])
    source = given.find("source")
    if (version is None) == (source is None):
        raise BadInput(
            "The order does not say what to convert to what",
            field=f"{_FIELD}.format_version",
            fix="Give either format_version (2 or 3), or source (where a directory of Parquet files is).",
        )
    return version, None if source is None else Location.parse(source, field=f"{_FIELD}.source")


async def _upgrade(context: JobContext, version: int) -> ExecutionResult:
    spark = require_spark(context)
    access = await open_expected(context)
    found: int = access.facts.metadata["format-version"]
    details: dict[str, int | float | str | bool | list[str]] = {
        "format_version_before": found,
        "format_version_after": version,
    }
    if version < found:
        raise BadInput(
            "A table does not go back to an older format version",
            field=f"{_FIELD}.format_version",
            fix=f"Use {found} or newer.",
            value=version,
        )
    await context.begin()
    if version > found:
        await context.mark_begun()
        context.lease.check()
        table = name_table(context.order, access.facts.table_uuid)
        await spark.run("conversion-upgrade", {**table, "format_version": version}, context)
    return ExecutionResult(details=details)


async def _adopt(context: JobContext, source: Location) -> ExecutionResult:
    spark = require_spark(context)
    access = await _find(context)
    if access is not None and Location.parse(access.facts.location) != source:
        raise JobFailed(
            "The table is at another place than the directory",
            code="CONVERSION_REFUSED",
            status=409,
            fix="Name a table that does not exist yet, or one whose location is the directory.",
            location=access.facts.location,
            source=source.text,
        )
    _check_local(context, source)
    await context.begin()
    await context.report(TaskProgress("starting Spark", 0))
    await context.mark_begun()
    context.lease.check()
    parameters: dict[str, Any] = name_table(context.order, access.facts.table_uuid if access else None)
    parameters |= {"source": source.text, "exists": access is not None}
    return ExecutionResult(details=await spark.run("conversion-adopt", parameters, context))


async def _find(context: JobContext) -> TableAccess | None:
    """The table, if it is there; what the order expects of it holds."""
    try:
        return await open_expected(context)
    except JobFailed as error:
        if isinstance(error.__cause__, NotFound) and context.order.expected.table_uuid is None:
            return None
        raise


def _check_local(context: JobContext, source: Location) -> None:
    """Local files are read as whoever runs the service: only where it was allowed."""
    if source.scheme != "file":
        return
    allowed = [Location.parse(each) for each in context.settings.service.file_locations]
    if not any(source.is_within(each) for each in allowed):
        raise JobFailed(
            "The service may not touch local files there",
            code="CONVERSION_REFUSED",
            status=409,
            fix="Add the directory to delegation.service.file_locations.",
            source=source.text,
        )
