"""The roles of one catalog that a principal role has."""

from cynosure.auth.caller import Caller
from cynosure.auth.principals import read_principals, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import ASSIGNMENTS, second_id, usage_prefix
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.list_catalog_roles import CatalogRolePage
from cynosure.catalog.roles.lookup import load_roles_by_id
from cynosure.persistence.listing import Paging, list_paged

_ALL = Paging()


async def list_catalog_roles_of_principal_role(
    catalog: OpenCatalog, caller: Caller, principal_role: str, paging: Paging = _ALL
) -> CatalogRolePage:
    """Its roles in the order they were made; `NoSuchPrincipalRole` when there is no such principal role."""
    operation = ops.LIST_CATALOG_ROLES_OF_PRINCIPAL_ROLE
    await catalog.authorize(await catalog.read(), caller, operation, catalog.target())
    principals = await read_principals(catalog.shared.persistence, catalog.realm)
    user = (await require_role(principals.state, principal_role)).entity
    page = await list_paged(
        catalog.grants,
        catalog.shared.persistence.page_tokens,
        index=ASSIGNMENTS,
        prefix=usage_prefix(user.id),
        paging=paging,
    )
    roles = await load_roles_by_id(page.state, [second_id(key) for key, _ in page.entries])
    return CatalogRolePage(roles, page.next_token)
