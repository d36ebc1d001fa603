"""Access to the files of a table that a request created, registered or staged.

Must not break: a request that is answered from an earlier attempt is told what was made then, but is given
nothing on the strength of that. The table may be gone, another one may have its name, the right may be taken
away, a policy may hide some of its rows: whether there is access is decided on the state of now.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.giving import Access, give_access, give_access_to_new, plain_access
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreatedTable
from cynosure.catalog.operations.load_table import load_table_for_data
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.staged import StagedTable, ends_us, find_staged_by_id
from cynosure.common.errors import Forbidden, NotFound
from cynosure.persistence.commit import State
from cynosure.storage.errors import StorageRefused, StorageUnavailable


async def give_access_to_created(
    catalog: OpenCatalog, caller: Caller, table: Identifier, created: CreatedTable, delegation: Delegation
) -> Access:
    """Access to it, the way the client asked for."""
    if delegation and caller.key is not None and caller.key.is_recalled:
        return await _give_again(catalog, caller, table, created, delegation)
    # A staged table is not there yet: a client that cannot be given access is told so.
    give = give_access if created.is_staged else give_access_to_new
    return await give(catalog, caller, table, created.state, delegation, is_writable=created.is_writable)


async def _give_again(
    catalog: OpenCatalog, caller: Caller, table: Identifier, created: CreatedTable, delegation: Delegation
) -> Access:
    """As whoever loads the table now; without access, where it is not that table or the caller gets none."""
    view, table_id = await catalog.read(), created.state.id
    staged = await find_staged_by_id(view, table_id) if created.is_staged else None
    if staged is not None:
        return await _give_to_staged(catalog, caller, view, table, staged, created, delegation)
    # A staged one may have been created since, with its id.
    ref = await find_table_ref(view, table)
    if ref is None or (await load_identity(view, ref))[0] != table_id:
        return plain_access(catalog)
    try:
        loaded = await load_table_for_data(catalog, caller, table, delegation=delegation)
    except (NotFound, Forbidden, LocationRefused, StorageRefused, StorageUnavailable):
        return plain_access(catalog)
    if loaded.is_restricted:
        # An engine may have the files to hide some of them from its user. What it is told here, the table as
        # it was created, does not say which.
        return plain_access(catalog)
    # Again, because it is a later state that this was decided on.
    return loaded.access if loaded.table_id == table_id else plain_access(catalog)


async def _give_to_staged(
    catalog: OpenCatalog,
    caller: Caller,
    view: State,
    table: Identifier,
    staged: StagedTable,
    created: CreatedTable,
    delegation: Delegation,
) -> Access:
    """Access to what is still promised to the caller, unless it would last longer than the promise."""
    namespace = catalog.namespace(table.namespace)
    try:
        await catalog.authorize(view, caller, ops.CREATE_TABLE_DELEGATED, namespace)
    except (NotFound, Forbidden):
        return plain_access(catalog)
    access = await give_access(catalog, caller, table, created.state, delegation, is_writable=True)
    is_too_long = access.vended is not None and access.vended.expires_ms * 1_000 > ends_us(catalog, staged)
    return plain_access(catalog) if is_too_long else access
