"""Tables, views and changes that the kit of remotes asks for (`remote_kit`)."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from cynosure.catalog.names import Identifier
from cynosure.federation.remote import (
    NewTable,
    RemoteCatalog,
    RemoteTable,
    RemoteView,
    TableCommit,
    ViewCommit,
)
from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertTableUuid,
    TableRequirement,
)
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.updates import TableUpdate, decode_updates
from cynosure.iceberg.views import ViewMetadata, decode_view_updates, new_view, read_version
from cynosure.iceberg.views.requirements import AssertViewUuid

SCHEMA: Final[dict[str, Any]] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "note", "type": "string", "required": False},
    ],
}


class Stage(NamedTuple):
    """What a binding supplies."""

    remote: RemoteCatalog
    place: str
    """A location below which the remote may have tables; without a slash at its end."""


def fresh_name(prefix: str = "kit") -> str:
    """A name that nothing else has, in letters that every kind of remote takes."""
    return f"{prefix}_{uuid.uuid4().hex[:12]}"


def plan_table(stage: Stage, table: Identifier, **properties: str) -> NewTable:
    """A table to be created, in a place of its own."""
    metadata = new_table_metadata(
        schema=json.dumps(SCHEMA).encode(),
        location="/".join((stage.place, *table.namespace, fresh_name("table"))),
        properties=properties,
        table_uuid=str(uuid.uuid4()),
        now_ms=time.time_ns() // 1_000_000,
    )
    return NewTable(table=table, metadata=metadata)


def plan_view(stage: Stage, view: Identifier) -> ViewMetadata:
    """A view to be created."""
    return new_view(
        view_uuid=str(uuid.uuid4()),
        location="/".join((stage.place, *view.namespace, fresh_name("view"))),
        schema=read_schema(json.dumps(SCHEMA).encode()),
        version=read_version(json.dumps(version_of("SELECT 1 AS id")).encode()),
        properties={"owner": "kit"},
        now_ms=time.time_ns() // 1_000_000,
    )


def setting(table: Identifier, base: RemoteTable | None, **properties: str) -> TableCommit:
    """A change that sets properties, of the very table that `base` is."""
    requirements = [] if base is None else [AssertTableUuid(base.metadata.table_uuid)]
    return changing(table, base, requirements, {"action": "set-properties", "updates": properties})


def changing(
    table: Identifier,
    base: RemoteTable | None,
    requirements: Sequence[TableRequirement],
    *updates: Mapping[str, Any],
) -> TableCommit:
    """A change of a table."""
    decoded: list[TableUpdate] = decode_updates(json.dumps(updates).encode())
    return TableCommit(table=table, requirements=requirements, updates=decoded, base=base)


def widening(table: Identifier, base: RemoteTable, column: str) -> TableCommit:
    """A change that adds a column to the version that `base` is."""
    fields = [*SCHEMA["fields"], {"id": 3, "name": column, "type": "string", "required": False}]
    return changing(
        table,
        base,
        [AssertCurrentSchemaId(base.metadata.current_schema_id)],
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 1, "fields": fields}, "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
    )


def creating(table: Identifier, staged: RemoteTable) -> TableCommit:
    """What a client sends for a table that it was told of."""
    metadata = staged.metadata
    return changing(
        table,
        None,
        [AssertCreate()],
        {"action": "assign-uuid", "uuid": metadata.table_uuid},
        {"action": "upgrade-format-version", "format-version": metadata.format_version},
        {
            "action": "add-schema",
            "schema": json.loads(metadata.current_schema_document().json),
            "last-column-id": metadata.last_column_id,
        },
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": json.loads(metadata.default_spec_document().json)},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata.location},
        {"action": "set-properties", "updates": metadata.properties},
    )


def version_of(sql: str, number: int = 1) -> dict[str, Any]:
    """A version of a view."""
    return {
        "version-id": number,
        "schema-id": 0,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "summary": {"engine-name": "kit"},
        "default-namespace": ["kit"],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }


def replacing(view: Identifier, base: RemoteView) -> ViewCommit:
    """A change that gives a view another query."""
    updates = [
        {"action": "add-view-version", "view-version": version_of("SELECT 2 AS id", 2)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return ViewCommit(
        view=view,
        requirements=[AssertViewUuid(base.metadata.view_uuid)],
        updates=decode_view_updates(json.dumps(updates).encode()),
        base=base,
    )
