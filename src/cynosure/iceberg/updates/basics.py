"""Updates of a table's identity, version, location, properties and keys."""

import re
from typing import Final

from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, compact_json
from cynosure.iceberg.encryption import decode_key
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.location import strip_trailing_slash
from cynosure.iceberg.metadata.table import MAX_FORMAT_VERSION
from cynosure.iceberg.properties import RESERVED, check_size
from cynosure.iceberg.updates.draft import Draft

MIN_VERSION_OF_KEYS: Final = 3

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


class AssignUuid(Struct, frozen=True, tag_field="action", tag="assign-uuid"):
    """Give a new table its identity."""

    uuid: str


def apply_assign_uuid(draft: Draft, update: AssignUuid) -> None:
    """Accepts the identity the table has; another one would turn it into a different table."""
    if draft.table_uuid is not None and draft.table_uuid.lower() == update.uuid.lower():
        return
    if draft.table_uuid is not None:
        raise InvalidUpdate(
            "The table has another UUID already",
            field="uuid",
            fix="Leave assign-uuid out.",
            current=draft.table_uuid,
        )
    if not _UUID.fullmatch(update.uuid):
        raise InvalidUpdate("This is not a UUID", field="uuid", fix="Send 32 hexadecimal digits in 5 groups.")
    draft.table_uuid = update.uuid
    draft.change()


class UpgradeFormatVersion(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="upgrade-format-version"
):
    """Move to a newer format version."""

    format_version: Int32


def apply_upgrade_format_version(draft: Draft, update: UpgradeFormatVersion) -> None:
    """Never goes back: older readers could not read what newer writers wrote."""
    wanted = update.format_version
    if not 1 <= wanted <= MAX_FORMAT_VERSION:
        raise InvalidUpdate(
            "The format version is not supported",
            field="format-version",
            fix=f"Use version 1 to {MAX_FORMAT_VERSION}.",
            format_version=wanted,
        )
    if wanted < draft.format_version:
        raise InvalidUpdate(
            "A table's format version cannot go down",
            field="format-version",
            fix="Leave the upgrade out.",
            current=draft.format_version,
            wanted=wanted,
        )
    if wanted > draft.format_version:
        draft.format_version = wanted
        draft.change()


class SetLocation(Struct, frozen=True, tag_field="action", tag="set-location"):
    """Where new files of the table go."""

    location: str


def apply_set_location(draft: Draft, update: SetLocation) -> None:
    """A trailing slash makes no difference."""
    location = strip_trailing_slash(update.location)
    if location != draft.location:
        draft.location = location
        draft.change()


class SetProperties(Struct, frozen=True, tag_field="action", tag="set-properties"):
    """Add or replace properties."""

    updates: dict[str, str]


def apply_set_properties(draft: Draft, update: SetProperties) -> None:
    """Reserved names are refused: what they show is not kept in properties."""
    if reserved := RESERVED.intersection(update.updates):
        raise InvalidUpdate(
            "A reserved property cannot be set",
            field="updates",
            fix="Leave it out; use the update that changes what it shows.",
            names=sorted(reserved),
        )
    properties = {**draft.properties, **update.updates}
    if properties != draft.properties:
        check_size(properties, limits=draft.limits, field="updates")
        draft.properties = properties
        draft.change()


class RemoveProperties(Struct, frozen=True, tag_field="action", tag="remove-properties"):
    """Remove properties; names that are not set are ignored."""

    removals: list[str]


def apply_remove_properties(draft: Draft, update: RemoveProperties) -> None:
    """Removes what is there."""
    doomed = {*update.removals}
    if doomed.isdisjoint(draft.properties):
        return
    draft.properties = {name: value for name, value in draft.properties.items() if name not in doomed}
    draft.change()


class AddEncryptionKey(Struct, frozen=True, rename="kebab", tag_field="action", tag="add-encryption-key"):
    """Add a key, encrypted."""

    encryption_key: Raw


def apply_add_encryption_key(draft: Draft, update: AddEncryptionKey) -> None:
    """A key that is there already stays as it is: files may depend on it."""
    field = "encryption-key"
    if draft.format_version < MIN_VERSION_OF_KEYS:
        raise InvalidUpdate(
            "Encryption keys need a newer format version",
            field=field,
            fix="Upgrade the table to format version 3 first.",
            format_version=draft.format_version,
        )
    key = Document(compact_json(update.encryption_key, field=field), decode_key)
    if key.value.key_id not in draft.encryption_keys:
        draft.encryption_keys = {**draft.encryption_keys, key.value.key_id: key}
        draft.change()


class RemoveEncryptionKey(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-encryption-key"
):
    """Remove a key."""

    key_id: str


def apply_remove_encryption_key(draft: Draft, update: RemoveEncryptionKey) -> None:
    """A key that is not there is ignored."""
    if update.key_id in draft.encryption_keys:
        draft.encryption_keys = {
            key_id: key for key_id, key in draft.encryption_keys.items() if key_id != update.key_id
        }
        draft.change()
