"""A table's metadata: what cannot be copied, and what the metadata of the copy say.

A maintainer must not break: nothing of the copy's metadata leads to the files of the table that was copied.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from cynosure.client.copying.paths import Paths
from cynosure.common.errors import BadInput
from cynosure.common.quantities import format_bytes

UUID: Final = "copied-from.table-uuid"
"""Property of a copy: which table it was. Names that begin with cynosure. are not for clients to set."""
SNAPSHOT: Final = "copied-from.snapshot-id"
UPDATED: Final = "copied-from.last-updated-ms"
VIEW_UUID: Final = "copied-from.view-uuid"
VIEW_VERSION: Final = "copied-from.version-id"
_OURS: Final = "copied-from."
SETTABLE: Final = frozenset({"cynosure.retention.enabled", "cynosure.commit.rebase-appends"})
"""Of the reserved names those that users may set: the catalog's own list is the one that counts."""
_RESERVED: Final = "cynosure."
PATHS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_KEY: Final = "encryption.key-id"
_STATISTICS: Final = ("statistics", "partition-statistics")


def check_copyable(metadata: Mapping[str, Any]) -> None:
    """Refuse what this client cannot copy, as far as the metadata tell."""
    if not metadata.get("table-uuid"):
        raise BadInput(
            "The table has no uuid, so a copy could not be known again",
            field="table-uuid",
            fix="Write to it once with an engine of today, or leave it behind.",
        )
    if (
        metadata.get("properties", {}).get(_KEY)
        or metadata.get("encryption-keys")
        or any(each.get("key-id") for each in _snapshots(metadata))
        or any(each.get("key-metadata") for each in _statistics(metadata))
    ):
        raise BadInput(
            "The table is encrypted, and this client has no keys",
            field="encryption-keys",
            fix="Leave it behind, or copy it with an engine that has the keys.",
        )
    if any(not each.get("manifest-list") for each in _snapshots(metadata)):
        raise BadInput(
            "A snapshot lists its manifests in the metadata, as version 1 once did",
            field="snapshots",
            fix="Let that snapshot expire, or leave the table behind.",
        )


def list_places(metadata: Mapping[str, Any]) -> list[str]:
    """Where the files of a table may be: the catalog checked these."""
    properties = metadata.get("properties", {})
    return [metadata["location"], *(properties[name] for name in PATHS if properties.get(name))]


def list_statistics(metadata: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Files with statistics, and their sizes."""
    for each in _statistics(metadata):
        yield each["statistics-path"], each["file-size-in-bytes"]


def make_state(
    metadata: Mapping[str, Any], paths: Paths, *, table_uuid: str, location: str
) -> dict[str, Any]:
    """The metadata of the copy."""
    source = metadata["location"].rstrip("/")
    state = {
        **metadata,
        "table-uuid": table_uuid,
        "location": location,
        "metadata-log": [],
        "properties": make_properties(metadata.get("properties", {}), source)
        | {
            UUID: metadata["table-uuid"],
            UPDATED: str(metadata["last-updated-ms"]),
            **({} if (at := current_snapshot(metadata)) is None else {SNAPSHOT: str(at)}),
        },
        "snapshots": [
            {**each, "manifest-list": paths.rename(each["manifest-list"])} for each in _snapshots(metadata)
        ],
    }
    for name in _STATISTICS:
        if metadata.get(name):
            state[name] = [
                {**each, "statistics-path": paths.rename(each["statistics-path"])} for each in metadata[name]
            ]
    return state


def make_properties(properties: Mapping[str, str], source: str) -> dict[str, str]:
    """Those that a copy keeps: none that says where files are, or what it was itself copied from."""
    return {
        name: value
        for name, value in properties.items()
        if name not in PATHS and source not in value and not _is_servers(name)
    }


def _is_servers(name: str) -> bool:
    """Whether a property is not for a client to set, or says what something else was copied from."""
    if name.startswith(_OURS):
        return True
    return name.strip().lower().startswith(_RESERVED) and name not in SETTABLE


def current_snapshot(metadata: Mapping[str, Any]) -> int | None:
    """The id of the current snapshot; older writers say -1 for none."""
    found = metadata.get("current-snapshot-id")
    return None if found in (None, -1) else int(found)


def describe(metadata: Mapping[str, Any]) -> str:
    """How much there is to copy, in words: as the current snapshot has it."""
    snapshots = _snapshots(metadata)
    current = next((each for each in snapshots if each["snapshot-id"] == current_snapshot(metadata)), {})
    summary = current.get("summary", {})
    files, size = summary.get("total-data-files", "0"), summary.get("total-files-size", "0")
    text = f"{len(snapshots)} snapshots, {files} data files"
    # A summary is what some writer made of it.
    with suppress(ValueError):
        if (size_bytes := int(size)) > 0:
            return f"{text}, {format_bytes(size_bytes)}"
    return text


def describe_copy(copied: Mapping[str, str], metadata: Mapping[str, Any]) -> str:
    """What a copy with these properties is of, and whether the table has gone on since."""
    updated = copied.get(UPDATED, "")
    when = ""
    # Whoever may change the table may have set it to anything.
    with suppress(ValueError, OverflowError, OSError):
        when = f" of {datetime.fromtimestamp(int(updated) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    what = f"a copy of snapshot {copied[SNAPSHOT]}{when}" if SNAPSHOT in copied else f"a copy{when}"
    is_same = updated == str(metadata["last-updated-ms"])
    return what if is_same else f"{what}; the table has gone on since"


def _snapshots(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    return metadata.get("snapshots") or []


def _statistics(metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in _STATISTICS:
        yield from metadata.get(name) or ()
