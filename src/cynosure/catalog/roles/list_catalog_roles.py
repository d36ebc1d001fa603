"""All roles of a catalog."""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ROLE, CatalogRoleEntity
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.listing import Paging, list_paged
from cynosure.persistence.objects import ObjRef

_ALL = Paging()


class CatalogRolePage(Struct, frozen=True):
    """Catalog roles, and how to go on."""

    roles: Sequence[CatalogRoleEntity]
    next_token: str | None = None


async def list_catalog_roles(catalog: OpenCatalog, caller: Caller, paging: Paging = _ALL) -> CatalogRolePage:
    """The roles in the order of their names, all pages as of one moment."""
    await catalog.authorize(await catalog.read(), caller, ops.LIST_CATALOG_ROLES, catalog.target())
    page = await list_paged(
        catalog.grants,
        catalog.shared.persistence.page_tokens,
        index="names",
        prefix=b"",
        paging=paging,
    )
    ids = [ObjRef.unpack(value).id for _, value in page.entries]
    return CatalogRolePage(await page.state.load_many(CATALOG_ROLE, ids), page.next_token)
