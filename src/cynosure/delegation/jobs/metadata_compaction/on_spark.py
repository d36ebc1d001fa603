"""METADATA_COMPACTION, in the driver: Iceberg's `rewrite_manifests`.

A maintainer must not break: data files stay as they are; only manifests are written anew.
"""

from typing import Any

from cynosure.common.delegated.record import TaskProgress
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.table import SparkTable, compare


def rewrite_manifests(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Rewrite manifests; what was counted."""
    table = SparkTable(link, parameters)
    metadata = table.load_metadata()
    before = table.count()
    done: dict[str, Any] = {}
    # Iceberg refuses a table that has no data yet.
    if metadata.get("current-snapshot-id", -1) not in (None, -1):
        link.progress(TaskProgress("rewriting", 0, before.manifests, "manifests"))
        # What is cached would be rows of the table's metadata in a session that all jobs share.
        done = table.call("rewrite_manifests", use_caching=False, spec_id=parameters["spec_id"])
    return {
        **compare(before, table.count()),
        "rewritten_manifests": done.get("rewritten_manifests_count", 0),
        "added_manifests": done.get("added_manifests_count", 0),
    }
