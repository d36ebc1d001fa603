"""Load a generic table, with access to its files when that is asked for."""

from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.entities import GenericTableEntity
from cynosure.catalog.generic.access import StorageAccess, give_generic_access
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import load_generic, require_generic_ref

_FOR_DATA: Final = (ops.LOAD_GENERIC_TABLE_TO_WRITE, ops.LOAD_GENERIC_TABLE_TO_READ)


class LoadedGenericTable(NamedTuple):
    """A generic table, and how to reach its files."""

    name: Identifier
    entity: GenericTableEntity
    access: tuple[StorageAccess, ...] = ()
    """Empty when it was not asked for."""


async def load_generic_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, is_delegated: bool = False
) -> LoadedGenericTable:
    """A generic table; `NoSuchGenericTable` when there is none.

    `is_delegated`: with credentials, to write where the caller may, else to read.
    """
    view = await catalog.read()
    target = catalog.generic_table(table)
    if not is_delegated:
        await catalog.authorize(view, caller, ops.LOAD_GENERIC_TABLE, target)
        return LoadedGenericTable(table, await load_generic(view, await require_generic_ref(view, table)))
    operation, _ = await catalog.authorize_one_of(view, caller, _FOR_DATA, target)
    entity = await load_generic(view, await require_generic_ref(view, table))
    is_writable = operation is ops.LOAD_GENERIC_TABLE_TO_WRITE
    access = await give_generic_access(catalog, caller, table, entity, is_writable=is_writable)
    return LoadedGenericTable(table, entity, access)
