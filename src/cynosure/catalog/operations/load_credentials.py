"""Give a client newer credentials for a table that it is reading or writing.

Also for one that it is still creating: a client that stages a creation may write for longer than its first
credentials live.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.file_access.giving import load_vended
from cynosure.catalog.file_access.scope import scope_of, table_scope
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_table import FOR_DATA
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.staged import ends_us, find_own_staged
from cynosure.common.errors import Expired
from cynosure.persistence.commit import State
from cynosure.storage.access.ports import Vended
from cynosure.storage.errors import StorageRefused


async def load_credentials(catalog: OpenCatalog, caller: Caller, table: Identifier) -> Vended | None:
    """Credentials for the files of a table; `None` where the store gives none."""
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    if ref is None:
        staged, vended = await _load_for_staged(catalog, caller, view, table)
        if staged:
            return vended
    operation, _ = await catalog.authorize_one_of(view, caller, FOR_DATA, catalog.found_table(table, ref))
    if ref is None:
        raise NoSuchTable(str(table))
    if ref.type == POINTER.name:
        state = (await import_pointer(catalog, caller, table)).state
    else:
        state = (await load_table_at(view, ref.id, catalog.shared.tables)).state
    is_writable = operation is ops.LOAD_TABLE_TO_WRITE
    if catalog.storage.vending is None:
        return None
    scope = table_scope(catalog, state, is_writable=is_writable)
    try:
        return await load_vended(catalog, caller, table, scope)
    except StorageRefused:
        # Its requests are signed. A service that is away for a moment is an error instead: the client has
        # credentials that still work, and tries again.
        if catalog.storage.signer is None:
            raise
        return None


async def _load_for_staged(
    catalog: OpenCatalog, caller: Caller, view: State, table: Identifier
) -> tuple[bool, Vended | None]:
    """Whether the caller is creating this table, and credentials for it."""
    staged = await find_own_staged(catalog, view, caller, table)
    if staged is None:
        return False, None
    await catalog.authorize(view, caller, ops.CREATE_TABLE_DELEGATED, catalog.namespace(table.namespace))
    scope = scope_of(catalog, staged.location, staged.claims, is_writable=True)
    vended = await load_vended(catalog, caller, table, scope)
    if vended is not None and vended.expires_ms * 1_000 > ends_us(catalog, staged):
        # Whoever gets the place next would share it with them.
        raise Expired(
            "The creation of this table was begun too long ago for newer credentials",
            fix="Begin it again.",
            table=str(table),
        )
    return True, vended
