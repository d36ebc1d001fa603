"""What the updates of a view do: one function each, then the rules for the whole.

A maintainer must not break: updates are applied in order and all or none; the result obeys every rule that
`parse_view` checks. Equal schemas and versions are found again, not added twice, so a retried commit does not
grow the view.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from cynosure.iceberg.document import Document
from cynosure.iceberg.errors import InvalidMetadata, InvalidUpdate
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.properties import check_size
from cynosure.iceberg.schema import Schema, check_width, read_schema, same_schema
from cynosure.iceberg.types import MAX_INT
from cynosure.iceberg.views.draft import Draft
from cynosure.iceberg.views.metadata import FORMAT_VERSION, ViewMetadata
from cynosure.iceberg.views.retention import get_history_size, keep_log, keep_versions
from cynosure.iceberg.views.updates import (
    AddSchema,
    AddViewVersion,
    AssignUuid,
    RemoveProperties,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
    ViewUpdate,
    refuse_update,
)
from cynosure.iceberg.views.version import (
    LAST_ADDED,
    ViewVersion,
    decode_log_entry,
    is_same_definition,
    read_version,
)

DROP_DIALECT_ALLOWED: Final = "replace.drop-dialect.allowed"


def apply_view_updates(
    base: ViewMetadata | None,
    updates: Sequence[ViewUpdate],
    *,
    now_ms: int,
    limits: SizeLimits = DEFAULT_LIMITS,
) -> ViewMetadata:
    """The view after all updates; a new one when `base` is None. `base` itself when nothing changed."""
    draft = Draft.of(base)
    try:
        for at, update in enumerate(updates):
            _APPLY[type(update)](draft, update, f"updates[{at}]")
        for schema in draft.schemas[len(base.schemas) if base else 0 :]:
            check_width(schema.value, limits=limits, field="updates.schema")
        check_size(draft.properties, limits=limits, field="updates.properties")
    except InvalidMetadata as error:
        raise refuse_update(error) from error
    return _finish(draft, now_ms)


def new_view(
    *,
    view_uuid: str,
    location: str,
    schema: Document[Schema],
    version: Document[ViewVersion],
    properties: dict[str, str],
    now_ms: int,
    limits: SizeLimits = DEFAULT_LIMITS,
) -> ViewMetadata:
    """A view as its creator describes it. The version gets the given schema, whatever schema it names."""
    first = version.with_fields({"schema-id": LAST_ADDED})
    return apply_view_updates(
        None,
        [
            AssignUuid(view_uuid),
            SetLocation(location),
            SetProperties(properties),
            AddSchema(Raw(schema.json)),
            AddViewVersion(Raw(first.json)),
            SetCurrentViewVersion(LAST_ADDED),
        ],
        now_ms=now_ms,
        limits=limits,
    )


# One function for each update.


def _assign_uuid(draft: Draft, update: AssignUuid, field: str) -> None:
    if not update.uuid:
        raise InvalidUpdate("The UUID is empty", field=f"{field}.uuid", fix="Send a UUID.")
    if draft.view_uuid is not None and draft.view_uuid.lower() != update.uuid.lower():
        raise InvalidUpdate(
            "A view keeps its UUID", field=f"{field}.uuid", fix="Leave it out, or create another view."
        )
    draft.view_uuid = draft.view_uuid or update.uuid


def _upgrade_format_version(draft: Draft, update: UpgradeFormatVersion, field: str) -> None:
    if update.format_version != FORMAT_VERSION:
        raise InvalidUpdate(
            "There is no such format version of views",
            field=f"{field}.format-version",
            fix=f"Use version {FORMAT_VERSION}.",
            format_version=update.format_version,
        )


def _add_schema(draft: Draft, update: AddSchema, field: str) -> None:
    schema = read_schema(update.schema, field=f"{field}.schema")
    for one in draft.schemas:
        if same_schema(one, schema):
            draft.last_schema_id = one.value.schema_id
            return
    schema_id = _next_id(max((one.value.schema_id for one in draft.schemas), default=-1), field)
    draft.schemas.append(schema.with_fields({"schema-id": schema_id}))
    draft.last_schema_id = schema_id


def _set_location(draft: Draft, update: SetLocation, field: str) -> None:
    if not update.location:
        raise InvalidUpdate(
            "The location is empty", field=f"{field}.location", fix="Send where the view's metadata goes."
        )
    draft.location = update.location


def _set_properties(draft: Draft, update: SetProperties, field: str) -> None:
    draft.properties.update(update.updates)


def _remove_properties(draft: Draft, update: RemoveProperties, field: str) -> None:
    for name in update.removals:
        draft.properties.pop(name, None)


def _add_view_version(draft: Draft, update: AddViewVersion, field: str) -> None:
    version = read_version(update.view_version, field=f"{field}.view-version")
    schema_id = version.value.schema_id
    if schema_id == LAST_ADDED:
        if draft.last_schema_id is None:
            raise InvalidUpdate(
                "No schema was added before this version",
                field=f"{field}.view-version.schema-id",
                fix="Add a schema first, or name one of the view.",
            )
        version = version.with_fields({"schema-id": draft.last_schema_id})
    elif all(one.value.schema_id != schema_id for one in draft.schemas):
        raise InvalidUpdate(
            "The version's schema does not exist",
            field=f"{field}.view-version.schema-id",
            fix="Add the schema first, or name one of the view.",
            schema_id=schema_id,
        )
    for one in draft.versions:
        if is_same_definition(one, version):
            draft.last_version_id = one.value.version_id
            return
    highest = max((one.value.version_id for one in draft.versions), default=None)
    if highest is not None and highest >= version.value.version_id:
        version = version.with_fields({"version-id": _next_id(highest, field)})
    draft.versions.append(version)
    draft.last_version_id = version.value.version_id
    draft.added_version_ids.add(version.value.version_id)


def _set_current_version(draft: Draft, update: SetCurrentViewVersion, field: str) -> None:
    version_id: int | None = update.view_version_id
    if version_id == LAST_ADDED:
        version_id = draft.last_version_id
    if version_id is None or draft.find_version(version_id) is None:
        raise InvalidUpdate(
            "The version does not exist",
            field=f"{field}.view-version-id",
            fix="Add a version first, or name one of the view.",
            version_id=update.view_version_id,
        )
    draft.current_version_id = version_id


_APPLY: Final[dict[type[Any], Callable[[Draft, Any, str], None]]] = {
    AssignUuid: _assign_uuid,
    UpgradeFormatVersion: _upgrade_format_version,
    AddSchema: _add_schema,
    SetLocation: _set_location,
    SetProperties: _set_properties,
    RemoveProperties: _remove_properties,
    AddViewVersion: _add_view_version,
    SetCurrentViewVersion: _set_current_version,
}


# Rules for the whole.


def _finish(draft: Draft, now_ms: int) -> ViewMetadata:
    view_uuid = _require(draft.view_uuid, "A new view needs a UUID", "assign-uuid")
    location = _require(draft.location, "A new view needs a location", "set-location")
    current_id = _require(draft.current_version_id, "A new view needs a version", "set-current-view-version")
    _check_dialects(draft, current_id)
    if draft.base is None or draft.base.current_version_id != current_id:
        _log(draft, current_id, now_ms)
    size = get_history_size(draft.properties)
    versions, log = draft.versions, draft.version_log
    kept = keep_versions(versions, size=size, current_id=current_id, added=draft.added_version_ids)
    if len(kept) < len(versions):
        versions, log = kept, keep_log(log, kept)
    view = ViewMetadata(
        view_uuid=view_uuid,
        format_version=draft.format_version,
        location=location,
        current_version_id=current_id,
        versions=tuple(versions),
        version_log=tuple(log),
        schemas=tuple(draft.schemas),
        properties=draft.properties,
        unknown=draft.base.unknown if draft.base else {},
    )
    return draft.base if draft.base is not None and draft.base == view else view


def _check_dialects(draft: Draft, current_id: int) -> None:
    if draft.base is None or draft.properties.get(DROP_DIALECT_ALLOWED, "").lower() == "true":
        return
    current = draft.find_version(current_id)
    before, after = draft.base.current_version().dialects, current.dialects if current else set()
    if before - after:
        raise InvalidUpdate(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false)",
            field="updates",
            fix=f"Keep a query for every dialect, or set {DROP_DIALECT_ALLOWED} to true.",
            previous_dialects=sorted(before),
            new_dialects=sorted(after),
        )


def _log(draft: Draft, current_id: int, now_ms: int) -> None:
    current = draft.find_version(current_id)
    # A version that comes back became current now; a new one did when its writer made it.
    is_new = current is not None and current_id in draft.added_version_ids
    time_ms = current.timestamp_ms if is_new and current is not None else now_ms
    entry = msgspec.json.encode({"timestamp-ms": time_ms, "version-id": current_id})
    draft.version_log.append(Document(entry, decode_log_entry))


def _require(value: Any, problem: str, action: str) -> Any:
    if value is None:
        raise InvalidUpdate(problem, field="updates", fix=f"Send {action}.")
    return value


def _next_id(highest: int, field: str) -> int:
    if highest >= MAX_INT:
        raise InvalidUpdate("There is no higher id left", field=field, fix="Create the view anew.")
    return highest + 1
