"""List the namespaces right below another, or at the top."""

from cynosure.auth.caller import Caller
from cynosure.catalog.listing import Listing, Paging, list_encoded
from cynosure.catalog.names import Namespace, children_prefix
from cynosure.catalog.opened import OpenCatalog


async def list_namespaces(catalog: OpenCatalog, caller: Caller, parent: Namespace, paging: Paging) -> bytes:
    """JSON of the namespaces in their order; `NoSuchNamespace` when there is no such parent."""
    return await list_encoded(
        catalog, Listing(parent, children_prefix(parent), is_of_namespaces=True), paging
    )
