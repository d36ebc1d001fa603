"""SNAPSHOT_EXPIRY, in the driver: Iceberg's `expire_snapshots`, which looks at all refs.

Deleting comes after the commit. Files that an attempt was killed before belong to nothing then: orphan file
removal finds them.

A maintainer must not break: a ref is removed only if it is where it was when its age was looked at.
"""

from datetime import UTC, datetime
from typing import Any, Final

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import Conflict
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.spark.table import SparkTable, compare

_DAY_MS: Final = 86_400_000
_MAIN: Final = "main"


def expire(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Expire snapshots; what was counted."""
    table = SparkTable(link, parameters)
    now_ms = link.now_us() // 1000
    metadata = table.load_metadata()
    before, stored = table.count(), table.count_distinct("all_files")
    removed = _remove_old_refs(table, metadata, now_ms, parameters["max_ref_age_days"])
    limits_ms = [
        each
        for each in (
            parameters["older_than_ms"],
            _age_to_ms(now_ms, parameters["max_age_days"]),
        )
        if each is not None
    ]
    link.progress(TaskProgress("expiring", 0, len(metadata.get("snapshots", [])), "snapshots"))
    done = table.call(
        "expire_snapshots",
        older_than=datetime.fromtimestamp(min(limits_ms) / 1000, UTC) if limits_ms else None,
        retain_last=parameters["retain_last"],
        # The driver's memory does not grow with the number of files.
        stream_results=True,
        clean_expired_metadata=True if parameters["clean_expired_metadata"] else None,
    )
    after, left = table.count(), table.count_distinct("all_files")
    return {
        "files_deleted": sum(value for value in done.values() if isinstance(value, int)),
        "bytes_deleted": max(stored[1] - left[1], 0),
        **compare(before, after),
        "stored_files_before": stored[0],
        "stored_files_after": left[0],
        "stored_bytes_before": stored[1],
        "stored_bytes_after": left[1],
        "refs_removed": removed,
    }


def _age_to_ms(now_ms: int, days: float | None) -> int | None:
    # Nothing was written before 1970, and Spark knows no times long before it.
    return None if days is None else max(now_ms - int(days * _DAY_MS), 0)


def _remove_old_refs(
    table: SparkTable, metadata: dict[str, Any], now_ms: int, max_age_days: float | None
) -> list[str]:
    """Remove branches and tags whose snapshot is older, unless they have an age of their own."""
    if max_age_days is None:
        return []
    oldest_ms = now_ms - int(max_age_days * _DAY_MS)
    made_ms = {each["snapshot-id"]: each["timestamp-ms"] for each in metadata.get("snapshots", [])}
    removed: list[str] = []
    for name, ref in sorted(metadata.get("refs", {}).items()):
        snapshot = ref["snapshot-id"]
        if name == _MAIN or "max-ref-age-ms" in ref or made_ms.get(snapshot, now_ms) >= oldest_ms:
            continue
        try:
            table.commit(
                requirements=[{"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot}],
                updates=[{"action": "remove-snapshot-ref", "ref-name": name}],
            )
        except Conflict:
            # Somebody wrote to it, so it is not old any more.
            continue
        removed.append(name)
    return removed
