"""Replace the properties of a catalog role."""

from collections.abc import Mapping

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ROLE, CatalogRoleEntity
from cynosure.auth.names import check_properties
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role, role_change
from cynosure.catalog.roles.create_catalog_role import RECALL_ROLE
from cynosure.catalog.roles.lookup import FoundRole, role_key
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Base, Prepared, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


async def update_catalog_role(
    catalog: OpenCatalog, caller: Caller, name: str, version: int, properties: Mapping[str, str]
) -> CatalogRoleEntity:
    """Replace them if the role still has this version; `Conflict` when it has another."""
    wanted = check_properties(properties)
    persistence = catalog.shared.persistence

    async def prepare(view: View, role: FoundRole, main: Base) -> Prepared[CatalogRoleEntity]:
        before = role.entity
        if before.version != version:
            raise Conflict(
                "The catalog role has been changed meanwhile",
                fix="Load it and change it again.",
                name=name,
                version=before.version,
            )
        entity = structs.replace(
            before,
            properties=wanted,
            version=before.version + 1,
            updated_us=max(persistence.clock.now_us(), before.updated_us),
        )
        new = NewObject(CATALOG_ROLE, persistence.ids.next(), entity)
        key = role_key(name)
        told = role_change("catalog-role-updated", role, "names", key)
        value = ObjRef(new.id, CATALOG_ROLE.name).pack()
        return Prepared(entity, {"names": {key: value}}, [new], [told])

    return await commit_role(catalog, caller, ops.UPDATE_CATALOG_ROLE, name, prepare, RECALL_ROLE)
