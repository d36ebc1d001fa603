"""Commit changes to one table, or create it.

Must not break: requirements are checked on the state the commit is made on (`table_changes.py`), so of two
commits with the same requirement one is refused; but for appends to a table that has them moved
(`catalog/appending`).
"""

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.appending.moving import Move, is_wanted
from cynosure.catalog.appending.together import Append, commit_append
from cynosure.catalog.appending.work import Outcome
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, changer_of
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.versions import first_version
from cynosure.catalog.locations import parse_place
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import TABLE
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import prepared_creation
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_namespace
from cynosure.catalog.staged import StagedTable, find_staged, fulfilling, principal_id_of
from cynosure.catalog.table_changes import (
    Changed,
    RecalledChange,
    TableChange,
    apply_change,
    claim_places,
    commit_change,
    prepare_update,
)
from cynosure.iceberg.appending.request import read_append
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import check_requirements
from cynosure.iceberg.updates.basics import RemoveProperties, SetProperties
from cynosure.persistence.commit import Prepared, View
from cynosure.storage.location import Location


async def commit_table(catalog: OpenCatalog, caller: Caller, change: TableChange) -> TableAnswer:
    """Apply a change to a table, or create it when the change requires that it does not exist."""
    check_reserved_in(change)

    async def prepare(export: Export, view: View) -> Prepared[Changed]:
        return await prepare_change(catalog, caller, export, view, change)

    operation, target = authorization_of(catalog, change)
    if (move := await _find_move(catalog, change)) is not None:
        recall = _RecalledMove(catalog, caller, operation, change.table)
        outcome = await commit_append(catalog, Append(caller, operation, change.table, move, recall))
        assert outcome.changed is not None  # noqa: S101 - it is recalled by the table
        return outcome.changed.table.answer()
    return await commit_change(catalog, caller, operation, target, change.table, prepare)


class _RecalledMove:
    """As any change of a table."""

    def __init__(self, catalog: OpenCatalog, caller: Caller, operation: Operation, table: Identifier) -> None:
        self._changes = RecalledChange(catalog, caller, operation, table)

    def keep(self, result: Outcome, key: RequestKey) -> bytes:
        assert result.changed is not None  # noqa: S101 - it has just been made
        return self._changes.keep(result.changed, key)

    async def recall(self, done: Done) -> Outcome:
        return Outcome(await self._changes.recall(done))


async def _find_move(catalog: OpenCatalog, change: TableChange) -> Move | None:
    """The append that a change is, if the table has appends moved.

    Nothing is decided by this but the way: whether it may be moved is asked on the state it is committed on.
    """
    append = None if change.is_creation else read_append(change.requirements, change.updates)
    if append is None:
        return None
    view = await catalog.read()
    ref = await find_table_ref(view, change.table)
    if ref is None or ref.type != TABLE.name:
        return None
    table = await load_table_at(view, ref.id, catalog.shared.tables)
    return Move(append, change.requirements, change.updates) if is_wanted(catalog, table.metadata) else None


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
    """Work a change, or a creation, out on a state."""
    if change.is_creation:
        return await _prepare_creation(catalog, caller, export, view, change)
    return await prepare_update(catalog, caller, export, view, change)


async def _prepare_creation(
    catalog: OpenCatalog, caller: Caller, export: Export, view: View, change: TableChange
) -> Prepared[Changed]:
    await require_namespace(view, change.table.namespace)
    if await find_table_ref(view, change.table) is not None:
        # No other requirement is looked at: its refusal would quote a table that the caller may not read.
        raise RequirementFailed("table already exists")
    await require_free_name(view, change.table, for_view=False)
    check_requirements(None, change.requirements)
    metadata = apply_change(catalog, None, change)
    staged = await find_promised(view, caller, change.table, metadata)
    entity_id = catalog.shared.persistence.ids.next() if staged is None else staged.id
    changes: Changes = {} if staged is None else fulfilling(staged)
    claimant = changer_of(catalog, caller, entity_id)
    before = None if staged is None else staged.held
    claimed = await claim_places(catalog, view, change, metadata, claimant, before=before)
    merge(changes, claimed.changes)
    version = await first_version(catalog, export, metadata, entity_id, claimed.claims)
    created = prepared_creation(change.table, version, Claimed(claimed.claims, changes))
    return Prepared(Changed(created.result, []), created.changes, created.objects, created.feed)


async def find_promised(
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
