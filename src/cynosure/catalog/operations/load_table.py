"""Load a table, or ask whether it exists. The hottest path there is; nothing here reads object storage.

Must not break: the name is resolved on the current head; only what an id stands for comes from memory.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.answer import Snapshots, TableAnswer
from cynosure.catalog.managed.loading import load_refs_answer, load_table_at
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref


async def load_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, snapshots: Snapshots = "all"
) -> TableAnswer:
    """The current version of a table."""
    view = await catalog.read()
    ref = await require_table_ref(view, table)
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
    await require_table_ref(await catalog.read(), table)
