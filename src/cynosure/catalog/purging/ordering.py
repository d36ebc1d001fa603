"""The order of a purge, and what became of giving it.

Must not break: an order that may have arrived is never taken for one that did not. What certainly did not
arrive, and what was refused, is told apart from that (`TaskExecutor`).
"""

from datetime import UTC, datetime

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.tombstone import Tombstone
from cynosure.common.delegated.payload import Expected, TableIdentity, TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType


def make_order(catalog: OpenCatalog, tombstone: Tombstone) -> TaskOrder:
    """The order for a tombstone: the same whenever and wherever it is made."""
    *namespace, name = tombstone.path
    requested_at = datetime.fromtimestamp(tombstone.created_us / 1_000_000, UTC)
    return TaskOrder(
        task_type=TaskType.TABLE_PURGE,
        realm=catalog.realm,
        correlation_id=tombstone.correlation_id,
        table=TableIdentity(
            table_entity_id=str(tombstone.entity_id),
            catalog_name=catalog.entity.name,
            namespace_levels=tuple(namespace),
            table_name=name,
        ),
        metadata_location=tombstone.metadata_location,
        expected=Expected(
            location=tombstone.location,
            table_uuid=tombstone.table_uuid or None,
            format_version=tombstone.format_version or None,
        ),
        properties=tombstone.properties,
        requested_at=requested_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        traceparent=tombstone.traceparent or None,
    )


async def give_order(catalog: OpenCatalog, tombstone: Tombstone) -> TaskDetails:
    """Order a purge; the task as it is, also when it was ordered before."""
    return await catalog.shared.require_executor().purge_table(make_order(catalog, tombstone))


async def find_task(catalog: OpenCatalog, tombstone: Tombstone) -> TaskDetails | None:
    """The task of a tombstone; `None` when it is certain that there is none."""
    return await catalog.shared.require_executor().find(catalog.realm, tombstone.task_id)


def reason_of(task: TaskDetails) -> str:
    """Why a task failed, for people."""
    code = task.error_code or "FAILED"
    return f"{code}: {task.result_summary}" if task.result_summary else code


def has_failed_unbegun(task: TaskDetails) -> bool:
    """Whether a task has ended as if it had never been ordered."""
    return task.status is TaskStatus.FAILURE and not task.is_begun
