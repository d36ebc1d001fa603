"""One catalog role."""

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CatalogRoleEntity
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import read_role


async def load_catalog_role(catalog: OpenCatalog, caller: Caller, name: str) -> CatalogRoleEntity:
    """The role; `NoSuchCatalogRole` when there is none."""
    _, found = await read_role(catalog, caller, ops.LOAD_CATALOG_ROLE, name)
    return found.entity
