"""Load a table, or ask whether it exists. The hottest path there is; nothing here reads object storage.

Must not break: the name is resolved on the current head; only what an id stands for comes from memory.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.answer import Snapshots, TableAnswer
from cynosure.catalog.managed.loading import load_refs_answer, load_table_at
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref
from cynosure.persistence.commit import State
from cynosure.persistence.objects import ObjRef


class ForData(NamedTuple):
    """A table, and what its client may do with its files."""

    answer: TableAnswer
    is_writable: bool
    """Else it may only read."""


async def load_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, snapshots: Snapshots = "all"
) -> TableAnswer:
    """The current version of a table."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    await catalog.authorize(view, caller, ops.LOAD_TABLE, catalog.found_table(table, ref))
    if ref is None:
        raise NoSuchTable(str(table))
    return await _answer(catalog, caller, view, table, ref, snapshots)


async def load_table_for_data(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, snapshots: Snapshots = "all"
) -> ForData:
    """A table for a client that wants access to its files: to write where it may, else to read."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    target = catalog.found_table(table, ref)
    wanted = (ops.LOAD_TABLE_TO_WRITE, ops.LOAD_TABLE_TO_READ)
    operation, _ = await catalog.authorize_one_of(view, caller, wanted, target)
    if ref is None:
        raise NoSuchTable(str(table))
    answer = await _answer(catalog, caller, view, table, ref, snapshots)
    return ForData(answer, is_writable=operation is ops.LOAD_TABLE_TO_WRITE)


async def _answer(
    catalog: OpenCatalog, caller: Caller, view: State, table: Identifier, ref: ObjRef, snapshots: Snapshots
) -> TableAnswer:
    recent = catalog.shared.tables
    if (known := recent.get(ref.id)) is not None:
        return known.answer(snapshots)
    if ref.type == POINTER.name:
        return (await import_pointer(catalog, caller, table)).answer(snapshots)
    if snapshots == "refs":
        state = (await view.load_many(TABLE, [ref.id]))[0]
        if state.snapshots.pieces:
            return await load_refs_answer(view, ref.id, state)
    return (await load_table_at(view, ref.id, recent)).answer(snapshots)


async def table_exists(catalog: OpenCatalog, caller: Caller, table: Identifier) -> None:
    """Answer with `NoSuchTable` unless the table exists."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    await catalog.authorize(view, caller, ops.TABLE_EXISTS, catalog.found_table(table, ref))
    if ref is None:
        raise NoSuchTable(str(table))
