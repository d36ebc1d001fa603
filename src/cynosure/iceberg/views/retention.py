"""How much of a view's history is kept.

A maintainer must not break: the current version and those that the running commit added are always kept, and
the log never has a gap: what is before a forgotten version is forgotten too.
"""

from collections.abc import Collection, Iterable
from typing import Final

from cynosure.iceberg.document import Document
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.properties import get_int
from cynosure.iceberg.views.version import ViewLogEntry, ViewVersion

HISTORY_SIZE: Final = "version.history.num-entries"
HISTORY_SIZE_DEFAULT: Final = 10


def get_history_size(properties: dict[str, str]) -> int:
    """How many versions a view keeps."""
    size = get_int(properties, HISTORY_SIZE, HISTORY_SIZE_DEFAULT)
    if size <= 0:
        raise InvalidUpdate(
            "The number of versions to keep must be positive",
            field=f"properties.{HISTORY_SIZE}",
            fix="Set it to 1 or more, or remove it.",
            size=size,
        )
    return size


def keep_versions(
    versions: Iterable[Document[ViewVersion]], *, size: int, current_id: int, added: Collection[int]
) -> list[Document[ViewVersion]]:
    """The newest versions, in their order. Newer is higher: ids are given in order."""
    versions = list(versions)
    always = {current_id, *added}
    count = max(size, len(always))
    ids = sorted((one.value.version_id for one in versions), key=lambda id_: (id_ in always, id_))
    kept = {*ids[-count:]}
    return [one for one in versions if one.value.version_id in kept]


def keep_log(
    log: Iterable[Document[ViewLogEntry]], versions: Iterable[Document[ViewVersion]]
) -> list[Document[ViewLogEntry]]:
    """The log after its last entry for a version that is gone."""
    ids = {one.value.version_id for one in versions}
    kept: list[Document[ViewLogEntry]] = []
    for entry in log:
        if entry.value.version_id in ids:
            kept.append(entry)
        else:
            kept.clear()
    return kept
