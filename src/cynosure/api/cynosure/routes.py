"""All routes of our own beside the Iceberg protocol."""

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
from cynosure.catalog.directory import Directory


def cynosure_routes(directory: Directory) -> list[Route]:
    """The routes that serve the catalogs of a directory."""
    return [
        *dropped_routes(directory),
        dropped_table_route(directory),
        *tombstone_routes(directory),
        *cascade_routes(directory),
        *change_routes(directory),
        *append_routes(directory),
        *shape_routes(directory),
        *statistics_routes(directory),
        *maintenance_routes(directory),
    ]
