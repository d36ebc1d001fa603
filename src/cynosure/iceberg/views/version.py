"""One definition of a view: its query in one or more dialects, and how to resolve the names in it.

A maintainer must not break: a representation that is not SQL is carried, so that views of newer writers can
be registered and served.
"""

from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, Int64, compact_json, decode_json
from cynosure.iceberg.errors import DuplicateDialect, InvalidMetadata

LAST_ADDED: Final = -1
"""In place of an id: the schema or version that the same commit added last."""


class Representation(Struct, frozen=True, rename="kebab"):
    """A query in one language; `sql` and `dialect` are there when `type` is sql."""

    type: str
    sql: str | None = None
    dialect: str | None = None

    @property
    def is_sql(self) -> bool:
        """Whether this is a query in a dialect of SQL."""
        return self.type.lower() == "sql"


class ViewVersion(Struct, frozen=True, rename="kebab"):
    """A definition. `schema_id` may be `LAST_ADDED` in an update, never in a view."""

    version_id: Int32
    timestamp_ms: Int64
    schema_id: Int32
    summary: dict[str, str]
    representations: tuple[Representation, ...]
    default_namespace: tuple[str, ...]
    default_catalog: str | None = None

    @property
    def dialects(self) -> set[str]:
        """The SQL dialects that this version has a query for, in lower case."""
        return {one.dialect.lower() for one in self.representations if one.is_sql and one.dialect is not None}


class ViewLogEntry(Struct, frozen=True, rename="kebab"):
    """When a version became the current one."""

    version_id: Int32
    timestamp_ms: Int64


def read_version(raw: bytes | Raw, *, field: str = "view-version") -> Document[ViewVersion]:
    """A version from JSON, checked for everything that does not depend on the view."""
    version = Document(compact_json(raw, field=field), partial(decode_version, field=field))
    _check_representations(version.value, field)
    return version


def decode_version(json: bytes, *, field: str = "view-version") -> ViewVersion:
    """The typed view of a version's JSON."""
    return decode_json(json, _VERSION, field=field)


def decode_log_entry(json: bytes, *, field: str = "version-log") -> ViewLogEntry:
    """The typed view of a log entry's JSON."""
    return decode_json(json, _LOG_ENTRY, field=field)


def is_same_definition(one: Document[ViewVersion], other: Document[ViewVersion]) -> bool:
    """Whether two versions differ in nothing but their id and time."""
    return _comparable(one.json) == _comparable(other.json)


_VERSION: Final = msgspec.json.Decoder(ViewVersion)
_LOG_ENTRY: Final = msgspec.json.Decoder(ViewLogEntry)


def _check_representations(version: ViewVersion, field: str) -> None:
    if not version.representations:
        raise InvalidMetadata(
            "A view version needs a query", field=f"{field}.representations", fix="Send at least one."
        )
    seen: set[str] = set()
    for at, one in enumerate(version.representations):
        if not one.is_sql:
            continue
        for name, text in (("sql", one.sql), ("dialect", one.dialect)):
            if text is None:
                raise InvalidMetadata(
                    "An SQL representation has a query and a dialect",
                    field=f"{field}.representations[{at}].{name}",
                    fix="Send both.",
                )
        dialect = (one.dialect or "").lower()
        if dialect in seen:
            raise DuplicateDialect(dialect, field=f"{field}.representations[{at}].dialect")
        seen.add(dialect)


def _comparable(json: bytes) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(json)
    return {
        name: value
        for name, value in document.items()
        if value is not None and name not in ("version-id", "timestamp-ms")
    }
