"""What is sent to a remote.

A maintainer must not break: schemas, snapshots and versions go out as the JSON they came in, so that fields
which this version does not know reach the remote.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from cynosure.catalog.names import Identifier, Namespace
from cynosure.federation.remote import NewTable, TableCommit
from cynosure.iceberg.properties import FORMAT_VERSION
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.views import ViewMetadata, ViewRequirement, ViewUpdate


def creation_body(wanted: NewTable) -> bytes:
    """Of createTable. The remote numbers columns, makes the uuid, and chooses the place if nobody did."""
    metadata = wanted.metadata
    body: dict[str, Any] = {
        "name": wanted.table.name,
        "schema": Raw(metadata.current_schema_document().json),
        "partition-spec": Raw(metadata.default_spec_document().json),
        "properties": {**metadata.properties, FORMAT_VERSION: str(metadata.format_version)},
        "stage-create": wanted.is_staged,
    }
    if wanted.is_placed:
        body["location"] = metadata.location
    order = next(one for one in metadata.sort_orders if one.value.order_id == metadata.default_sort_order_id)
    if order.value.fields:
        body["write-order"] = Raw(order.json)
    return msgspec.json.encode(body)


def commit_body(change: TableCommit) -> bytes:
    """Of updateTable."""
    return msgspec.json.encode(_commit(change))


def transaction_body(changes: Sequence[TableCommit]) -> bytes:
    """Of commitTransaction."""
    return msgspec.json.encode({"table-changes": [_commit(change) for change in changes]})


def registration_body(name: str, metadata_location: str, *, is_overwrite: bool = False) -> bytes:
    """Of registerTable and registerView."""
    body: dict[str, Any] = {"name": name, "metadata-location": metadata_location}
    if is_overwrite:
        body["overwrite"] = True
    return msgspec.json.encode(body)


def rename_body(source: Identifier, target: Identifier) -> bytes:
    """Of renameTable and renameView."""
    return msgspec.json.encode({"source": _identifier(source), "destination": _identifier(target)})


def namespace_body(namespace: Namespace, properties: Mapping[str, str]) -> bytes:
    """Of createNamespace."""
    return msgspec.json.encode({"namespace": list(namespace), "properties": dict(properties)})


def properties_body(removals: Sequence[str], updates: Mapping[str, str]) -> bytes:
    """Of updateProperties."""
    return msgspec.json.encode({"removals": list(removals), "updates": dict(updates)})


def view_body(name: str, view: ViewMetadata) -> bytes:
    """Of createView: its current version and the schema of it."""
    version = next(one for one in view.versions if one.value.version_id == view.current_version_id)
    schema = next(one for one in view.schemas if one.value.schema_id == version.value.schema_id)
    body: dict[str, Any] = {
        "name": name,
        "schema": Raw(schema.json),
        "view-version": Raw(version.json),
        "properties": view.properties,
    }
    if view.location:
        body["location"] = view.location
    return msgspec.json.encode(body)


def view_commit_body(
    view: Identifier, requirements: Sequence[ViewRequirement], updates: Sequence[ViewUpdate]
) -> bytes:
    """Of replaceView."""
    return msgspec.json.encode(
        {"identifier": _identifier(view), "requirements": requirements, "updates": _without_nulls(updates)}
    )


def _commit(change: TableCommit) -> dict[str, Any]:
    return {
        "identifier": _identifier(change.table),
        # With their nulls: "there must be no such branch" is one.
        "requirements": change.requirements,
        "updates": _without_nulls(change.updates),
    }


def _identifier(one: Identifier) -> dict[str, Any]:
    return {"namespace": list(one.namespace), "name": one.name}


def _without_nulls(updates: Sequence[TableUpdate | ViewUpdate]) -> list[Struct | dict[str, Raw]]:
    """Fields that a client left out are null in our structs, and not every server takes null for that."""
    return [_without_null(each) for each in updates]


def _without_null(update: TableUpdate | ViewUpdate) -> Struct | dict[str, Raw]:
    if all(getattr(update, name) is not None for name in update.__struct_fields__):
        return update
    fields = msgspec.json.decode(msgspec.json.encode(update), type=dict[str, Raw])
    return {name: value for name, value in fields.items() if bytes(value) != b"null"}
