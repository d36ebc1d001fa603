"""Load a table, or ask whether it exists. The hottest path there is; nothing here reads object storage.

Must not break: the name is resolved on the current head; only what an id stands for comes from memory.
Whoever may not see all of a table is told so in every answer.
"""

from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.errors import NoSuchTable, RestrictedByPolicy
from cynosure.catalog.file_access.giving import Access, give_access, plain_access
from cynosure.catalog.file_access.modes import ANY_WAY, Delegation
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.answer import Snapshots, TableAnswer
from cynosure.catalog.managed.loading import load_refs_answer, load_table_at
from cynosure.catalog.managed.state import POINTER, TABLE, TableState
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.restrictions.rule import Asked
from cynosure.catalog.targets import TableTarget
from cynosure.persistence.commit import State
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

FOR_DATA: Final = (ops.LOAD_TABLE_TO_WRITE, ops.LOAD_TABLE_TO_READ)
"""What a client may want that asks for access to files, the most first."""


class ForData(NamedTuple):
    """A table, and what its client may do with its files."""

    answer: TableAnswer
    is_writable: bool
    """Else it may only read."""
    access: Access
    """How it reaches them."""
    table_id: ObjId
    """The table's stable id."""
    is_restricted: bool = False
    """Whether the answer says what its reader must not see: nobody may have the access without it."""


class _Version(NamedTuple):
    answer: TableAnswer
    state: TableState
    has_files: bool = True
    """Whether this caller may have the files."""
    is_restricted: bool = False


async def load_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, snapshots: Snapshots = "all"
) -> TableAnswer:
    """The current version of a table."""
    view = await catalog.read()
    heads = catalog.find_heads(view, caller)
    if heads is not None and (recent := catalog.loads.get(caller, table, heads, is_for_data=False)):
        known = catalog.shared.tables.get(recent.state_id)
        if known is not None:
            return known.answer(snapshots)
    ref = await find_table_ref(view, table)
    target = catalog.found_table(table, ref)
    await catalog.authorize(view, caller, ops.LOAD_TABLE, target)
    if ref is None:
        raise NoSuchTable(str(table))
    restricted = await _find_restricted(catalog, caller, ops.LOAD_TABLE, view, target, ref, snapshots)
    if restricted is not None:
        return restricted.answer
    if heads is not None:
        catalog.loads.put(caller, table, heads, (ref.id, ops.LOAD_TABLE), is_for_data=False)
    return (await _load_version(catalog, caller, view, table, ref, snapshots)).answer


async def load_table_for_data(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    *,
    snapshots: Snapshots = "all",
    delegation: Delegation = ANY_WAY,
) -> ForData:
    """A table for a client that wants access to its files: to write where it may, else to read.

    Whoever may not see all of it gets no access, unless a trusted engine asks for them.
    """
    view = await catalog.read()
    heads = catalog.find_heads(view, caller)
    if heads is not None and (recent := catalog.loads.get(caller, table, heads, is_for_data=True)):
        known = catalog.shared.tables.get(recent.state_id)
        if known is not None:
            version = _Version(known.answer(snapshots), known.state)
            return await _give(catalog, caller, table, version, recent.operation, delegation)
    ref = await find_table_ref(view, table)
    target = catalog.found_table(table, ref)
    operation: Operation | None
    try:
        operation, _ = await catalog.authorize_one_of(view, caller, FOR_DATA, target)
    except RestrictedByPolicy:
        # It has the right: the table is shown, its files are not.
        operation = None
    if ref is None:
        raise NoSuchTable(str(table))
    asked = operation or ops.LOAD_TABLE_TO_READ
    restricted = await _find_restricted(catalog, caller, asked, view, target, ref, snapshots)
    if heads is not None and operation is not None and restricted is None:
        catalog.loads.put(caller, table, heads, (ref.id, operation), is_for_data=True)
    version = restricted or await _load_version(catalog, caller, view, table, ref, snapshots)
    return await _give(catalog, caller, table, version, operation, delegation)


async def _give(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    version: _Version,
    operation: Operation | None,
    delegation: Delegation,
) -> ForData:
    """A version, with access to its files as far as the caller may have any."""
    answer, state, has_files, is_restricted = version
    if operation is None or not has_files:
        return ForData(answer, False, plain_access(catalog), state.id, is_restricted)
    is_writable = operation is ops.LOAD_TABLE_TO_WRITE
    access = await give_access(catalog, caller, table, state, delegation, is_writable=is_writable)
    return ForData(answer, is_writable, access, state.id, is_restricted)


async def _find_restricted(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    view: State,
    target: TableTarget,
    ref: ObjRef,
    snapshots: Snapshots,
) -> _Version | None:
    """What somebody is told who may not see all of the table; `None` for everyone else."""
    in_force = await catalog.restrictions.find(view, caller, target)
    if in_force is None:
        return None
    if ref.type == POINTER.name:
        table: ManagedTable = await import_pointer(catalog, caller, target.path)
    else:
        table = await load_table_at(view, ref.id, catalog.shared.tables)
    answer = catalog.restrictions.answer(in_force, Asked(caller, operation, (target,)), table, snapshots)
    if answer is None:
        return None
    return _Version(answer, table.state, has_files=in_force.asking.is_trusted_engine, is_restricted=True)


async def _load_version(
    catalog: OpenCatalog, caller: Caller, view: State, table: Identifier, ref: ObjRef, snapshots: Snapshots
) -> _Version:
    recent = catalog.shared.tables
    if (known := recent.get(ref.id)) is not None:
        return _Version(known.answer(snapshots), known.state)
    if ref.type == POINTER.name:
        imported = await import_pointer(catalog, caller, table)
        return _Version(imported.answer(snapshots), imported.state)
    if snapshots == "refs":
        state = (await view.load_many(TABLE, [ref.id]))[0]
        if state.snapshots.pieces:
            return _Version(await load_refs_answer(view, ref.id, state), state)
    loaded = await load_table_at(view, ref.id, recent)
    return _Version(loaded.answer(snapshots), loaded.state)


async def table_exists(catalog: OpenCatalog, caller: Caller, table: Identifier) -> None:
    """Answer with `NoSuchTable` unless the table exists."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    await catalog.authorize(view, caller, ops.TABLE_EXISTS, catalog.found_table(table, ref))
    if ref is None:
        raise NoSuchTable(str(table))
