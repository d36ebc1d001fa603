"""Statistics files of snapshots, of whole tables and per partition. Carried; nothing here reads them."""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.document import Int32, Int64, decode_json


class BlobMetadata(Struct, frozen=True, rename="kebab"):
    """One sketch in a statistics file."""

    type: str
    snapshot_id: Int64
    sequence_number: Int64
    fields: tuple[Int32, ...]
    properties: dict[str, str] | None = None


class StatisticsFile(Struct, frozen=True, rename="kebab"):
    """A Puffin file about one snapshot."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64
    file_footer_size_in_bytes: Int64
    blob_metadata: tuple[BlobMetadata, ...]


class PartitionStatisticsFile(Struct, frozen=True, rename="kebab"):
    """A file of counts per partition of one snapshot."""

    snapshot_id: Int64
    statistics_path: str
    file_size_in_bytes: Int64


def decode_statistics(json: bytes, *, field: str = "statistics") -> StatisticsFile:
    """The typed view of a statistics file's JSON."""
    return decode_json(json, _STATISTICS, field=field)


def decode_partition_statistics(
    json: bytes, *, field: str = "partition-statistics"
) -> PartitionStatisticsFile:
    """The typed view of a partition statistics file's JSON."""
    return decode_json(json, _PARTITION_STATISTICS, field=field)


_STATISTICS: Final = msgspec.json.Decoder(StatisticsFile)
_PARTITION_STATISTICS: Final = msgspec.json.Decoder(PartitionStatisticsFile)
