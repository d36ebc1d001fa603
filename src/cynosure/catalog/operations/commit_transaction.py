"""Commit changes to several tables, all or none.

Must not break: one request, one commit. A change sees what the changes before it in the same transaction
did, and nothing of it is visible to others before all of it is.
"""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.catalog.files.export import Export
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import (
    Changed,
    TableChange,
    import_first,
    prepare_change,
    remove_outdated,
)
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.store import NewObject

MAX_CHANGES = 1_000


async def commit_transaction(catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange]) -> None:
    """Apply all changes, in their order, or none."""
    if len(changes) > MAX_CHANGES:
        raise BadInput(
            "A transaction has too many changes",
            field="table-changes",
            fix=f"Send at most {MAX_CHANGES} at once.",
            changes=len(changes),
        )
    await import_first(catalog, caller, changes)
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[list[Changed]]:
            await require_open(view)
            overlay = Overlay(view)
            results: list[Changed] = []
            objects: list[NewObject] = []
            feed: list[Change] = []
            for change in changes:
                prepared = await prepare_change(catalog, export, overlay, change)
                overlay.add(prepared.changes, prepared.objects)
                results.append(prepared.result)
                objects += prepared.objects
                feed += prepared.feed
            return Prepared(results, overlay.changes, objects, feed)

        committed = await catalog.commit(caller, "commit-transaction", prepare)
        export.keep(*(changed.table.state.metadata_location for changed in committed.result))
    for changed in committed.result:
        remove_outdated(catalog, changed)
