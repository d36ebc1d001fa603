"""What a writer must know of a table, from the answer of `loadTable`.

A maintainer must not break: what this client cannot honour is refused here, before anything is written: a
table whose files must be encrypted, or are of another format.
"""

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.partitioning import PartitionSpec, check_sources, read_spec
from cynosure.iceberg.schema import Schema, read_schema

_KEY: Final = "encryption.key-id"
_FORMAT: Final = "write.format.default"


class _Metadata(Struct, rename="kebab"):
    table_uuid: str
    location: str
    schemas: list[Raw]
    current_schema_id: int
    partition_specs: list[Raw]
    default_spec_id: int
    properties: dict[str, str] = {}


class StorageCredential(Struct, frozen=True):
    """Properties that open what is below a place."""

    prefix: str
    config: dict[str, str]

    def __repr__(self) -> str:
        return f"StorageCredential({self.prefix!r}, ***)"


class NewerCredentials(Struct, rename="kebab"):
    """An answer of `loadCredentials`."""

    storage_credentials: list[StorageCredential] = []


class LoadedTable(Struct, rename="kebab"):
    """A table with a way to its files."""

    metadata: _Metadata
    config: dict[str, str] = {}
    storage_credentials: list[StorageCredential] = []

    def __repr__(self) -> str:
        return f"LoadedTable({self.metadata.table_uuid!r})"


class Target(Struct, frozen=True):
    """A table that is appended to."""

    table_uuid: str
    location: str
    schema: Schema
    schema_json: bytes
    spec: PartitionSpec
    properties: dict[str, str]


def make_target(loaded: LoadedTable) -> Target:
    """The table, if this client can write its files."""
    metadata = loaded.metadata
    properties = metadata.properties
    if properties.get(_KEY):
        raise BadInput(
            "The files of this table are encrypted, which this client cannot do",
            field=_KEY,
            fix="Append with an engine that has the table's keys.",
        )
    asked = properties.get(_FORMAT, "parquet").lower()
    if asked != "parquet":
        raise BadInput(
            "The table asks for files of a format that this client does not write",
            field=_FORMAT,
            fix="Append with another engine, or set the property to parquet.",
            format=asked,
        )
    raw_schema = _choose(metadata.schemas, "schema-id", metadata.current_schema_id)
    raw_spec = _choose(metadata.partition_specs, "spec-id", metadata.default_spec_id)
    schema = read_schema(raw_schema)
    spec = read_spec(raw_spec).value
    check_sources(spec, schema.value, field="partition-spec")
    return Target(
        metadata.table_uuid,
        metadata.location.rstrip("/"),
        schema.value,
        schema.json,
        spec,
        properties,
    )


def _choose(documents: list[Raw], key: str, wanted: int) -> Raw:
    for each in documents:
        found: dict[str, Any] = msgspec.json.decode(each)
        if found.get(key, 0) == wanted:
            return each
    raise BadInput(
        "The table's metadata lack what they call current", field=key, fix="Repair the table.", id=wanted
    )
