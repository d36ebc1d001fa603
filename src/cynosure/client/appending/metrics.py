"""What a Parquet file says about its columns, as Iceberg keeps it.

A maintainer must not break: a lower bound is never above a value and an upper bound never below one, cut or
not. Where the file does not say enough there is no bound: a wrong one hides rows.
"""

from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow.parquet as pq
from msgspec import Struct

from cynosure.client.appending.options import Kept, MetricsMode
from cynosure.iceberg import types
from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.single_value import EXACT
from cynosure.iceberg.types import DecimalType, NestedField, is_floating

_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


class FileMetrics(Struct, kw_only=True):
    """Of one file, by field id."""

    record_count: int
    split_offsets: tuple[int, ...]
    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    nan_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]


def read_metrics(
    file: pq.FileMetaData, leaves: list[NestedField], modes: dict[int, MetricsMode], nans: dict[int, int]
) -> FileMetrics:
    """The metrics of a file whose columns are these fields. `nans` were counted while it was written."""
    groups = [file.row_group(at) for at in range(file.num_row_groups)]
    found = FileMetrics(
        record_count=file.num_rows,
        split_offsets=tuple(sorted(_start(group.column(0)) for group in groups)),
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    for at, field in enumerate(leaves):
        chunks = [group.column(at) for group in groups]
        found.column_sizes[field.id] = sum(chunk.total_compressed_size for chunk in chunks)
        mode = modes[field.id]
        if mode.kept is not Kept.NOTHING:
            _read_column(found, field, chunks, mode)
            if field.id in nans:
                found.nan_value_counts[field.id] = nans[field.id]
    return found


def _start(chunk: Any) -> int:
    offset = chunk.data_page_offset
    if chunk.has_dictionary_page:
        offset = min(offset, chunk.dictionary_page_offset)
    return int(offset)


def _read_column(found: FileMetrics, field: NestedField, chunks: list[Any], mode: MetricsMode) -> None:
    found.value_counts[field.id] = sum(chunk.num_values for chunk in chunks)
    said = [chunk.statistics for chunk in chunks]
    if any(each is None or not each.has_null_count for each in said):
        return
    found.null_value_counts[field.id] = sum(each.null_count for each in said)
    if mode.kept is not Kept.BOUNDS or not types.is_orderable(field.type):
        return
    known = [each for each in said if each.has_min_max]
    unknown = [
        each
        for each, chunk in zip(said, chunks, strict=True)
        if not each.has_min_max and each.null_count < chunk.num_values
    ]
    # Of numbers that are all NaN nothing is said, and nothing is needed: bounds leave NaN out.
    if not known or (unknown and not is_floating(field.type)):
        return
    low = min(_value(field, each.min_raw) for each in known)
    high = max(_value(field, each.max_raw) for each in known)
    if mode.length is not None and field.type in (types.STRING, types.BINARY):
        low, high = cut_lower(low, mode.length), cut_upper(high, mode.length)
    found.lower_bounds[field.id] = write_bound(field.type, low)
    if high is not None:
        found.upper_bounds[field.id] = write_bound(field.type, high)


def _value(field: NestedField, raw: Any) -> Any:
    if isinstance(field.type, DecimalType):
        unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
        return Decimal(unscaled).scaleb(-field.type.scale, context=EXACT)
    if field.type == types.UUID:
        return UUID(bytes=raw)
    if field.type == types.STRING:
        return raw.decode() if isinstance(raw, bytes) else raw
    return raw


def cut_lower(value: Any, length: int) -> Any:
    """At most the value: its first characters or bytes."""
    return value[:length]


def cut_upper(value: Any, length: int) -> Any:
    """At least the value, with so many characters or bytes; None when there is nothing so short."""
    if len(value) <= length:
        return value
    return _next_text(value[:length]) if isinstance(value, str) else _next_bytes(value[:length])


def _next_text(text: str) -> str | None:
    for at in range(len(text) - 1, -1, -1):
        code = ord(text[at]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST:
            return text[:at] + chr(code)
    return None


def _next_bytes(data: bytes) -> bytes | None:
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
