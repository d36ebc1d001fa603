"""All routes of the management API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cynosure.api.catalogs import Catalogs
from cynosure.api.management.catalog_roles import catalog_role_routes
from cynosure.api.management.catalogs import catalog_routes
from cynosure.api.management.checking import check_routes
from cynosure.api.management.discovery import discovery_routes
from cynosure.api.management.explaining import explain_routes
from cynosure.api.management.grants import grant_routes
from cynosure.api.management.migration import migration_routes
from cynosure.api.management.own import own_routes
from cynosure.api.management.principal_roles import principal_role_routes
from cynosure.api.management.principals import principal_routes
from cynosure.api.management.remotes import remote_routes
from cynosure.api.management.tasks import task_routes
from cynosure.api.router import Route
from cynosure.auth.identities import Identities

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def management_routes(
    catalogs: Catalogs, identities: Identities, *, advertised: Mapping[str, str] = _NOTHING
) -> list[Route]:
    """The routes that manage these catalogs, and who may do what in them.

    `advertised`: what clients are told of this server, as in the config of each catalog.
    """
    return [
        *catalog_routes(catalogs.directory),
        *principal_routes(identities),
        *principal_role_routes(identities),
        *catalog_role_routes(catalogs.directory),
        *grant_routes(catalogs),
        *check_routes(catalogs.directory),
        *remote_routes(catalogs),
        *migration_routes(catalogs),
        *task_routes(catalogs.directory),
        *explain_routes(catalogs, identities),
        *own_routes(identities),
        *discovery_routes(advertised),
    ]
