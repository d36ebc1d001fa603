"""What jobs that keep a table in shape have in common: the right table, its lease, Spark.

A maintainer must not break: the table is compared with the order before anything is touched, and the lease is
checked right before Spark is told to go.
"""

from typing import Any

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import NotFound
from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.live_files.own_files import require_own_files
from cynosure.delegation.jobs.port import JobContext, JobFailed, SparkRunner


async def open_expected(context: JobContext) -> TableAccess:
    """The table of an order; `JobFailed` when it is not there, or is another one."""
    order = context.order
    try:
        access = await context.catalog.open_table(order)
    except NotFound as error:
        raise JobFailed(
            "The table is not there", code="TABLE_MISSING", status=409, table=".".join(order.table.path)
        ) from error
    facts, expected = access.facts, order.expected
    if facts.is_federated:
        raise JobFailed(
            "The table belongs to another catalog, which keeps it in shape itself",
            code="FEDERATED_TABLE",
            status=409,
        )
    if expected.table_uuid not in (None, facts.table_uuid) or (
        expected.location is not None and expected.location.rstrip("/") != facts.location.rstrip("/")
    ):
        raise JobFailed(
            "The table is not the one that the order names",
            code="TABLE_MISMATCH",
            status=409,
            fix="Order it for the table that is there now.",
            found=facts.table_uuid,
            expected=expected.table_uuid,
        )
    return access


def require_spark(context: JobContext) -> SparkRunner:
    """Spark; `JobFailed` where there is none."""
    if context.spark is None:
        raise JobFailed(
            "This task runs on Spark, and here is none",
            code="NO_SPARK",
            status=500,
            fix="Order it from a delegation service with the extra `spark`.",
        )
    return context.spark


def name_table(order: TaskOrder, table_uuid: str | None) -> dict[str, Any]:
    """The table in the parameters of a driver job (`cynosure.delegation.spark.table`)."""
    return {
        "namespace": list(order.table.namespace_levels),
        "name": order.table.table_name,
        "table_uuid": table_uuid,
    }


async def run_on_spark(context: JobContext, job: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Compare the table with the order, then run a driver job for it; what that returns."""
    spark = require_spark(context)
    access = await open_expected(context)
    await require_own_files(context, access)
    await context.begin()
    await context.report(TaskProgress("starting Spark", 0))
    await context.mark_begun()
    context.lease.check()
    table = name_table(context.order, access.facts.table_uuid)
    return await spark.run(job, {**table, **parameters}, context)
