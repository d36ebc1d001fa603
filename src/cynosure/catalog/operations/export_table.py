"""Write a table's metadata file again when it has vanished. The table itself never needed it."""

import gzip

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.storage.location import Location


async def export_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> str:
    """Make sure that the current metadata file exists; where it is. An existing file is left as it is."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.EXPORT_TABLE, catalog.table(table))
    ref = await require_table_ref(view, table)
    if ref.type == POINTER.name:
        # Of this table only the file is known; importing says so when it is gone.
        return (await import_pointer(catalog, caller, table)).state.metadata_location
    current = await load_table_at(view, ref.id, catalog.shared.tables)
    text = current.state.metadata_location
    location = Location.parse(text)
    if not await catalog.files.exists(location):
        json = current.answer().metadata
        data = gzip.compress(json, 1, mtime=0) if text.endswith(".gz.metadata.json") else json
        await catalog.files.write(location, data)
    return text
