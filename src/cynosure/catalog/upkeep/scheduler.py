"""Keep the tables of all catalogs in shape: order what the plan says, and see what became of it.

One of all servers does a round from time to time (`persistence.tasks`). It may be killed anywhere: a task
that was ordered and not recorded is ordered again under the same correlation id, which is the same task.

Must not break: a task is recorded right after it was ordered, so at most one can be ordered and not
known of; and nothing is ordered that `assess` did not say.
"""

from datetime import timedelta
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.directory import Directory
from cynosure.catalog.maintenance import for_every_catalog
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import reports_committer
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.catalog.upkeep.assess import Assessed, Decision, assess
from cynosure.catalog.upkeep.ends import find_ends
from cynosure.catalog.upkeep.metrics import TASKS
from cynosure.catalog.upkeep.ordering import make_order, send_order
from cynosure.catalog.upkeep.runs import (
    INDEX,
    Known,
    Looked,
    Run,
    Upkeep,
    changes_of,
    find_upkeep,
    load_known,
    upkeep_key,
    with_end,
    with_looked,
    with_run,
)
from cynosure.catalog.upkeep.survey import MOST_TABLES
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.errors import BadInput, Conflict, Forbidden
from cynosure.common.telemetry.logs import INFO, WARNING, Log
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId
from cynosure.persistence.tasks import Task

NAME: Final = "catalog.maintenance"
FORGET_AFTER: Final = timedelta(days=30)
"""What was done for a table is forgotten so long after it is gone."""
_US: Final = timedelta(microseconds=1)
_log = Log(__name__)


def upkeep_tasks(directory: Directory, settings: DelegationSettings) -> list[Task]:
    """The task for the background loop of a server."""
    every_s = settings.maintenance.interval.total_seconds()
    rounds = Rounds()
    return [for_every_catalog(directory, NAME, rounds.keep_up, every_s=every_s)]


class Rounds:
    """Rounds over catalogs; one that has more tables than fit into a round is gone on with in the next."""

    def __init__(self, *, most: int = MOST_TABLES) -> None:
        """`most`: tables with policies that are looked at in one round."""
        self._most = most
        self._next: dict[str, bytes] = {}

    async def keep_up(self, catalog: OpenCatalog, caller: Caller) -> int:
        """One round; how many tasks were ordered."""
        executor = catalog.shared.executor
        if executor is None:
            return 0
        # Also of what was ordered by hand, where nothing is by schedule.
        await look_after(catalog, caller, executor)
        if not executor.is_delegated or not catalog.shared.delegation.maintenance.enabled:
            return 0
        start = self._next.pop(catalog.entity.id, b"")
        plan = await assess(catalog, caller, start=start, most=self._most)
        if plan.next_key is not None:
            self._next[catalog.entity.id] = plan.next_key
        looked = [each for each in plan.entries if each.is_looked and each.decision is not Decision.RUN]
        await _record_looked(catalog, caller, looked)
        ordered = 0
        for each in plan.entries:
            if each.decision is Decision.RUN:
                ordered += await _order(catalog, caller, executor, each)
        return ordered


async def look_after(catalog: OpenCatalog, caller: Caller, executor: TaskExecutor) -> None:
    """See what became of tasks under way, and forget what was done for tables that are long gone."""
    now_us = catalog.shared.persistence.clock.now_us()
    known = await load_known(catalog)
    ends = await find_ends(catalog, executor, known)
    gone = await _find_gone(await catalog.read(), known, now_us)
    if ends or gone:
        await _record_ends(catalog, caller, ends, gone)
    for upkeep, ended in ends:
        TASKS.inc(type=upkeep.task_type, outcome=ended.outcome.lower())
        level = INFO if ended.outcome == "SUCCESS" else WARNING
        _log.event(
            "maintenance.ended",
            level=level,
            task_id=ended.task_id,
            task_type=upkeep.task_type,
            table=".".join(upkeep.path),
            outcome=ended.outcome,
        )


async def record_run(
    catalog: OpenCatalog, caller: Caller, order: TaskOrder, run: Run, table_id: ObjId
) -> None:
    """That a task was ordered. Once for each task, whoever says so."""

    async def prepare(view: View) -> Prepared[None]:
        return await prepare_run(catalog, view, order, run, table_id)

    await commit_part(reports_committer(catalog), caller, "record-maintenance", prepare)


async def prepare_run(
    catalog: OpenCatalog, view: View, order: TaskOrder, run: Run, table_id: ObjId
) -> Prepared[None]:
    """What records it."""
    before = await find_upkeep(view, table_id, order.task_type)
    empty = Upkeep(table_id=table_id, task_type=order.task_type, path=order.table.path)
    after = with_run(before or empty, run)
    if after == before:
        return Prepared(None)
    changes, objects = changes_of(catalog, [after])
    return Prepared(None, {INDEX: changes}, objects)


async def _order(catalog: OpenCatalog, caller: Caller, executor: TaskExecutor, each: Assessed) -> int:
    table, rule = each.table, each.work.rule
    assert table is not None  # noqa: S101 - it was looked at before it was decided to run
    order = make_order(
        catalog, each.work.table.path, table, rule.task_type, rule.instructions, why=str(each.due_us)
    )
    try:
        details = await _send_or_find(executor, order)
    except (BadInput, Forbidden, Conflict) as error:
        # The service does not want it, and will not in a minute: until it is due again.
        refused = f"the delegation service refuses it: {error}"
        TASKS.inc(type=rule.task_type, outcome="refused")
        _log.event("maintenance.refused", level=WARNING, table=str(each.work.table.path), error=error)
        await _record_looked(catalog, caller, [each], text=refused)
        return 0
    run = Run(
        task_id=details.task_id,
        ordered_us=catalog.shared.persistence.clock.now_us(),
        slot_us=each.due_us,
        snapshot_id=table.state.current_snapshot_id,
    )
    await record_run(catalog, caller, order, run, each.work.table.id)
    TASKS.inc(type=rule.task_type, outcome="ordered")
    _log.event(
        "maintenance.ordered",
        task_id=details.task_id,
        task_type=rule.task_type,
        table=str(each.work.table.path),
        why=each.why,
    )
    return 1


async def _send_or_find(executor: TaskExecutor, order: TaskOrder) -> TaskDetails:
    try:
        return await send_order(executor, order)
    except Conflict:
        # Ordered before, by a server that died before it said so, and the policy or a name has changed since.
        found = await executor.find(order.realm, order.task_id)
        if found is None:
            raise
        return found


async def _record_looked(
    catalog: OpenCatalog, caller: Caller, looked: list[Assessed], *, text: str | None = None
) -> None:
    if not looked:
        return
    now_us = catalog.shared.persistence.clock.now_us()

    async def prepare(view: View) -> Prepared[None]:
        written: list[Upkeep] = []
        for each in looked:
            table, task_type = each.work.table, each.work.rule.task_type
            before = await find_upkeep(view, table.id, task_type)
            empty = Upkeep(
                table_id=table.id, task_type=task_type, path=(*table.path.namespace, table.path.name)
            )
            note = Looked(now_us, table.snapshot_id, text or each.why)
            written.append(with_looked(before or empty, note))
        changes, objects = changes_of(catalog, written)
        return Prepared(None, {INDEX: changes}, objects)

    await commit_part(reports_committer(catalog), caller, "record-maintenance", prepare)


async def _record_ends(
    catalog: OpenCatalog, caller: Caller, ends: list[tuple[Upkeep, Run]], gone: list[Upkeep]
) -> None:
    async def prepare(view: View) -> Prepared[None]:
        written: Known = {}
        for upkeep, ended in ends:
            key = (upkeep.table_id, upkeep.task_type)
            before = written.get(key) or await find_upkeep(view, *key)
            if before is not None:
                written[key] = with_end(before, ended)
        changes, objects = changes_of(catalog, written.values())
        changes |= {upkeep_key(each.table_id, each.task_type): None for each in gone}
        return Prepared(None, {INDEX: changes}, objects)

    await commit_part(reports_committer(catalog), caller, "record-maintenance", prepare)


async def _find_gone(state: State, known: Known, now_us: int) -> list[Upkeep]:
    before_us = now_us - FORGET_AFTER // _US
    old = [each for each in known.values() if each.touched_us < before_us]
    return [each for each in old if await state.find("ids", encode_id_key(each.table_id)) is None]
