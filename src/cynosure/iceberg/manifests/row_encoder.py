"""The JSON of many files of a manifest, for scan plans.

A maintainer must not break: the text means exactly what `content_file_json.file_to_json` says; only faster.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from cynosure.iceberg.manifests.columns import Column, Constant, PackedBytes, PackedText
from cynosure.iceberg.manifests.content_file_json import (
    COUNTS,
    JsonTypes,
    bound_map,
    count_map,
    file_to_json,
    partition_json,
)
from cynosure.iceberg.manifests.manifest import METRICS, Manifest


class RowEncoder:
    """Files of one manifest as JSON text, for plans of many files. For one plan; not for many threads.

    What all files share is written once into a template, what a partition is once for the partition.
    """

    def __init__(
        self, manifest: Manifest, kinds: JsonTypes, *, stats_ids: frozenset[int] = frozenset()
    ) -> None:
        """`stats_ids` are the columns whose metrics are told."""
        self._manifest = manifest
        self._kinds = kinds
        self._stats = tuple(sorted(stats_ids))
        self._types = kinds.partition_types.get(manifest.spec_id, ())
        self._partitions: dict[int, bytes] = {}
        self._has_plain_paths: bool | None = None
        """Whether no path has a byte that JSON writes in another way."""

    def encode(self, row: int) -> bytes:
        """The JSON of one file."""
        return self.encode_many((row,))[0]

    def encode_many(self, rows: Sequence[int]) -> list[bytes]:
        """The JSON of some files."""
        manifest = self._manifest
        if manifest.is_deletes:
            files = (manifest.file(row, with_metrics=False) for row in rows)
            return [msgspec.json.encode(file_to_json(file, self._kinds)) for file in files]
        template = _Template()
        template.add(b'{"content":"data","file-path":')
        self._add_paths(template, rows)
        template.add(b',"file-format":')
        template.add_column(manifest.formats, rows, msgspec.json.encode)
        template.add(b',"spec-id":%d,"partition":' % manifest.spec_id)
        template.add_values([self._partition(number) for number in manifest.partition_numbers.take(rows)])
        template.add(b',"file-size-in-bytes":')
        template.add_column(manifest.file_sizes, rows, None)
        template.add(b',"record-count":')
        template.add_column(manifest.record_counts, rows, None)
        template.add_optional(b',"split-offsets":%b', manifest.split_offsets, rows, msgspec.json.encode)
        template.add_optional(b',"sort-order-id":%d', manifest.sort_order_ids, rows, None)
        template.add_optional(b',"key-metadata":"%b"', manifest.key_metadata, rows, _encode_hex)
        self._add_row_ids(template, rows)
        if self._stats:
            template.add_values([self._encode_stats(row) for row in rows])
        template.add(b"}")
        return template.fill(len(rows))

    def _add_paths(self, template: "_Template", rows: Sequence[int]) -> None:
        paths = self._manifest.paths
        if isinstance(paths, PackedText) and isinstance(paths.packed, PackedBytes):
            prefix, rest = paths.prefix, paths.packed
            if self._has_plain_paths is None:
                self._has_plain_paths = not rest.has(_ESCAPED) and not _ESCAPED.search(prefix)
            if self._has_plain_paths:
                # No byte needs to be written in another way, so that a path can be copied.
                template.add(b'"' + prefix)
                template.add_values(rest.take(rows))
                template.add(b'"')
                return
        template.add_values([msgspec.json.encode(path) for path in paths.take(rows)])

    def _add_row_ids(self, template: "_Template", rows: Sequence[int]) -> None:
        firsts = self._manifest.first_row_ids.take(rows)
        if any(first is not None for first in firsts):
            numbers = self._manifest.sequence_numbers.take(rows)
            template.add_values(
                [
                    b""
                    if first is None
                    else b',"first-row-id":%d,"data-sequence-number":%d' % (first, number or 0)
                    for first, number in zip(firsts, numbers, strict=True)
                ]
            )

    def _partition(self, number: int | None) -> bytes:
        number = number or 0
        found = self._partitions.get(number)
        if found is None:
            values = self._manifest.partitions.get(number)
            found = self._partitions[number] = msgspec.json.encode(
                [partition_json(*pair) for pair in zip(self._types, values, strict=True)]
            )
        return found

    def _encode_stats(self, row: int) -> bytes:
        text = b""
        for name in METRICS:
            picked = self._manifest.metrics(row, name, self._stats)
            document = count_map(picked) if name in COUNTS else bound_map(picked, self._kinds)
            if document is not None and picked:
                text += b',"%b":%b' % (name.replace("_", "-").encode(), msgspec.json.encode(document))
        return text


_ESCAPED: Final = re.compile(rb'[\x00-\x1f"\\]')
"""Bytes that JSON writes in another way."""


class _Template:
    """Text with holes, and the values for the holes of many copies of it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._values: list[Sequence[Any]] = []

    def add(self, text: bytes) -> None:
        """The same in every copy."""
        self._parts.append(text.replace(b"%", b"%%"))

    def add_values(self, values: Sequence[Any], hole: bytes = b"%b") -> None:
        """A text of its own for every copy."""
        self._parts.append(hole)
        self._values.append(values)

    def add_column(
        self, column: Column[Any], rows: Sequence[int], encode: Callable[[Any], bytes] | None
    ) -> None:
        """The value of each file: a number as it is, anything else by `encode`."""
        if isinstance(column, Constant):
            self.add(str(column.value).encode() if encode is None else encode(column.value))
        elif encode is None:
            self.add_values(column.take(rows), b"%d")
        else:
            self.add_values([*map(encode, column.take(rows))])

    def add_optional(
        self, form: bytes, column: Column[Any], rows: Sequence[int], encode: Callable[[Any], bytes] | None
    ) -> None:
        """Nothing for files that have no value."""
        if isinstance(column, Constant):
            if column.value is not None:
                self.add(form % (column.value if encode is None else encode(column.value)))
            return
        values = column.take(rows)
        if encode is not None:
            values = [None if value is None else encode(value) for value in values]
        if None in values:
            self.add_values([b"" if value is None else form % value for value in values])
        else:
            self.add_values(values, form)

    def fill(self, count: int) -> list[bytes]:
        """All copies."""
        text = b"".join(self._parts)
        if not self._values:
            return [text % ()] * count
        return [text % row for row in zip(*self._values, strict=True)]


def _encode_hex(data: bytes) -> bytes:
    return data.hex().upper().encode()
