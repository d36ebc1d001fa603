"""All routes that Apache Polaris has beside the Iceberg protocol."""

from cynosure.api.polaris.generic_tables import generic_table_routes
from cynosure.api.polaris.notifications import notification_routes
from cynosure.api.polaris.policies import policy_routes
from cynosure.api.router import Route
from cynosure.catalog.directory import Directory


def polaris_routes(directory: Directory) -> list[Route]:
    """The routes that serve the catalogs of a directory."""
    return [
        *generic_table_routes(directory),
        *policy_routes(directory),
        *notification_routes(directory),
    ]
