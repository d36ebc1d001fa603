"""Commit changes to several tables, all or none.

Must not break: one request, one commit. A change sees what the changes before it in the same transaction
did, and nothing of it is visible to others before all of it is.
"""

from collections.abc import Sequence

from cynosure.auth.caller import Caller, commit_as
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import (
    Changed,
    TableChange,
    check_reserved_in,
    prepare_change,
    remove_outdated,
)
from cynosure.catalog.resolve import find_table_ref, require_open
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.store import NewObject

MAX_CHANGES = 1_000


async def commit_transaction(catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange]) -> None:
    """Apply all changes, in their order, or none."""
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
    await _import_first(catalog, caller, changes)
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[list[Changed]]:
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
            return Prepared(results, overlay.changes, objects, feed, join_guards(*guards))

        committed = await commit_as(catalog.committer, caller, ops.COMMIT_TRANSACTION.name, prepare)
        export.keep(*(changed.table.state.metadata_location for changed in committed.result))
    for changed in committed.result:
        remove_outdated(catalog, changed)


async def _authorize(catalog: OpenCatalog, caller: Caller, view: View, change: TableChange) -> Guards:
    if change.is_creation:
        target = catalog.namespace(change.table.namespace)
        return await catalog.authorize(view, caller, ops.CREATE_IN_TRANSACTION, target)
    return await catalog.authorize(view, caller, ops.COMMIT_TRANSACTION, catalog.table(change.table))


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
