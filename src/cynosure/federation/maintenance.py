"""What one instance of all servers does for federated catalogs from time to time."""

from cynosure.catalog.directory import Directory
from cynosure.catalog.maintenance import for_every_catalog
from cynosure.federation.mirror.returning import forget_ids
from cynosure.persistence.tasks import Task


def federation_tasks(directory: Directory) -> list[Task]:
    """Tasks for the background loop of a server. For all catalogs: some were federated once."""
    grace_s = directory.shared.persistence.settings.gc.grace.total_seconds()
    return [for_every_catalog(directory, "federation.forget-ids", forget_ids, every_s=grace_s)]
