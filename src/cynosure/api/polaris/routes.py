"""All routes that Apache Polaris has beside the Iceberg protocol."""

from cynosure.api.catalogs import Catalogs
from cynosure.api.polaris.generic_tables import generic_table_routes
from cynosure.api.polaris.notifications import notification_routes
from cynosure.api.polaris.policies import policy_routes
from cynosure.api.router import Route


def polaris_routes(catalogs: Catalogs) -> list[Route]:
    """The routes that serve these catalogs."""
    return [
        *generic_table_routes(catalogs),
        *policy_routes(catalogs),
        *notification_routes(catalogs),
    ]
