"""What the delegation service may do in the catalogs of `cynosure up`.

A maintainer must not break: it gets the content of a catalog, never the right to give rights.
"""

from contextlib import suppress

from cynosure.auth.caller import operator_caller
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogRoleExists
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.common.delegated.payload import TaskOrder
from cynosure.persistence.spi import CatalogId, RealmId
from cynosure.server.service_principal import DELEGATION, SYSTEM


class Rights:
    """What the service needs in a catalog, given before the first work there is ordered.

    So catalogs that are made later have it too, whoever makes them.
    """

    def __init__(self, directory: Directory, realm: RealmId) -> None:
        self._directory = directory
        self._realm = realm
        self._given: set[CatalogId] = set()

    async def ensure(self, order: TaskOrder) -> None:
        """Give the service's role what it needs for an order."""
        if order.realm != self._realm:
            return
        catalog = await self._directory.open(self._realm, order.table.catalog_name)
        if catalog.entity.id in self._given:
            return
        caller = operator_caller(SYSTEM, self._realm)
        with suppress(CatalogRoleExists):
            await create_catalog_role(catalog, caller, DELEGATION, {})
        content = Grant(kind="catalog", privilege=Privilege.CATALOG_MANAGE_CONTENT)
        await grant_privilege(catalog, caller, DELEGATION, content)
        await assign_catalog_role(catalog, caller, DELEGATION, DELEGATION)
        self._given.add(catalog.entity.id)
