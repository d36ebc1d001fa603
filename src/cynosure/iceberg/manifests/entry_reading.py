"""The entries of a manifest's blocks into columns.

A maintainer must not break: both ways to read an entry put the same values into the same columns, in the
order of the file. The pattern is only ever a guess that is checked.
"""

import sys
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import compress
from struct import error as StructError
from typing import Any, Final

from cynosure.iceberg.manifests.avro.decode import Reader, make_reader, read_unsigned
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Array, Fixed, Node, Plain, Record, Union, unwrap
from cynosure.iceberg.manifests.columns import Column, Constant
from cynosure.iceberg.manifests.entry_fields import LISTS, TEXTS, WHOLES, EntryField, entry_fields
from cynosure.iceberg.manifests.entry_pattern import EntryPattern, Group, learn_pattern
from cynosure.iceberg.manifests.manifest import METRICS, PartitionField, Partitions
from cynosure.iceberg.manifests.metrics import MetricMaps, RawCounts, make_raw_reader
from cynosure.iceberg.manifests.packing import BytesBuilder, IntsBuilder, ListsBuilder, pack_values

FLUSH_FILES: Final = 512, 4_096
"""How many files are read before they are packed, at least and at most: what a manifest costs in memory
beyond its result."""
FLUSH_VALUES: Final = 150_000
SAMPLES: Final = 64
LEAST_FILES: Final = 256
"""Smaller manifests are read step by step: a pattern takes longer to make than it saves."""
PATTERN_BYTES: Final = 20
"""How large a pattern may be for each file of the manifest, for the same reason."""
_FIRST_PARTITION_FIELD: Final = 1000
_WIDE: Final = 4
"""Numbers of up to so many bytes are read many at a time."""

_Metrics = dict[int, tuple[Sequence[int], Sequence[Any] | None]]
_Builder = IntsBuilder | BytesBuilder | ListsBuilder


class EntryReading:
    """The entries read so far."""

    def __init__(self, schema: Node) -> None:
        self.count = 0
        self._fields = entry_fields(schema)
        self._metrics = {name: MetricMaps(is_bytes=name.endswith("bounds")) for name in METRICS[1:]}
        self._builders: dict[str, _Builder] = {
            **{name: IntsBuilder() for name in (*WHOLES, "partition")},
            **{name: BytesBuilder() for name in TEXTS},
            **{name: ListsBuilder() for name in LISTS},
        }
        self._distinct: dict[bytes, int] = {}
        self._partitions: list[tuple[Any, ...]] = []
        self._partition_fields: tuple[PartitionField, ...] = ()
        self._read_partition: Reader | None = None
        # Not packed yet: values of entries read step by step, groups of entries that matched, and in which
        # order they came: so many of the one, so many of the other, and so on.
        self._values: dict[str, list[Any]] = {}
        self._matched: list[tuple[bytes | None, ...]] = []
        self._matched_rows: list[int] = []
        self._pending = 0
        self._steps = [self._make_step(field) for field in self._fields]
        self._pattern: EntryPattern | None = None
        self._misses = 0
        self._flush_files = FLUSH_FILES[0]

    def read(self, data: bytes, entries: int) -> int:
        """The entries of a block; gives where the last one ends."""
        at = 0
        left = entries
        while left:
            some = min(left, self._flush_files - self._pending)
            at = self._read_some(data, at, some)
            left -= some
            if self._pending >= self._flush_files:
                self._flush()
        return at

    def finish(self) -> tuple[dict[str, Column[Any]], dict[str, Any], Partitions]:
        """All columns by the names of the specification, metrics, and the different partitions."""
        self._flush()
        columns: dict[str, Column[Any]] = {
            name: self._builders.pop(name).finish() for name in [*self._builders]
        }
        records = columns["record_count"]
        metrics: dict[str, Any] = {name: maps.finish(records) for name, maps in self._metrics.items()}
        metrics["column_sizes"] = RawCounts(columns["column_sizes"])
        if self._read_partition is None:
            # Not even an empty record: a table without partitions, as some writers have it.
            columns["partition"] = Constant(0, self.count)
        values = tuple(map(pack_values, zip(*self._partitions, strict=True)))
        return columns, metrics, Partitions(self._partition_fields, values, len(self._partitions))

    # Entries.

    def _read_some(self, data: bytes, at: int, entries: int) -> int:
        if self._pattern is None:
            for _ in range(entries):
                at = self._read_steps(data, at)
            return at
        match, checks = self._pattern.expression.match, self._pattern.checks
        keep = self._matched.append
        first = self.count
        for _ in range(entries):
            found = match(data, at)
            if found is not None:
                groups = found.groups()
                if not checks or not any(check.fails(groups) for check in checks):
                    at = found.end()
                    keep(groups)
                    continue
            self._count_matched(first)
            at = self._read_steps(data, at)
            first = self.count
            self._misses += 1
        self._count_matched(first)
        if self._misses * 2 > self.count:
            # The sample was not like the rest.
            self._flush()
            self._pattern = None
        return at

    def _count_matched(self, first: int) -> None:
        count = len(self._matched) - len(self._matched_rows)
        self._matched_rows.extend(range(first, first + count))
        self.count += count
        self._pending += count

    def _read_steps(self, data: bytes, at: int) -> int:
        for maps in self._metrics.values():
            maps.row = self.count
        for read, keep in self._steps:
            value, at = read(data, at)
            keep(value)
        self.count += 1
        self._pending += 1
        return at

    def _make_step(self, field: EntryField) -> tuple[Reader, Callable[[Any], object]]:
        if field.kind in ("counts", "bounds"):
            return self._metrics[field.name].make_reader(field.type), _drop
        if field.kind == "raw counts":
            return make_raw_reader(field.type), self._values.setdefault(field.name, []).append
        if field.kind == "partition":
            return self._partition_reader(field), self._values.setdefault("partition", []).append
        keep = self._values.setdefault(field.name, []).append if field.name else _drop
        return _make_reader(field), keep

    def _partition_reader(self, field: EntryField) -> Reader:
        node = unwrap(field.type)
        parts = node.fields if isinstance(node, Record) else ()
        self._partition_fields = tuple(
            PartitionField(_FIRST_PARTITION_FIELD + at if one.id is None else one.id, one.name)
            for at, one in enumerate(parts)
        )
        self._read_partition = read_values = make_reader(field.type)

        def read(data: bytes, at: int) -> tuple[int, int]:
            _, end = read_values(data, at)
            return self._number(data[at:end]), end

        return read

    def _number(self, key: bytes) -> int:
        # By their bytes: 0.0 and -0.0 are equal and yet two partitions, and NaN equals nothing.
        number = self._distinct.get(key)
        if number is None:
            values = None if self._read_partition is None else self._read_partition(key, 0)[0]
            number = self._distinct[key] = len(self._partitions)
            self._partitions.append((None,) * len(self._partition_fields) if values is None else values)
        return number

    # Patterns.

    def learn(self, blocks: Sequence[tuple[bytes, int]], files: int) -> None:
        """Look at the first blocks, each with its number of entries, before they are read.

        `files` is about how many the manifest has.
        """
        if sum(entries for _, entries in blocks) < LEAST_FILES:
            return
        readers = [
            make_reader(field.type)
            if field.kind in ("counts", "bounds", "raw counts", "partition")
            else _make_reader(field)
            for field in self._fields
        ]
        samples: list[list[Any]] = []
        try:
            for data, entries in blocks:
                at = 0
                for _ in range(min(entries, SAMPLES - len(samples))):
                    values = []
                    for read in readers:
                        value, at = read(data, at)
                        values.append(value)
                    samples.append(values)
        except (IndexError, StructError, Malformed):
            # Damage is told by the ordinary reading, which knows where.
            return
        self._pattern = learn_pattern(self._fields, samples, max_bytes=PATTERN_BYTES * files)
        if self._pattern is not None:
            least, most = FLUSH_FILES
            self._flush_files = max(least // 8, min(most, FLUSH_VALUES // (len(self._pattern.groups) + 1)))

    def _flush(self) -> None:
        """Pack what was read."""
        columns, metrics = self._convert_matched()
        records = columns.get("record_count", ())
        is_matched = self._order()
        for name, builder in self._builders.items():
            builder.extend(self._merge(self._values.get(name), columns.get(name), is_matched))
        for name, maps in self._metrics.items():
            maps.flush(metrics.get(name, {}), records)
        for kept in self._values.values():
            kept.clear()
        self._matched.clear()
        self._matched_rows.clear()
        self._pending = 0

    def _convert_matched(self) -> tuple[dict[str, Sequence[Any]], dict[str, _Metrics]]:
        columns: dict[str, Sequence[Any]] = {}
        metrics: dict[str, _Metrics] = {}
        if not self._matched or self._pattern is None:
            return columns, metrics
        record_bytes: tuple[bytes | None, ...] = ()
        rows = self._matched_rows
        for group, raw in zip(self._pattern.groups, zip(*self._matched, strict=True), strict=True):
            if group.kind == "count":
                continue
            if group.kind not in ("counts", "bounds"):
                columns[group.name] = self._convert(group, raw)
                if group.name == "record_count":
                    record_bytes = raw
            elif group.kind == "counts" and raw == record_bytes:
                # Value counts usually are the same numbers again.
                metrics.setdefault(group.name, {})[group.key] = rows, None
            elif self._has_gaps(raw):
                there = [one is not None for one in raw]
                found = self._convert(group, tuple(compress(raw, there)))
                metrics.setdefault(group.name, {})[group.key] = [*compress(rows, there)], found
            else:
                metrics.setdefault(group.name, {})[group.key] = rows, self._convert(group, raw)
        return columns, metrics

    def _has_gaps(self, raw: tuple[bytes | None, ...]) -> bool:
        """Whether values are better kept with the numbers of their files: some are missing, or most."""
        missing = raw.count(None)
        return missing > 0 and (len(raw) != self._pending or missing * 4 > len(raw) * 3)

    def _order(self) -> bytearray | None:
        """For each pending file, whether it matched; None when all came in one way."""
        if not self._matched or len(self._matched) == self._pending:
            return None
        first = self.count - self._pending
        is_matched = bytearray(self._pending)
        for row in self._matched_rows:
            is_matched[row - first] = 1
        return is_matched

    def _merge(
        self, stepped: list[Any] | None, matched: Sequence[Any] | None, is_matched: bytearray | None
    ) -> Sequence[Any]:
        if is_matched is None:
            return (matched if self._matched else stepped) or [None] * self._pending
        some = iter(stepped or [None] * (self._pending - len(self._matched)))
        others = iter(matched or [None] * len(self._matched))
        return [next(others) if there else next(some) for there in is_matched]

    def _convert(self, group: Group, raw: tuple[bytes | None, ...]) -> Sequence[Any]:
        match group.kind:
            case "whole" | "counts":
                return _read_numbers(raw)
            case "partition":
                numbers = {key: self._number(key) for key in dict.fromkeys(raw) if key is not None}
                return [numbers[key] for key in raw if key is not None]
            case "wholes":
                known = {one: None if one is None else _read_list(one) for one in set(raw)}
                return [known[one] for one in raw]
        if not group.has_size:
            return raw
        return [None if one is None else one[1 if one[0] < 128 else 2 :] for one in raw]


_drop: Final = deque[Any](maxlen=0).append
_LONGS: Final = make_reader(Array(Plain("long")))


def _make_reader(field: EntryField) -> Reader:
    if field.kind in ("text", "bytes"):
        # Texts stay bytes until all of them are there; then they are checked at once.
        inner = Plain("bytes") if not isinstance(unwrap(field.type), Fixed) else unwrap(field.type)
        if isinstance(field.type, Union):
            branches = tuple(one if one == Plain("null") else inner for one in field.type.branches)
            return make_reader(Union(branches))
        return make_reader(inner)
    return make_reader(field.type)


def _read_list(data: bytes) -> tuple[int, ...]:
    return tuple(_LONGS(data, 0)[0])


def _read_numbers(raw: tuple[bytes | None, ...]) -> Sequence[int | None]:
    """Numbers from their bytes."""
    distinct = set(raw)
    if len(distinct) * 8 <= len(raw):
        known = {one: None if one is None else _read_number(one) for one in distinct}
        return [known[one] for one in raw]
    # Many at a time, as numbers of this machine, if it is little-endian.
    if None in distinct or max(map(len, distinct)) > _WIDE or sys.byteorder != "little":  # type: ignore[arg-type]
        return [None if one is None else _read_number(one) for one in raw]
    packed = array("I", b"".join([one.ljust(_WIDE, b"\x00") for one in raw]))  # type: ignore[union-attr]
    return [
        (number >> 1) ^ -(number & 1)
        for word in packed
        for number in [word & 127 | word >> 1 & 0x3F80 | word >> 2 & 0x1FC000 | word >> 3 & 0xFE00000]
    ]


def _read_number(data: bytes) -> int:
    number, _ = read_unsigned(data, 0)
    return (number >> 1) ^ -(number & 1)
