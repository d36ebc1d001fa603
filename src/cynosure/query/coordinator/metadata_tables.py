"""Metadata tables (`table.snapshots` …): from what the user is told about a table, or made by a scan.

Those of all snapshots at once (`all_files` …) are refused: they read every manifest that the table has.

A maintainer must not break: only for users whom no policy restricts on the table. Snapshots, files and
partitions tell about rows that a policy hides.
"""

from collections.abc import Callable
from typing import Any, Final

from cynosure.query.catalog_access.port import OpenedTable
from cynosure.query.coordinator import manifest_tables
from cynosure.query.coordinator.inline import TEXT_MAP, InlineTable, inline_schema
from cynosure.query.coordinator.manifest_tables import ManifestTable, open_manifest_table
from cynosure.query.errors import NotAllowed

Rows = Callable[[dict[str, Any]], tuple[tuple[Any, ...], ...]]


def _snapshots(metadata: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            each["timestamp-ms"] * 1000,
            each["snapshot-id"],
            each.get("parent-snapshot-id"),
            (each.get("summary") or {}).get("operation"),
            each.get("manifest-list"),
            [(name, value) for name, value in (each.get("summary") or {}).items() if name != "operation"],
        )
        for each in metadata.get("snapshots") or ()
    )


def _history(metadata: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    parents = {
        each["snapshot-id"]: each.get("parent-snapshot-id") for each in metadata.get("snapshots") or ()
    }
    ancestors: set[int] = set()
    at = metadata.get("current-snapshot-id")
    while at is not None and at in parents and at not in ancestors:
        ancestors.add(at)
        at = parents[at]
    return tuple(
        (
            each["timestamp-ms"] * 1000,
            each["snapshot-id"],
            parents.get(each["snapshot-id"]),
            each["snapshot-id"] in ancestors,
        )
        for each in metadata.get("snapshot-log") or ()
    )


def _refs(metadata: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(
        (
            name,
            str(ref.get("type", "branch")).upper(),
            ref["snapshot-id"],
            ref.get("max-ref-age-ms"),
            ref.get("min-snapshots-to-keep"),
            ref.get("max-snapshot-age-ms"),
        )
        for name, ref in (metadata.get("refs") or {}).items()
    )


_SNAPSHOTS: Final = {
    "committed_at": "timestamptz",
    "snapshot_id": "long",
    "parent_id": "long",
    "operation": "string",
    "manifest_list": "string",
    "summary": TEXT_MAP,
}
_HISTORY: Final = {
    "made_current_at": "timestamptz",
    "snapshot_id": "long",
    "parent_id": "long",
    "is_current_ancestor": "boolean",
}
_REFS: Final = {
    "name": "string",
    "type": "string",
    "snapshot_id": "long",
    "max_reference_age_in_ms": "long",
    "min_snapshots_to_keep": "int",
    "max_snapshot_age_in_ms": "long",
}

_OFFERED: Final[dict[str, tuple[dict[str, Any], Rows]]] = {
    "snapshots": (_SNAPSHOTS, _snapshots),
    "history": (_HISTORY, _history),
    "refs": (_REFS, _refs),
}
_KNOWN: Final = frozenset(
    {
        *_OFFERED,
        *manifest_tables.OFFERED,
        "metadata_log_entries",
        "all_data_files",
        "all_delete_files",
        "all_files",
        "all_entries",
        "all_manifests",
        "position_deletes",
    }
)


def is_metadata_table(name: str) -> bool:
    """Whether Iceberg knows a metadata table of this name."""
    return name.lower() in _KNOWN


def open_metadata_table(table: OpenedTable, name: str) -> InlineTable | ManifestTable:
    """A metadata table. `NotAllowed` under restrictions, and for what is not offered."""
    shown = f"{table.name}.{name.lower()}"
    if table.is_restricted:
        raise NotAllowed(
            "Policies of this table do not allow its metadata tables",
            fix="Ask the table itself: metadata tells about rows that are hidden.",
            table=shown,
            policies=", ".join(table.policies),
        )
    if name.lower() in manifest_tables.OFFERED:
        return open_manifest_table(table, name.lower(), shown)
    offered = _OFFERED.get(name.lower())
    if offered is None:
        known = sorted({*_OFFERED, *manifest_tables.OFFERED})
        raise NotAllowed(
            "This metadata table is not offered by governed SQL",
            fix=f"Use one of {', '.join(known)}, or read it with Spark and the catalog directly.",
            table=shown,
        )
    columns, rows = offered
    return InlineTable(shown, inline_schema(columns), rows(table.metadata))
