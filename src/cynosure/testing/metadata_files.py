"""Metadata files of tables that somebody else wrote, for tests that register them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_metadata(folder: Path, table_uuid: str, schema: Mapping[str, Any]) -> str:
    """A metadata file of an empty table in this directory; where it is."""
    document = {
        "format-version": 2,
        "table-uuid": table_uuid,
        "location": folder.as_uri(),
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [schema],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
    file = folder / "metadata" / "v1.metadata.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(document))
    return file.as_uri()
