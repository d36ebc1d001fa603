"""The log of previous metadata files."""

from typing import Final

import msgspec

from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.properties import get_int
from cynosure.iceberg.snapshots import decode_metadata_log_entry

PREVIOUS_VERSIONS_MAX: Final = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT: Final = 100


def with_previous_file(
    metadata: TableMetadata, previous_location: str, previous_updated_ms: int
) -> tuple[TableMetadata, list[str]]:
    """Log the file that this metadata replaces.

    Also gives the files that fell out of the log, oldest first: what may be deleted where the table asks
    for it.
    """
    limit = max(1, get_int(metadata.properties, PREVIOUS_VERSIONS_MAX, PREVIOUS_VERSIONS_MAX_DEFAULT))
    entry = msgspec.json.encode({"timestamp-ms": previous_updated_ms, "metadata-file": previous_location})
    log = metadata.metadata_log
    removed: list[str] = []
    excess = len(log) + 1 - limit
    if excess > 0:
        for _, json in log:
            removed.append(decode_metadata_log_entry(json).metadata_file)
            if len(removed) == excess:
                break
        log = log.keep_last(limit - 1)
    return msgspec.structs.replace(metadata, metadata_log=log.append(previous_updated_ms, entry)), removed
