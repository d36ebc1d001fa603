"""The metadata file of a random table, as its writers would have left it."""

from typing import Any

import msgspec

from tests.iceberg.samples import to_json
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.model import Snapshot

NOW_MS = 1_760_000_000_000


def metadata_of(table: RandomTable) -> bytes:
    """The metadata file."""
    shape, last = table.shape, table.snapshots[-1]
    specs = [
        {
            "spec-id": one.spec_id,
            "fields": [
                {
                    "name": each.name,
                    "transform": each.transform,
                    "source-id": each.source_id,
                    "field-id": each.field_id,
                }
                for each in one.fields
            ],
        }
        for one in shape.specs
    ]
    schemas = [msgspec.json.decode(shape.schema_json(number)) for number in range(len(shape.columns))]
    document: dict[str, Any] = {
        "format-version": table.version,
        "table-uuid": f"1f6a3ae4-5f2b-4d0c-9e5f-{table.rng.getrandbits(48):012x}",
        "location": table.location,
        "last-updated-ms": NOW_MS + len(table.snapshots),
        "last-column-id": shape.last_id,
        "schemas": schemas,
        "current-schema-id": len(schemas) - 1,
        "partition-specs": specs,
        "default-spec-id": len(specs) - 1,
        "last-partition-id": max([999, *(one.highest_field_id for one in shape.specs)]),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": last.id,
        "refs": {"main": {"type": "branch", "snapshot-id": last.id}},
        "snapshots": [_snapshot_json(table, one) for one in table.snapshots],
        "snapshot-log": [
            {"snapshot-id": one.id, "timestamp-ms": NOW_MS + at} for at, one in enumerate(table.snapshots)
        ],
        "metadata-log": [],
    }
    if table.version == 1:
        document |= {"schema": schemas[-1], "partition-spec": specs[-1]["fields"]}
    else:
        document["last-sequence-number"] = last.sequence_number
    if table.version > 2:
        document["next-row-id"] = table.next_row_id
    return to_json(document)


def _snapshot_json(table: RandomTable, one: Snapshot) -> dict[str, Any]:
    found: dict[str, Any] = {
        "snapshot-id": one.id,
        "timestamp-ms": NOW_MS + table.snapshots.index(one),
        "summary": {"operation": one.operation},
        "schema-id": one.schema_id,
    }
    if one.is_embedded:
        found["manifests"] = [each.path for each in one.manifests]
    else:
        found["manifest-list"] = one.manifest_list
    if one.parent is not None:
        found["parent-snapshot-id"] = one.parent
    if table.version > 1:
        found["sequence-number"] = one.sequence_number
    if one.first_row_id is not None:
        rows = sum((each.added_rows or 0) for each in one.manifests if not each.content)
        found |= {"first-row-id": one.first_row_id, "added-rows": rows}
    return found
