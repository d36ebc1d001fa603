"""One data or delete file as a value: what a manifest says of it.

Bounds are bytes in Iceberg's binary form (`bounds.py`), partition values are held as `single_value.py` says.

A maintainer must not break: partition values and bounds are exactly what was read, bit for bit: the bytes of
a bound, both zeros, the scale of a decimal. A manifest that is written again must mean the same.
"""

from enum import IntEnum
from typing import Any

from msgspec import Struct


class Content(IntEnum):
    """What is in a file. The numbers are stored."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Status(IntEnum):
    """What a snapshot did with a file. The numbers are stored."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ContentFile(Struct, frozen=True, kw_only=True):
    """A file of a table."""

    path: str
    format: str
    """In small letters: avro, orc, parquet, puffin."""
    spec_id: int
    partition: tuple[Any, ...]
    """In the order of the spec's fields."""
    record_count: int
    file_size_bytes: int
    content: Content = Content.DATA
    column_sizes: dict[int, int] | None = None
    value_counts: dict[int, int] | None = None
    null_value_counts: dict[int, int] | None = None
    nan_value_counts: dict[int, int] | None = None
    lower_bounds: dict[int, bytes] | None = None
    upper_bounds: dict[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    """The only data file that a position delete file or deletion vector is about."""
    content_offset: int | None = None
    content_size_bytes: int | None = None

    @property
    def is_deletion_vector(self) -> bool:
        """Whether the deletes are a bitmap in a Puffin file."""
        return self.content is Content.POSITION_DELETES and self.format == "puffin"


class Entry(Struct, frozen=True):
    """A file in a manifest, and how it came there."""

    status: Status
    snapshot_id: int | None
    """None only while written: the reader takes it from the manifest list."""
    sequence_number: int | None
    """Of the data. None while written by the snapshot that adds the file, for the same reason."""
    file_sequence_number: int | None
    file: ContentFile
