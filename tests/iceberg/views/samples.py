"""A small view, and how to make versions of it."""

from typing import Any

UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "x", "required": True, "type": "long", "doc": "first"}],
}
OTHER = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "y", "required": False, "type": "string"}],
}


def make_version(version_id: int, *sql: tuple[str, str], **changes: Any) -> dict[str, Any]:
    return {
        "version-id": version_id,
        "timestamp-ms": 1_000 + version_id,
        "schema-id": 0,
        "summary": {"engine-name": "test"},
        "default-namespace": ["a", "b"],
        "representations": [
            {"type": "sql", "dialect": dialect, "sql": text}
            for dialect, text in sql or [("spark", f"select {version_id}")]
        ],
        **changes,
    }


VIEW: dict[str, Any] = {
    "view-uuid": UUID,
    "format-version": 1,
    "location": "s3://bucket/views/v",
    "schemas": [SCHEMA],
    "current-version-id": 2,
    "versions": [make_version(1), make_version(2, **{"default-catalog": "prod"})],
    "version-log": [{"timestamp-ms": 1_001, "version-id": 1}, {"timestamp-ms": 1_002, "version-id": 2}],
    "properties": {"comment": "hello"},
}
