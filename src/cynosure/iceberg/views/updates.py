"""The updates that the protocol has for views, as it sends them.

A maintainer must not break: schemas and versions stay raw JSON here, so that fields unknown to this version
reach the view. What an update does is in `apply.py`.
"""

from typing import Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Int32, compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata, InvalidUpdate


class _Update(Struct, frozen=True, tag_field="action", rename="kebab"):
    """What all have in common: the tag is the protocol's `action`."""


class AssignUuid(_Update, frozen=True, tag="assign-uuid"):
    """Give a new view its identity; an existing one accepts only its own."""

    uuid: str


class UpgradeFormatVersion(_Update, frozen=True, tag="upgrade-format-version"):
    """Move to a newer format. There is one so far, so this only confirms it."""

    format_version: Int32


class AddSchema(_Update, frozen=True, tag="add-schema"):
    """Add a schema, or find the equal one that is there; the catalog numbers it."""

    schema: Raw


class SetLocation(_Update, frozen=True, tag="set-location"):
    """Where the view's metadata files go."""

    location: str


class SetProperties(_Update, frozen=True, tag="set-properties"):
    """Set or replace properties."""

    updates: dict[str, str]


class RemoveProperties(_Update, frozen=True, tag="remove-properties"):
    """Remove properties; those that are not there are no error."""

    removals: list[str]


class AddViewVersion(_Update, frozen=True, tag="add-view-version"):
    """Add a definition, or find the equal one that is there; its schema id may be -1, the last added."""

    view_version: Raw


class SetCurrentViewVersion(_Update, frozen=True, tag="set-current-view-version"):
    """Make a version the current one; -1 is the last added."""

    view_version_id: Int32


ViewUpdate: TypeAlias = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


def decode_view_updates(json: bytes | Raw, *, field: str = "updates") -> list[ViewUpdate]:
    """The list of updates of a commit."""
    try:
        return decode_json(compact_json(json, field=field), _UPDATES, field=field)
    except InvalidMetadata as error:
        raise refuse_update(error) from error


def refuse_update(error: InvalidMetadata) -> InvalidUpdate:
    """The same refusal, of an update instead of a stored document."""
    details = {name: value for name, value in error.details.items() if name != "field"}
    return InvalidUpdate(error.message, field=error.field, fix=error.fix, **details)


_UPDATES: Final[msgspec.json.Decoder[list[ViewUpdate]]] = msgspec.json.Decoder(list[ViewUpdate])
