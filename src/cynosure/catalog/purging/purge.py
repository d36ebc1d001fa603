"""A request to purge a table: the tombstone, the order, and waiting for its end.

What a requester is told, and what is left (the failure table of the proposal):

| what goes wrong                                      | table            | answer | who goes on             |
|------------------------------------------------------|------------------|--------|-------------------------|
| the order never arrived, or was refused              | put back         | 503, 502 | nobody: ask again     |
| whether it arrived is not known                      | tombstone        | 504    | the outbox              |
| the task failed before it began (no credentials …)   | put back         | 502    | nobody: ask again       |
| the task failed after it had begun                   | tombstone        | 500    | whoever tries it again  |
| the service dies midway, or after the last file      | tombstone        | 504    | its next worker, outbox |

Must not break: whoever waits holds nothing but a coroutine. All that counts is in the catalog and the task.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing, without_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.guards import Guards
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purge_errors import (
    PurgeFailed,
    PurgeIncomplete,
    PurgeLifted,
    PurgeNotOrdered,
    PurgeOff,
    PurgePending,
)
from cynosure.catalog.purging.entombing import prepare_purge
from cynosure.catalog.purging.lifting import Lifted, lift
from cynosure.catalog.purging.metrics import PURGES
from cynosure.catalog.purging.ordering import find_task, give_order, has_failed_unbegun
from cynosure.catalog.purging.settling import Settled, find_end, settle
from cynosure.catalog.purging.tombstone import Tombstone, find_newest, find_tombstone_of
from cynosure.catalog.resolve import find_table_ref, require_open, require_table_ref
from cynosure.catalog.targets import TableTarget
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Conflict, CynosureError, NotFound, OutcomeUnknown, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.common.telemetry.tracing import span
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key

PURGE_SWITCH: Final = "polaris.config.drop-with-purge.enabled"
"""Property of a catalog: `false` refuses to drop tables with their files."""
_RECALL: Final[Recall[Tombstone]] = Sealed(Tombstone)
_LONGEST_WAIT_S: Final = 2.0
"""For one question to the executor. In between the catalog is asked as well, and whether the process ends."""
_PAUSE_S: Final = 0.25
_log = Log(__name__)


class Purge(NamedTuple):
    """A purge that somebody asked for."""

    tombstone: Tombstone
    is_own: bool
    """Whether this very request made the tombstone; else it joined one that was there."""
    is_ended: bool = False
    """The last file is gone already."""


async def purge_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> None:
    """Drop a table with its files; returns when what the catalog's mode promises is true."""
    clock, delegation = catalog.shared.persistence.clock, catalog.shared.delegation
    until_s = clock.monotonic_s() + delegation.sync_timeout.total_seconds()
    purge = await begin_purge(catalog, caller, table)
    if delegation.mode == "sync":
        left_s = until_s - clock.monotonic_s()
        if not await finish_purge(catalog, caller, purge, left_s):
            raise PurgePending(purge.tombstone.task_id)


async def begin_purge(catalog: OpenCatalog, caller: Caller, table: Identifier) -> Purge:
    """Commit the tombstone of a table, or find the one of who asked before, and order the purge.

    Where nobody waits for anything (`fire-and-forget`), the order follows by itself.
    """
    with span("catalog.purge_table") as traced:
        purge = await _entomb(catalog, caller, table, traced.traceparent)
        if purge.is_ended:
            return purge
        plain = without_key(caller)
        if catalog.shared.delegation.mode == "fire-and-forget":
            catalog.shared.background.start("purge.order", _order_quietly(catalog, purge))
        else:
            await _order(catalog, plain, purge)
    return purge


async def finish_purge(catalog: OpenCatalog, caller: Caller, purge: Purge, timeout_s: float) -> bool:
    """Wait until the last file is gone and the final drop is committed; `False` when the time is over.

    Also when the process is about to end: the purge goes on without it.

    `PurgeFailed` when the table is there again, `PurgeIncomplete` when some files are gone and the rest needs
    somebody to try again.
    """
    if purge.is_ended:
        return True
    caller, tombstone = without_key(caller), purge.tombstone
    clock = catalog.shared.persistence.clock
    until_s = clock.monotonic_s() + timeout_s
    while True:
        left_s = until_s - clock.monotonic_s()
        task = await _wait(catalog, tombstone, min(max(0.0, left_s), _LONGEST_WAIT_S))
        # The catalog decides: it may have been ended by the outbox, or restored by a user, meanwhile.
        settled, reason = await find_end(catalog, tombstone)
        if settled is Settled.OPEN and task is not None:
            settled, reason = await settle(catalog, caller, tombstone, task)
        match settled:
            case Settled.DROPPED:
                return True
            case Settled.BACK | Settled.GIVEN_UP:
                raise PurgeFailed(reason, is_back=settled is Settled.BACK)
            case Settled.KEPT if await _is_restorable(catalog, tombstone):
                raise PurgeFailed(reason, is_back=False)
            case Settled.KEPT:
                raise PurgeIncomplete(tombstone.task_id, reason)
        if left_s <= 0 or catalog.shared.watching.is_ending:
            return False
        await clock.sleep(min(_PAUSE_S, left_s))


async def _is_restorable(catalog: OpenCatalog, tombstone: Tombstone) -> bool:
    found = await find_tombstone_of(await catalog.read(), tombstone.entity_id, tombstone.drop_id)
    return found is not None and found.state == "restorable"


# --- the tombstone ------------------------------------------------------------------------------------------


async def _entomb(catalog: OpenCatalog, caller: Caller, table: Identifier, traceparent: str) -> Purge:
    check = _checking(catalog, caller, table)
    recalled = await find_recalled(catalog.committer, caller, check=check, recall=_RECALL)
    if recalled is not None:
        return await _joined(catalog, recalled.result)
    async with refusing(catalog.committer, caller, ops.PURGE_TABLE.name):
        state = await catalog.read()
        await check(state)
        require_switched_on(catalog)
        end_rehearsal(caller)
        ref = await find_table_ref(state, table)
        if ref is not None and ref.type == POINTER.name:
            # So that it is known what is to be purged, by which uuid.
            await import_pointer(catalog, caller, table)

    async def prepare(view: View) -> Prepared[Tombstone]:
        await require_open(view)
        ref = await find_table_ref(view, table)
        if ref is None:
            found = await find_newest(view, (*table.namespace, table.name))
            if found is not None:
                return Prepared(found)
            ref = await require_table_ref(view, table)
        catalog.shared.require_executor()
        return await prepare_purge(catalog, caller, view, table, ref, traceparent=traceparent)

    made: list[Tombstone] = []

    async def noted(view: View) -> Prepared[Tombstone]:
        prepared = await prepare(view)
        made[:] = [prepared.result] if prepared.changes else []
        return prepared

    committed = await catalog.commit_checked(caller, ops.PURGE_TABLE.name, check, noted, _RECALL)
    tombstone = committed.result
    if made and made[0].drop_id == tombstone.drop_id:
        PURGES.inc(outcome="ordered")
        return Purge(tombstone, is_own=True)
    return await _joined(catalog, tombstone)


async def _joined(catalog: OpenCatalog, tombstone: Tombstone) -> Purge:
    settled, reason = await find_end(catalog, tombstone)
    if settled is Settled.BACK:
        raise PurgeLifted(".".join(tombstone.path), reason=reason)
    return Purge(tombstone, is_own=False, is_ended=settled is Settled.DROPPED)


def _checking(catalog: OpenCatalog, caller: Caller, table: Identifier) -> Callable[[View], Awaitable[Guards]]:
    """Authorizes a purge: on the table, or on what is left of it where its name is free by now."""

    async def check(view: View) -> Guards:
        target = catalog.table(table)
        if await find_table_ref(view, table) is None:
            found = await find_newest(view, (*table.namespace, table.name))
            dropped = None
            if found is not None:
                dropped = await find_object(view, "dropped", encode_id_key(found.drop_id), DROPPED)
            if found is not None and dropped is not None:
                target = TableTarget(catalog.entity.id, table, dropped.state, found.entity_id)
        return await catalog.authorize(view, caller, ops.PURGE_TABLE, target)

    return check


def require_switched_on(catalog: OpenCatalog) -> None:
    """Refuse to drop files in a catalog that is set not to."""
    if catalog.entity.properties.get(PURGE_SWITCH, "true").strip().lower() == "false":
        raise PurgeOff(catalog.entity.name, property=PURGE_SWITCH)


# --- the order ----------------------------------------------------------------------------------------------


async def _order(catalog: OpenCatalog, caller: Caller, purge: Purge) -> None:
    """Order the purge. When that fails for certain, the table is put back by who dropped it."""
    tombstone = purge.tombstone
    try:
        task = await give_order(catalog, tombstone)
    except OutcomeUnknown as error:
        if await _find_out(catalog, tombstone, error) is not None:
            return
        await _take_back(catalog, caller, purge, Unavailable("The order did not arrive"))
    except CynosureError as error:
        await _take_back(catalog, caller, purge, error)
    else:
        await _try_again(catalog, purge, task)


async def _order_quietly(catalog: OpenCatalog, purge: Purge) -> None:
    # What fails here is logged, and the outbox orders again.
    await _try_again(catalog, purge, await give_order(catalog, purge.tombstone))


async def _try_again(catalog: OpenCatalog, purge: Purge, task: TaskDetails) -> None:
    """Have a task tried again that failed before: who asks for the purge again wants that."""
    tombstone = purge.tombstone
    if purge.is_own or not _is_to_be_retried(tombstone, task):
        return
    try:
        await catalog.shared.require_executor().retry(catalog.realm, tombstone.task_id)
    except (Conflict, NotFound, Unavailable, OutcomeUnknown) as error:
        _log.event("purge.not_retried", level=WARNING, task=tombstone.task_id, error=error)


async def _find_out(catalog: OpenCatalog, tombstone: Tombstone, error: OutcomeUnknown) -> TaskDetails | None:
    try:
        return await find_task(catalog, tombstone)
    except (Unavailable, OutcomeUnknown):
        raise PurgePending(tombstone.task_id) from error


async def _take_back(catalog: OpenCatalog, caller: Caller, purge: Purge, error: CynosureError) -> None:
    """Raise what a requester is told whose order did not get through; nothing if it is too late for that."""
    tombstone, is_away = purge.tombstone, isinstance(error, Unavailable)
    if not purge.is_own:
        # Others have ordered it before, and may have got through.
        raise PurgePending(tombstone.task_id) from error
    try:
        lifted = await lift(catalog, caller, tombstone, str(error))
    except (Unavailable, OutcomeUnknown) as failed:
        raise PurgePending(tombstone.task_id) from failed
    match lifted:
        case Lifted.BACK if is_away:
            raise PurgeNotOrdered from error
        case Lifted.BACK | Lifted.GIVEN_UP:
            raise PurgeFailed(str(error), is_back=lifted is Lifted.BACK) from error


def _is_to_be_retried(tombstone: Tombstone, task: TaskDetails) -> bool:
    if task.status is not TaskStatus.FAILURE:
        return False
    # Of what was promised to be put back nothing is tried again: it will be put back.
    return not (has_failed_unbegun(task) and tombstone.mode == "sync")


async def _wait(catalog: OpenCatalog, tombstone: Tombstone, timeout_s: float) -> TaskDetails | None:
    """The task when it has ended or the time is over; `None` when nobody can say."""
    executor = catalog.shared.require_executor()
    try:
        task = await executor.wait(catalog.realm, tombstone.task_id, timeout_s)
        if task is None:
            # It had been accepted, or will be by the outbox: whoever lost it is told again.
            task = await give_order(catalog, tombstone)
    except (Unavailable, OutcomeUnknown) as error:
        _log.event("purge.not_heard_of", level=WARNING, task=tombstone.task_id, error=error)
        return None
    return task
