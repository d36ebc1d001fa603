"""A task as maintenance orders it.

Must not break: the correlation id says what it is for and nothing that changes on the way, so that
ordering it again is the same task.
"""

from collections.abc import Awaitable, Callable, Mapping

from msgspec.structs import replace

from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.windows import to_datetime
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.common.delegated.payload import Expected, TableIdentity, TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.telemetry.tracing import span


def make_order(
    catalog: OpenCatalog,
    path: Identifier,
    table: ManagedTable,
    task_type: TaskType,
    properties: Mapping[str, str],
    *,
    why: str,
) -> TaskOrder:
    """One task for one table; `why` tells it from all others for the same table."""
    now_us = catalog.shared.persistence.clock.now_us()
    state = table.state
    return TaskOrder(
        task_type=task_type,
        realm=catalog.realm,
        correlation_id=f"upkeep-{catalog.entity.id}-{state.id}-{task_type}-{why}",
        table=TableIdentity(str(state.id), catalog.entity.name, path.namespace, path.name),
        expected=Expected(location=state.location, table_uuid=state.table_uuid),
        properties=dict(properties),
        requested_at=to_datetime(now_us).isoformat().replace("+00:00", "Z"),
    )


async def send_order(executor: TaskExecutor, order: TaskOrder) -> TaskDetails:
    """Order it, by the method of its kind."""
    methods: dict[TaskType, Callable[[TaskOrder], Awaitable[TaskDetails]]] = {
        TaskType.TABLE_PURGE: executor.purge_table,
        TaskType.SNAPSHOT_EXPIRY: executor.expire_snapshots,
        TaskType.DATA_COMPACTION: executor.compact_data,
        TaskType.ORPHAN_FILE_REMOVAL: executor.remove_orphan_files,
        TaskType.METADATA_COMPACTION: executor.compact_metadata,
        TaskType.FORMAT_CONVERSION: executor.convert_format,
    }
    with span(
        "catalog.order_maintenance", table=".".join(order.table.path), task_type=order.task_type
    ) as traced:
        # One trace from here to the job; it does not count for what the order is.
        return await methods[order.task_type](replace(order, traceparent=traced.traceparent or None))
