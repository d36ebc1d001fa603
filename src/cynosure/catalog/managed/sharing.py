"""A version that was read from elsewhere, in the pieces of the version before it.

Versions that are made here share what did not change with what they were made of, and only the rest is stored
(`parts.py`). One that another catalog made is read as a whole; where it says the same, it is given the same
pieces. Else each change of a table with thousands of snapshots would store all of them again.
"""

from typing import Any

from msgspec import structs

from cynosure.iceberg.metadata import TableMetadata


def share_pieces(metadata: TableMetadata, base: TableMetadata) -> TableMetadata:
    """The same metadata, with the pieces of `base` as far as it has them."""
    known = {document.json: document for document in base.schemas}
    schemas: tuple[Any, ...] = tuple([known.get(each.json, each) for each in metadata.schemas])
    return structs.replace(
        metadata,
        schemas=schemas,
        snapshots=metadata.snapshots.cut_like(base.snapshots),
        snapshot_log=metadata.snapshot_log.cut_like(base.snapshot_log),
        metadata_log=metadata.metadata_log.cut_like(base.metadata_log),
        statistics=metadata.statistics.cut_like(base.statistics),
        partition_statistics=metadata.partition_statistics.cut_like(base.partition_statistics),
    )
