"""Create a catalog role."""

from collections.abc import Mapping
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ROLE, CatalogRoleEntity
from cynosure.auth.names import check_name, check_properties
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.errors import CatalogRoleExists
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_grants
from cynosure.catalog.roles.lookup import role_key
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

RECALL_ROLE: Final[Recall[CatalogRoleEntity]] = Sealed(CatalogRoleEntity)


async def create_catalog_role(
    catalog: OpenCatalog, caller: Caller, name: str, properties: Mapping[str, str]
) -> CatalogRoleEntity:
    """Create it, without any privilege. `CatalogRoleExists` when the name is taken."""
    check_name(name)
    wanted = check_properties(properties)
    persistence = catalog.shared.persistence

    async def prepare(view: View) -> Prepared[CatalogRoleEntity]:
        if await view.find("names", role_key(name)) is not None:
            raise CatalogRoleExists(name)
        return prepared_role(name, wanted, persistence.ids.next(), persistence.clock.now_us())

    return await commit_grants(catalog, caller, ops.CREATE_CATALOG_ROLE, prepare, RECALL_ROLE)


def prepared_role(
    name: str, properties: dict[str, str], role_id: ObjId, now_us: int
) -> Prepared[CatalogRoleEntity]:
    """The change that makes a new role."""
    entity = CatalogRoleEntity(
        id=role_id, name=name, created_us=now_us, updated_us=now_us, properties=properties
    )
    key = role_key(name)
    # The first version has the stable id as its own.
    value = ObjRef(role_id, CATALOG_ROLE.name).pack()
    change = Change(
        kind="catalog-role-created",
        index="names",
        key=key,
        after=value,
        detail=raw_detail({"id": role_id, "name": name}),
    )
    changes = {"names": {key: value}, "ids": {encode_id_key(role_id): key}}
    return Prepared(entity, changes, [NewObject(CATALOG_ROLE, role_id, entity)], [change])
