"""View metadata from JSON.

A maintainer must not break: every refusal names the field of the document, and every field that is not known
here is in `ViewMetadata.unknown` afterwards.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from cynosure.iceberg.document import Document, Int32, compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.properties import check_size
from cynosure.iceberg.schema import Schema, check_width, read_schema
from cynosure.iceberg.views.metadata import FORMAT_VERSION, ViewMetadata
from cynosure.iceberg.views.version import ViewLogEntry, ViewVersion, decode_log_entry, read_version

T = TypeVar("T")

_INT32: Final = msgspec.json.Decoder(Int32)
_STRING: Final = msgspec.json.Decoder(str)
_STRINGS: Final = msgspec.json.Decoder(dict[str, str])
_ARRAY: Final = msgspec.json.Decoder(list[Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


def parse_view(json: bytes, *, limits: SizeLimits = DEFAULT_LIMITS) -> ViewMetadata:
    """Read a view's metadata file."""
    fields = decode_json(compact_json(json, field="view"), _OBJECT, field="view")
    format_version = _take(fields, "format-version", _INT32)
    if format_version != FORMAT_VERSION:
        raise InvalidMetadata(
            "The format version is not supported",
            field="format-version",
            fix=f"Use a view of version {FORMAT_VERSION}.",
            format_version=format_version,
        )
    view = ViewMetadata(
        view_uuid=_take(fields, "view-uuid", _STRING),
        format_version=format_version,
        location=_take(fields, "location", _STRING),
        current_version_id=_take(fields, "current-version-id", _INT32),
        versions=_take_versions(fields),
        version_log=_take_log(fields),
        schemas=_take_schemas(fields, limits),
        properties=_find(fields, "properties", _STRINGS) or {},
        unknown={name: bytes(raw) for name, raw in fields.items()},
    )
    check_size(view.properties, limits=limits)
    _check_current(view)
    return view


def _find(fields: dict[str, Raw], name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    raw = fields.pop(name, None)
    if raw is None or bytes(raw) == b"null":
        return None
    return decode_json(raw, decoder, field=name)


def _take(fields: dict[str, Raw], name: str, decoder: msgspec.json.Decoder[T]) -> T:
    value = _find(fields, name, decoder)
    if value is None or value == "":
        raise InvalidMetadata(
            "A required field is missing", field=name, fix="Add it; the format requires it."
        )
    return value


def _take_versions(fields: dict[str, Raw]) -> tuple[Document[ViewVersion], ...]:
    raws = _take(fields, "versions", _ARRAY)
    versions = tuple(read_version(raw, field=f"versions[{at}]") for at, raw in enumerate(raws))
    _check_unique((one.value.version_id for one in versions), "versions", "version-id")
    return versions


def _take_schemas(fields: dict[str, Raw], limits: SizeLimits) -> tuple[Document[Schema], ...]:
    schemas: list[Document[Schema]] = []
    raws = _take(fields, "schemas", _ARRAY)
    for at, raw in enumerate(raws):
        schema = read_schema(raw, field=f"schemas[{at}]")
        check_width(schema.value, limits=limits, field=f"schemas[{at}]")
        if "schema-id" not in decode_json(schema.json, _OBJECT, field=f"schemas[{at}]"):
            schema = schema.with_fields({"schema-id": 0})
        schemas.append(schema)
    _check_unique((one.value.schema_id for one in schemas), "schemas", "schema-id")
    return tuple(schemas)


def _take_log(fields: dict[str, Raw]) -> tuple[Document[ViewLogEntry], ...]:
    entries: list[Document[ViewLogEntry]] = []
    raws = _take(fields, "version-log", _ARRAY)
    for at, raw in enumerate(raws):
        field = f"version-log[{at}]"
        decode_log_entry(bytes(raw), field=field)
        entries.append(Document(bytes(raw), partial(decode_log_entry, field=field)))
    return tuple(entries)


def _check_unique(ids: Iterable[int], field: str, key: str) -> None:
    seen: set[int] = set()
    for at, id_ in enumerate(ids):
        if id_ in seen:
            raise InvalidMetadata(
                "An id is used twice in the list",
                field=f"{field}[{at}].{key}",
                fix="Number them uniquely.",
                id=id_,
            )
        seen.add(id_)


def _check_current(view: ViewMetadata) -> None:
    ids = [one.value.version_id for one in view.versions]
    if view.current_version_id not in ids:
        raise InvalidMetadata(
            "The current version does not exist",
            field="current-version-id",
            fix="Name one of the versions.",
            version_id=view.current_version_id,
        )
    schema_id = view.current_version().schema_id
    if all(one.value.schema_id != schema_id for one in view.schemas):
        raise InvalidMetadata(
            "The schema of the current version does not exist",
            field=f"versions[{ids.index(view.current_version_id)}].schema-id",
            fix="Name one of the schemas.",
            schema_id=schema_id,
        )
