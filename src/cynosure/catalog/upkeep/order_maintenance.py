"""Order one task for one table, now: whatever policies say.

Must not break: a repeated request with the same Idempotency-Key orders the same task. The correlation id is
made of the key, so that is so also when the first attempt died between the order and its record.
"""

from uuid import UUID

from msgspec import Struct, field

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_as, end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Kept
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import reports_committer
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.upkeep.ends import with_ends
from cynosure.catalog.upkeep.facts import load_surveyed
from cynosure.catalog.upkeep.metrics import TASKS
from cynosure.catalog.upkeep.ordering import make_order, send_order
from cynosure.catalog.upkeep.runs import Run, find_upkeep
from cynosure.catalog.upkeep.scheduler import prepare_run
from cynosure.catalog.upkeep.survey import survey_table
from cynosure.common.delegated.payload import TaskOrder, as_flag
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskType, parse_task_type
from cynosure.common.errors import BadInput, Conflict
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.spi import ObjId

RECALL: Kept[TaskDetails] = Kept(TaskDetails)
DRY_RUN = "dryRun"


class Wanted(Struct, frozen=True):
    """The task that is wanted."""

    operation: str
    """A kind of tasks, in any spelling."""
    properties: dict[str, str] = field(default_factory=dict)
    """Instructions for the task."""


async def order_maintenance(
    catalog: OpenCatalog, caller: Caller, table: Identifier, wanted: Wanted
) -> TaskDetails:
    """The task as it was accepted; `Conflict` while one of its kind is under way for the table."""
    task_type = _parse(wanted)
    committer = reports_committer(catalog)
    target = catalog.table(table)

    async def check(view: View) -> Guards:
        # The view is of what was done; the table, and who may do something to it, is in `main`.
        return await catalog.authorize(await catalog.read(), caller, ops.ORDER_MAINTENANCE, target)

    recalled = await find_recalled(committer, caller, check=check, recall=RECALL)
    if recalled is not None:
        return recalled.result
    async with refusing(committer, caller, ops.ORDER_MAINTENANCE.name):
        state = await catalog.read()
        await catalog.authorize(state, caller, ops.ORDER_MAINTENANCE, target)
        surveyed = await survey_table(state, table, await require_table_ref(state, table))
        _require_service(catalog, task_type)
        end_rehearsal(caller)
        loaded = await load_surveyed(catalog, caller, state, surveyed)
        why = _why(catalog, caller)
        order = make_order(catalog, table, loaded, task_type, wanted.properties, why=why)
        await _require_idle(catalog, surveyed.id, order)
        details = await send_order(catalog.shared.require_executor(), order)
    run = Run(
        task_id=details.task_id,
        ordered_us=catalog.shared.persistence.clock.now_us(),
        ordered_by=caller.principal,
        snapshot_id=loaded.state.current_snapshot_id,
    )

    async def prepare(view: View) -> Prepared[TaskDetails]:
        guards = await check(view)
        recorded = await prepare_run(catalog, view, order, run, surveyed.id)
        return Prepared(details, recorded.changes, recorded.objects, guards=guards)

    committed = await commit_as(
        committer, caller, ops.ORDER_MAINTENANCE.name, prepare, check=check, recall=RECALL
    )
    TASKS.inc(type=task_type, outcome="ordered")
    return committed.result


def _parse(wanted: Wanted) -> TaskType:
    task_type = parse_task_type(wanted.operation, field="operation")
    if task_type is TaskType.TABLE_PURGE and not as_flag(wanted.properties, DRY_RUN):
        raise BadInput(
            "A table that is there is not purged",
            field="operation",
            fix=f"Drop the table with purgeRequested=true, or set {DRY_RUN} to see what that would delete.",
        )
    return task_type


def _require_service(catalog: OpenCatalog, task_type: TaskType) -> None:
    executor = catalog.shared.require_executor()
    if not executor.is_delegated and task_type is not TaskType.TABLE_PURGE:
        raise BadInput(
            "This needs a delegation service",
            field="operation",
            fix="Run 'cynosure serve delegation' and set delegation.endpoint.",
            operation=task_type.value,
        )


async def _require_idle(catalog: OpenCatalog, table_id: ObjId, order: TaskOrder) -> None:
    view = (await reports_committer(catalog).read()).state
    recorded = await find_upkeep(view, table_id, order.task_type)
    if recorded is None:
        return
    key = (table_id, order.task_type)
    upkeep = (await with_ends(catalog, {key: recorded}))[key]
    under_way = next((run for run in upkeep.runs if run.is_under_way), None)
    if under_way is not None and under_way.task_id != order.task_id:
        raise Conflict(
            "Such a task is under way for the table",
            fix="Wait for it: 'cynosure tasks watch ID' shows how far it is.",
            task_id=under_way.task_id,
        )


def _why(catalog: OpenCatalog, caller: Caller) -> str:
    """What tells this order from all others: its key if it has one."""
    if caller.key is not None:
        return f"key-{UUID(hex=caller.key.hash[:32])}"
    return f"order-{catalog.shared.persistence.ids.next()}"
