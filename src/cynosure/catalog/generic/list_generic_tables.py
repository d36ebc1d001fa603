"""List the generic tables of a namespace."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import Listing, Paging, list_encoded
from cynosure.catalog.names import Namespace, generics_prefix
from cynosure.catalog.opened import OpenCatalog


async def list_generic_tables(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, paging: Paging
) -> bytes:
    """JSON of the names in their order; `NoSuchNamespace` when there is none."""
    listing = Listing(ops.LIST_GENERIC_TABLES, namespace, generics_prefix(namespace))
    return await list_encoded(catalog, caller, listing, paging)
