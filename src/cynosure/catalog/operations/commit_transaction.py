"""Commit changes to several tables, all or none.

Must not break: one request, one commit. A change sees what the changes before it in the same transaction
did, and nothing of it is visible to others before all of it is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_as, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import check_reserved_in, prepare_change
from cynosure.catalog.resolve import find_table_ref, require_open
from cynosure.catalog.table_changes import Changed, TableChange, remove_outdated
from cynosure.common.errors import BadInput, Forbidden, NotFound
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

MAX_CHANGES = 1_000


class _Applied(NamedTuple):
    """What a transaction did."""

    state_ids: list[ObjId]
    """Of the tables after each of its changes."""
    files: list[str]
    """Their metadata files."""
    changed: Sequence[Changed] = ()
    """Not of one that is recalled: what was outdated then may be in use again by now."""


class _RecalledFiles:
    """Nothing is answered; but the files that were committed must be known, so that they are not removed."""

    def keep(self, result: _Applied, key: RequestKey) -> bytes:
        return msgspec.msgpack.encode(result.state_ids)

    async def recall(self, done: Done) -> _Applied:
        ids = msgspec.msgpack.decode(done.data, type=list[ObjId])
        states = await done.after.load_many(TABLE, ids)
        return _Applied(ids, [state.metadata_location for state in states])


def _applied(changed: list[Changed]) -> _Applied:
    tables = [each.table for each in changed]
    return _Applied(
        [table.state_id for table in tables], [table.state.metadata_location for table in tables], changed
    )


async def commit_transaction(catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange]) -> None:
    """Apply all changes, in their order, or none."""
    check_changes(changes)

    async def check(view: View) -> Guards:
        return await authorize_all(catalog, caller, view, changes)

    committer, name, recall = catalog.committer, ops.COMMIT_TRANSACTION.name, _RecalledFiles()
    if await find_recalled(committer, caller, check=check, recall=recall) is not None:
        return
    async with refusing(committer, caller, name):
        await _import_first(catalog, caller, changes)
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[_Applied]:
            await require_open(view)
            overlay = Overlay(view)
            results: list[Changed] = []
            objects: list[NewObject] = []
            feed: list[Change] = []
            guards: list[Guards] = []
            for change in changes:
                guards.append(await _authorize(catalog, caller, overlay, change))
                prepared = await prepare_change(catalog, caller, export, overlay, change)
                overlay.add(prepared.changes, prepared.objects)
                results.append(prepared.result)
                objects += prepared.objects
                feed += prepared.feed
            return Prepared(_applied(results), overlay.changes, objects, feed, join_guards(*guards))

        committed = await commit_as(committer, caller, name, prepare, check=check, recall=recall)
        export.keep(*committed.result.files)
    for changed in committed.result.changed:
        remove_outdated(catalog, changed)


def check_changes(changes: Sequence[TableChange]) -> None:
    """Refuse a transaction that no state could make right."""
    if not changes:
        # Without a table there is nothing to be authorized for, so this would be open to everyone.
        raise BadInput("A transaction changes nothing", field="table-changes", fix="Name at least one table.")
    if len(changes) > MAX_CHANGES:
        raise BadInput(
            "A transaction has too many changes",
            field="table-changes",
            fix=f"Send at most {MAX_CHANGES} at once.",
            changes=len(changes),
        )
    for change in changes:
        check_reserved_in(change)


async def _authorize(catalog: OpenCatalog, caller: Caller, view: View, change: TableChange) -> Guards:
    if change.is_creation:
        target = catalog.namespace(change.table.namespace)
        return await catalog.authorize(view, caller, ops.CREATE_IN_TRANSACTION, target)
    return await catalog.authorize(view, caller, ops.COMMIT_TRANSACTION, catalog.table(change.table))


async def authorize_all(
    catalog: OpenCatalog, caller: Caller, view: View, changes: Sequence[TableChange]
) -> Guards:
    """What all of it rests on, on one state, where a table that it creates may be missing.

    What is missing is said last: it must not hide that something else may not be changed.
    """
    guards: list[Guards] = []
    missing: NotFound | None = None
    for change in changes:
        try:
            guards.append(await _authorize(catalog, caller, view, change))
        except NotFound as error:
            if isinstance(error.__cause__, Forbidden):
                raise
            missing = missing or error
    if missing is not None:
        raise missing
    return join_guards(*guards)


async def _import_first(catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange]) -> None:
    """Import the tables of which only the metadata file is known.

    Each change would find out only when those before it are done.
    """
    state = await catalog.read()
    for change in changes:
        ref = await find_table_ref(state, change.table)
        if ref is not None and ref.type == POINTER.name:
            await catalog.authorize(state, caller, ops.COMMIT_TRANSACTION, catalog.table(change.table))
            await import_pointer(catalog, caller, change.table)
