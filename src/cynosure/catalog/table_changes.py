"""Changes of one table: check requirements, apply updates, keep the new version.

Must not break: requirements are checked on the state the commit is made on. `prepare` runs again whenever
the table has changed since, so of two commits with the same requirement one is refused.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import refusing
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import (
    Claimant,
    Claimed,
    changer_of,
    claim,
    join_places,
    places_of,
)
from cynosure.catalog.errors import NotImported
from cynosure.catalog.file_references import find_strangers, list_added_files
from cynosure.catalog.files.export import DELETE_AFTER_COMMIT, Export, remove
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.files.versions import next_version
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import (
    require_open,
    require_table_ref,
)
from cynosure.catalog.retention import apply_retention
from cynosure.common.errors import BadInput
from cynosure.iceberg.appending.removals import check_removals, relax
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import AssertCreate, TableRequirement, check_requirements
from cynosure.iceberg.updates import TableUpdate, apply_updates
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.storage.location import Location


class TableChange(Struct, frozen=True):
    """What a client wants changed, and what must be true for it."""

    table: Identifier
    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]

    @property
    def is_creation(self) -> bool:
        """Whether the table is to be created by this."""
        return any(isinstance(each, AssertCreate) for each in self.requirements)


class Changed(Struct, frozen=True):
    """A table after a change."""

    table: ManagedTable
    outdated_files: list[str]
    new_files: tuple[str, ...] = ()
    """Manifests and lists that were written for it, by us."""


PrepareChange = Callable[[Export, View], Awaitable[Prepared[Changed]]]
"""Works a change of a table out on a state; again on another one when the first was not the last."""


class RecalledChange:
    """The table after the change. What was outdated then may be in use again by now, and is left alone."""

    def __init__(self, catalog: OpenCatalog, caller: Caller, operation: Operation, table: Identifier) -> None:
        self._tables = RecalledTable(catalog, caller, operation, table)

    def keep(self, result: Changed, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return self._tables.keep(result.table, key)

    async def recall(self, done: Done) -> Changed:
        """See `Recall.recall`."""
        return Changed(await self._tables.recall(done), [])


async def commit_change(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    target: Target,
    table: Identifier,
    prepare: PrepareChange,
) -> TableAnswer:
    """Commit what `prepare` works out on a state; a table that is only known by its file is imported."""
    try:
        return await _commit_change(catalog, caller, operation, target, table, prepare)
    except NotImported:
        async with refusing(catalog.committer, caller, operation.name):
            await import_pointer(catalog, caller, table)
        return await _commit_change(catalog, caller, operation, target, table, prepare)


async def _commit_change(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    target: Target,
    table: Identifier,
    prepare: PrepareChange,
) -> TableAnswer:
    async with Export(catalog) as export:

        async def prepare_open(view: View) -> Prepared[Changed]:
            await require_open(view)
            return await prepare(export, view)

        recall = RecalledChange(catalog, caller, operation, table)
        committed = await catalog.commit(caller, operation, (target,), prepare_open, recall)
        export.keep(committed.result.table.state.metadata_location, *committed.result.new_files)
    remove_outdated(catalog, committed.result)
    return committed.result.table.answer()


async def prepare_update(
    catalog: OpenCatalog, caller: Caller, export: Export, view: View, change: TableChange
) -> Prepared[Changed]:
    """Work a change of an existing table out on a state."""
    ref = await require_table_ref(view, change.table)
    base = await load_base(catalog, view, change.table, ref)
    check_requirements(base.metadata, relax(base.metadata, change.requirements, change.updates))
    check_removals(base.metadata, change.updates)
    metadata = apply_change(catalog, base.metadata, change)
    return await prepare_changed(catalog, caller, export, view, Applied(change, ref, base, metadata))


class Applied(NamedTuple):
    """A change, and what the table is after it."""

    change: TableChange
    ref: ObjRef
    base: ManagedTable
    metadata: TableMetadata


async def prepare_changed(
    catalog: OpenCatalog, caller: Caller, export: Export, view: View, applied: Applied
) -> Prepared[Changed]:
    """The next version of a table whose updates have been applied."""
    change, ref, base, metadata = applied
    if metadata is base.metadata:
        return Prepared(Changed(base, []))
    await catalog.restrictions.check_schema_change(view, catalog.table(change.table), base.metadata, metadata)
    metadata, expired = apply_retention(
        catalog, metadata, change.updates, now_ms=catalog.shared.persistence.clock.now_us() // 1000
    )
    held = Held(base.state.id, base.state.location, base.state.claims)
    claimed = await claim_places(
        catalog, view, change, metadata, changer_of(catalog, caller, held.id), before=held
    )
    version = await next_version(catalog, export, base, metadata, claimed.claims)
    key, before, after = table_key(change.table), ref.pack(), version.table.ref.pack()
    changes: Changes = {"names": {key: after}}
    merge(changes, claimed.changes)
    path = (*change.table.namespace, change.table.name)
    told = {"id": base.state.id, "path": path, **({"expired": expired} if expired else {})}
    detail = raw_detail(told)
    feed = Change(kind="table-updated", index="names", key=key, before=before, after=after, detail=detail)
    return Prepared(Changed(version.table, version.outdated_files), changes, version.objects, [feed])


async def load_base(catalog: OpenCatalog, view: View, table: Identifier, ref: ObjRef) -> ManagedTable:
    """The version that a change is made to."""
    if ref.type == POINTER.name:
        raise NotImported(str(table))
    return await load_table_at(view, ref.id, catalog.shared.tables)


async def claim_places(
    catalog: OpenCatalog,
    view: View,
    change: TableChange,
    metadata: TableMetadata,
    claimant: Claimant,
    *,
    before: Held | None,
) -> Claimed:
    """What the table holds after the change: what it held, and what the change adds to that."""
    places = places_of(
        catalog, metadata.location, metadata.properties, former=before, field="updates.location"
    )
    strangers = find_strangers(catalog, list_added_files(change.updates), places)
    if strangers:
        places = join_places(places.location, [*places.others, *strangers])
    return await claim(view, claimant, places, before=before)


def apply_change(catalog: OpenCatalog, base: TableMetadata | None, change: TableChange) -> TableMetadata:
    """The table after a change; `None` before it is created."""
    now_ms = catalog.shared.persistence.clock.now_us() // 1000
    return apply_updates(base, change.updates, now_ms=now_ms, limits=catalog.limits)


def remove_outdated(catalog: OpenCatalog, changed: Changed) -> None:
    """Delete metadata files that fell out of the log, where the table asks for it."""
    metadata = changed.table.metadata
    if metadata.properties.get(DELETE_AFTER_COMMIT, "false").lower() != "true":
        return
    own = Location.parse(metadata.location)
    outdated = [each for text in changed.outdated_files if (each := _find_within(text, own)) is not None]
    if outdated:
        catalog.shared.background.start("metadata_file.remove", remove(catalog, outdated))


def _find_within(text: str, own: Location) -> Location | None:
    """A place below the table's own location. A log that came with a registered file may name any other."""
    try:
        location = Location.parse(text)
    except BadInput:
        return None
    return location if location.is_within(own) else None
