"""All routes of our own beside the Iceberg protocol."""

from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.append import append_routes
from cynosure.api.cynosure.cascade import cascade_routes
from cynosure.api.cynosure.changes import change_routes
from cynosure.api.cynosure.dropped import dropped_routes
from cynosure.api.cynosure.dropped_table import dropped_table_route
from cynosure.api.cynosure.maintenance import maintenance_routes
from cynosure.api.cynosure.shape import shape_routes
from cynosure.api.cynosure.statistics import statistics_routes
from cynosure.api.cynosure.tombstones import tombstone_routes
from cynosure.api.router import Route


def cynosure_routes(catalogs: Catalogs) -> list[Route]:
    """The routes that serve these catalogs."""
    return [
        *dropped_routes(catalogs),
        dropped_table_route(catalogs),
        *tombstone_routes(catalogs),
        *cascade_routes(catalogs),
        *change_routes(catalogs),
        *append_routes(catalogs),
        *shape_routes(catalogs),
        *statistics_routes(catalogs),
        *maintenance_routes(catalogs),
    ]
