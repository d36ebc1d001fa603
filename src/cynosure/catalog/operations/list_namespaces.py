"""List the namespaces right below another, or at the top."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import Listing, Paging, list_encoded
from cynosure.catalog.names import Namespace, children_prefix
from cynosure.catalog.opened import OpenCatalog


async def list_namespaces(catalog: OpenCatalog, caller: Caller, parent: Namespace, paging: Paging) -> bytes:
    """JSON of the namespaces in their order; `NoSuchNamespace` when there is no such parent."""
    listing = Listing(ops.LIST_NAMESPACES, parent, children_prefix(parent))
    return await list_encoded(catalog, caller, listing, paging)
