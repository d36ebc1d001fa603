"""What the properties of a table say about its Parquet files, under the names that Iceberg's writers know.

A maintainer must not break: a property that is not understood is refused, never taken for the default. Files
of another kind than the owner asked for stay for years.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from cynosure.client.appending.arrow_types import list_leaves
from cynosure.common.errors import BadInput
from cynosure.iceberg.schema import Schema

TARGET_BYTES: Final = "write.target-file-size-bytes"
_GROUP_BYTES: Final = "write.parquet.row-group-size-bytes"
_GROUP_ROWS: Final = "write.parquet.row-group-limit"
_CODEC: Final = "write.parquet.compression-codec"
_LEVEL: Final = "write.parquet.compression-level"
_MODE: Final = "write.metadata.metrics.default"
_COLUMN_MODE: Final = "write.metadata.metrics.column."
_INFERRED: Final = "write.metadata.metrics.max-inferred-column-defaults"
_TRUNCATE: Final = re.compile(r"truncate\((\d{1,9})\)", re.ASCII)
_CODECS: Final = {
    "uncompressed": None,
    **{name: name for name in ("zstd", "gzip", "snappy", "lz4", "brotli")},
}
_WITH_LEVEL: Final = frozenset({"zstd", "gzip", "brotli"})


class Kept(Enum):
    """What is kept of a column's metrics."""

    NOTHING = "none"
    COUNTS = "counts"
    BOUNDS = "full"


class MetricsMode(Struct, frozen=True):
    """What is kept, and how many characters or bytes of a bound."""

    kept: Kept
    length: int | None = None


class ParquetOptions(Struct, frozen=True):
    """How files are written."""

    target_bytes: int
    group_bytes: int
    group_rows: int
    writer: dict[str, Any]
    """Arguments of pyarrow's writer."""


def read_options(properties: Mapping[str, str]) -> ParquetOptions:
    """The options of a table."""
    named = properties.get(_CODEC, "zstd").lower()
    if named not in _CODECS:
        raise _wrong(_CODEC, f"Set it to one of {', '.join(_CODECS)}.")
    codec = _CODECS[named]
    if codec is not None and not pa.Codec.is_available(codec):
        raise BadInput(
            "This pyarrow does not have the table's compression codec",
            field=_CODEC,
            fix="Install a pyarrow that has it, or choose another codec for the table.",
            codec=codec,
        )
    level = _read_whole(properties, _LEVEL, None)
    return ParquetOptions(
        target_bytes=_read_whole(properties, TARGET_BYTES, 512 * 2**20) or 1,
        group_bytes=_read_whole(properties, _GROUP_BYTES, 128 * 2**20) or 1,
        group_rows=_read_whole(properties, _GROUP_ROWS, 2**20) or 1,
        writer={
            "compression": codec or "none",
            "compression_level": level if codec in _WITH_LEVEL else None,
            "data_page_size": _read_whole(properties, "write.parquet.page-size-bytes", 2**20),
            "dictionary_pagesize_limit": _read_whole(properties, "write.parquet.dict-size-bytes", 2 * 2**20),
            "write_batch_size": _read_whole(properties, "write.parquet.page-row-limit", 20_000),
        },
    )


def read_modes(properties: Mapping[str, str], schema: Schema) -> dict[int, MetricsMode]:
    """What is kept of each column of a file.

    Without a default of the owner's, only the first hundred columns have metrics, as with Iceberg's own
    writers: manifests of wide tables would be larger than some of their files.
    """
    default = _read_mode(properties, _MODE)
    limit = _read_whole(properties, _INFERRED, 100) or 0
    modes: dict[int, MetricsMode] = {}
    for at, (path, field, is_single) in enumerate(list_leaves(schema)):
        inferred = MetricsMode(Kept.BOUNDS, 16) if at < limit else MetricsMode(Kept.NOTHING)
        mode = _read_mode(properties, _COLUMN_MODE + path) or default or inferred
        if mode.kept is Kept.BOUNDS and not is_single:
            # Of the values of many lists no row is told apart by bounds.
            mode = MetricsMode(Kept.COUNTS)
        modes[field.id] = mode
    return modes


def _read_mode(properties: Mapping[str, str], name: str) -> MetricsMode | None:
    text = properties.get(name, "").strip().lower()
    if not text:
        return None
    if text in ("none", "counts", "full"):
        return MetricsMode(Kept(text))
    match = _TRUNCATE.fullmatch(text)
    if match is None or int(match[1]) < 1:
        raise _wrong(name, "Set it to none, counts, full or truncate(16).")
    return MetricsMode(Kept.BOUNDS, int(match[1]))


def _read_whole(properties: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = properties.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"\d{1,15}", text.strip(), re.ASCII):
        raise _wrong(name, "Set it to a whole number.")
    return int(text)


def _wrong(name: str, fix: str) -> BadInput:
    return BadInput("A property of the table is not what it should be", field=name, fix=fix)
