"""Commit changes to one table: check requirements, apply updates, keep the new version.

Must not break: requirements are checked on the state the commit is made on. `prepare` runs again whenever
the table has changed since, so of two commits with the same requirement one is refused.
"""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import refusing
from cynosure.auth.ports import Target
from cynosure.auth.rbac import operations as ops
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
from cynosure.catalog.files.versions import first_version, next_version
from cynosure.catalog.locations import parse_place
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import prepared_creation
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import (
    find_table_ref,
    require_free_name,
    require_namespace,
    require_open,
    require_table_ref,
)
from cynosure.catalog.retention import apply_retention
from cynosure.catalog.staged import StagedTable, find_staged, fulfilling, principal_id_of
from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import AssertCreate, TableRequirement, check_requirements
from cynosure.iceberg.updates import TableUpdate, apply_updates
from cynosure.iceberg.updates.basics import RemoveProperties, SetProperties
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


class _RecalledChange:
    """The table after the change. What was outdated then may be in use again by now, and is left alone."""

    def __init__(self, catalog: OpenCatalog, caller: Caller, operation: Operation, table: Identifier) -> None:
        self._tables = RecalledTable(catalog, caller, operation, table)

    def keep(self, result: Changed, key: RequestKey) -> bytes:
        return self._tables.keep(result.table, key)

    async def recall(self, done: Done) -> Changed:
        return Changed(await self._tables.recall(done), [])


async def commit_table(catalog: OpenCatalog, caller: Caller, change: TableChange) -> TableAnswer:
    """Apply a change to a table, or create it when the change requires that it does not exist."""
    check_reserved_in(change)
    try:
        return await _commit_table(catalog, caller, change)
    except NotImported:
        async with refusing(catalog.committer, caller, authorization_of(catalog, change)[0].name):
            await import_pointer(catalog, caller, change.table)
        return await _commit_table(catalog, caller, change)


async def _commit_table(catalog: OpenCatalog, caller: Caller, change: TableChange) -> TableAnswer:
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[Changed]:
            await require_open(view)
            return await prepare_change(catalog, caller, export, view, change)

        operation, target = authorization_of(catalog, change)
        recall = _RecalledChange(catalog, caller, operation, change.table)
        committed = await catalog.commit(caller, operation, (target,), prepare, recall)
        export.keep(committed.result.table.state.metadata_location)
    remove_outdated(catalog, committed.result)
    return committed.result.table.answer()


def authorization_of(catalog: OpenCatalog, change: TableChange) -> tuple[Operation, Target]:
    """What a caller must be allowed to do for a change, and to what."""
    if change.is_creation:
        return ops.CREATE_TABLE_BY_COMMIT, catalog.namespace(change.table.namespace)
    actions = [str(type(update).__struct_config__.tag) for update in change.updates]
    return ops.commit_table_operation(actions), catalog.table(change.table)


def check_reserved_in(change: TableChange) -> None:
    """Refuse a change that sets or removes properties that are not the client's."""
    for update in change.updates:
        if isinstance(update, SetProperties):
            check_reserved(update.updates, field="updates")
        elif isinstance(update, RemoveProperties):
            check_reserved(update.removals, field="updates")


async def prepare_change(
    catalog: OpenCatalog, caller: Caller, export: Export, view: View, change: TableChange
) -> Prepared[Changed]:
    """Work a change out on a state."""
    if change.is_creation:
        return await _prepare_creation(catalog, caller, export, view, change)
    ref = await require_table_ref(view, change.table)
    base = await _load_base(catalog, view, change.table, ref)
    check_requirements(base.metadata, change.requirements)
    metadata = _apply(catalog, base.metadata, change)
    if metadata is base.metadata:
        return Prepared(Changed(base, []))
    await catalog.restrictions.check_schema_change(view, catalog.table(change.table), base.metadata, metadata)
    metadata, expired = apply_retention(
        catalog, metadata, change.updates, now_ms=catalog.shared.persistence.clock.now_us() // 1000
    )
    held = Held(base.state.id, base.state.location, base.state.claims)
    claimed = await _claim(catalog, view, change, metadata, changer_of(catalog, caller, held.id), before=held)
    version = await next_version(catalog, export, base, metadata, claimed.claims)
    key, before, after = table_key(change.table), ref.pack(), version.table.ref.pack()
    changes: Changes = {"names": {key: after}}
    merge(changes, claimed.changes)
    path = (*change.table.namespace, change.table.name)
    told = {"id": base.state.id, "path": path, **({"expired": expired} if expired else {})}
    detail = raw_detail(told)
    feed = Change(kind="table-updated", index="names", key=key, before=before, after=after, detail=detail)
    return Prepared(Changed(version.table, version.outdated_files), changes, version.objects, [feed])


async def _load_base(catalog: OpenCatalog, view: View, table: Identifier, ref: ObjRef) -> ManagedTable:
    if ref.type == POINTER.name:
        raise NotImported(str(table))
    return await load_table_at(view, ref.id, catalog.shared.tables)


async def _prepare_creation(
    catalog: OpenCatalog, caller: Caller, export: Export, view: View, change: TableChange
) -> Prepared[Changed]:
    await require_namespace(view, change.table.namespace)
    if await find_table_ref(view, change.table) is not None:
        # No other requirement is looked at: its refusal would quote a table that the caller may not read.
        raise RequirementFailed("table already exists")
    await require_free_name(view, change.table, for_view=False)
    check_requirements(None, change.requirements)
    metadata = _apply(catalog, None, change)
    staged = await _find_promised(view, caller, change.table, metadata)
    entity_id = catalog.shared.persistence.ids.next() if staged is None else staged.id
    changes: Changes = {} if staged is None else fulfilling(staged)
    claimant = changer_of(catalog, caller, entity_id)
    before = None if staged is None else staged.held
    claimed = await _claim(catalog, view, change, metadata, claimant, before=before)
    merge(changes, claimed.changes)
    version = await first_version(catalog, export, metadata, entity_id, claimed.claims)
    created = prepared_creation(change.table, version, Claimed(claimed.claims, changes))
    return Prepared(Changed(created.result, []), created.changes, created.objects, created.feed)


async def _find_promised(
    view: View, caller: Caller, table: Identifier, metadata: TableMetadata
) -> StagedTable | None:
    """The reservation that this creation fulfils: of this principal, for this name, this very table."""
    location = Location.parse(metadata.location, field="updates.location")
    staged = await find_staged(view, location)
    if staged is None:
        return None
    is_it = (
        staged.principal_id == principal_id_of(caller)
        and staged.path == (*table.namespace, table.name)
        and staged.table_uuid.lower() == metadata.table_uuid.lower()
        and parse_place(staged.location) == location
    )
    return staged if is_it else None


async def _claim(
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


def _apply(catalog: OpenCatalog, base: TableMetadata | None, change: TableChange) -> TableMetadata:
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
