"""What became of a swapped pointer whose answer was lost, by looking at the table again.

The name of a metadata file is used once. So a table whose log has ours was changed by us, and one whose log
goes on from the file before ours to another was changed by somebody else: the swap, which expected the file
before, cannot succeed any more.

A maintainer must not break: what is not proven is `OPEN`.
"""

from enum import Enum, auto

from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.snapshots import decode_metadata_log_entry


class Outcome(Enum):
    """Of a change."""

    DONE = auto()
    LOST = auto()
    """Somebody else's was made instead, and ours never will be."""
    OPEN = auto()


def settle(found: str | None, metadata: TableMetadata | None, *, written: str, before: str | None) -> Outcome:
    """What a pointer that is `found` now, and the file it names, say about one that was to be `written`.

    `before` is the pointer that the swap expected; `None` for a creation.
    """
    if found == written:
        return Outcome.DONE
    if found is None or metadata is None or found == before:
        return Outcome.OPEN
    logged = {decode_metadata_log_entry(json).metadata_file for _, json in metadata.metadata_log}
    if written in logged:
        return Outcome.DONE
    return Outcome.LOST if before is not None and before in logged else Outcome.OPEN
