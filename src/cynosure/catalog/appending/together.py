"""Appends to a table, committed as one change where they come together.

Must not break: whatever cannot come along is committed, or refused, alone, with its own answer. And only the
files of what was committed stay.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import refusing
from cynosure.auth.committing_together import Member, Worked, commit_together
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall
from cynosure.catalog.appending.moving import Move
from cynosure.catalog.appending.work import AppendWork, Asked, Outcome
from cynosure.catalog.errors import NotImported
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.table_changes import load_base, remove_outdated
from cynosure.common.errors import CynosureError
from cynosure.persistence.commit import Prepared, View


class Append(NamedTuple):
    """One caller's append."""

    caller: Caller
    operation: Operation
    table: Identifier
    asked: Asked
    recall: Recall[Outcome]


async def commit_append(catalog: OpenCatalog, append: Append) -> Outcome:
    """Commit an append, alone or with others that came at the same time."""
    check = catalog.checking(append.caller, append.operation, catalog.table(append.table))
    member = Member(append.caller, append.operation.name, check, append.recall)

    async def alone() -> Outcome:
        try:
            return await _commit_alone(catalog, append)
        except NotImported:
            async with refusing(catalog.committer, append.caller, append.operation.name):
                await import_pointer(catalog, append.caller, append.table)
            return await _commit_alone(catalog, append)

    async def together(parts: Sequence[tuple[Member[Outcome], Asked]]) -> Mapping[object, Outcome]:
        return await _commit_together(catalog, append.table, parts)

    key = (catalog.realm, catalog.entity.id, append.table)
    if isinstance(append.asked, Move) and catalog.shared.joining.is_taken(key):
        # While the turn is another's, so that nobody waits for it in this one's.
        await _read_ahead(catalog, append, append.asked)
    return await catalog.shared.joining.run(key, (member, append.asked), alone, together)


async def _read_ahead(catalog: OpenCatalog, append: Append, move: Move) -> None:
    """Read what will have to be read, if the caller may do what it asks for; no answer comes from here."""
    view = await catalog.read()
    try:
        await catalog.authorize(view, append.caller, append.operation, catalog.table(append.table))
        ref = await require_table_ref(view, append.table)
        base = await load_base(catalog, view, append.table, ref)
        files = TableFiles(catalog, base)
    except CynosureError:
        return
    await move.read_ahead(files, base.metadata)


async def _commit_alone(catalog: OpenCatalog, append: Append) -> Outcome:
    async with Export(catalog) as export:
        work = AppendWork(catalog, append.table, export)

        async def prepare(view: View) -> Prepared[Outcome]:
            prepared, results = await work.prepare(view, append.caller, (append.asked,), is_alone=True)
            return Prepared(
                results[append.asked], prepared.changes, prepared.objects, prepared.feed, prepared.guards
            )

        target = catalog.table(append.table)
        committed = await catalog.commit(append.caller, append.operation, (target,), prepare, append.recall)
        _finish(catalog, export, committed.result)
    return committed.result


async def _commit_together(
    catalog: OpenCatalog, table: Identifier, parts: Sequence[tuple[Member[Outcome], Asked]]
) -> dict[object, Outcome]:
    by_member = {part[0]: part for part in parts}
    async with Export(catalog) as export:
        work = AppendWork(catalog, table, export)

        async def prepare(view: View, members: Sequence[Member[Outcome]]) -> Worked[Outcome]:
            asked = {by_member[member][1]: member for member in members}
            prepared, results = await work.prepare(view, members[0].caller, list(asked), is_alone=False)
            return Worked(
                {asked[one]: outcome for one, outcome in results.items()},
                prepared.changes,
                prepared.objects,
                prepared.feed,
                # The first made it what it is now; that is how the others left it.
                [structs.replace(each, before=each.after) for each in prepared.feed],
            )

        results = await commit_together(catalog.committer, list(by_member), prepare)
        if results:
            # Any of them: they all share one version of the table.
            _finish(catalog, export, next(iter(results.values())))
    return {by_member[member]: outcome for member, outcome in results.items()}


def _finish(catalog: OpenCatalog, export: Export, outcome: Outcome) -> None:
    if outcome.changed is not None:
        export.keep(outcome.changed.table.state.metadata_location, *outcome.changed.new_files)
        remove_outdated(catalog, outcome.changed)
