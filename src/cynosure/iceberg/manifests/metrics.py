"""Maps of column metrics, read from many files into one packed column for each table column.

Almost all files of a manifest have metrics of the same columns in the same order. So the values of each such
*shape* are kept row after row, and a column is every n-th of them: no work per value but to read it.

A maintainer must not break: memory grows with the values that were read, not with files times columns.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from cynosure.iceberg.manifests.avro.decode import Reader, make_reader, read_count, read_long, read_unsigned
from cynosure.iceberg.manifests.avro.encode import make_writer
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Array, Node, Plain, Record, RecordField, Union, unwrap
from cynosure.iceberg.manifests.columns import Column
from cynosure.iceberg.manifests.packing import BytesBuilder, IntsBuilder, pack_ints, spread

_WHOLE: Final = frozenset({"int", "long"})


class MetricMaps:
    """The maps of one kind, e.g. all lower bounds, of the files read so far."""

    def __init__(self, *, is_bytes: bool) -> None:
        self._is_bytes = is_bytes
        self._shapes: dict[tuple[int, ...], tuple[list[int], list[Any]]] = {}
        self._columns: dict[int, _Gathered] = {}
        self.row = 0
        """The number of the file that is read next."""

    def make_reader(self, node: Node) -> Reader:
        """The reader for this kind of map as a file's schema has it. Its values stay here."""
        optional = isinstance(node, Union)
        branches = node.branches if isinstance(node, Union) else (node,)
        if optional and len(branches) == 2 and branches[0] == Plain("null"):
            branches = branches[1:]
        if len(branches) == 1 and is_usual_map(branches[0], is_bytes=self._is_bytes):
            read_items = self._read_blobs if self._is_bytes else self._read_counts
            return _optional(read_items, self._skip) if optional else read_items
        return self._make_general(node)

    def add(
        self, key: int, rows: Sequence[int], values: Sequence[Any] | None, records: Sequence[int] = ()
    ) -> None:
        """Values of one column for some files. Files are given in ascending order, from call to call too.

        Some values may be None, if not most are. None for all stands for `records`, the record counts of
        these files.
        """
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = _Gathered(is_bytes=self._is_bytes)
        try:
            column.add(rows, values)
        except _NotTheSameError:
            column.add(rows, records)

    def flush(
        self, also: Mapping[int, tuple[Sequence[int], Sequence[Any] | None]], records: Sequence[int]
    ) -> None:
        """Move what was read into the columns, with the values of further files that were read elsewhere.

        `records` are the record counts of those further files.
        """
        parts: dict[int, list[tuple[Sequence[int], Sequence[Any]]]] = {}
        for keys, (rows, values) in self._shapes.items():
            width = len(keys)
            # Where a map names a column twice, the last value counts, as in every other reader.
            for key, place in {key: place for place, key in enumerate(keys)}.items():
                parts.setdefault(_signed(key), []).append((rows, values[place::width]))
        self._shapes = {}
        for key, (rows_too, values_too) in also.items():
            if key in parts:
                parts[key].append((rows_too, records if values_too is None else values_too))
            else:
                self.add(key, rows_too, values_too, records)
        for key, some in parts.items():
            if len(some) == 1:
                self.add(key, *some[0])
            else:
                pairs = [pair for part in some for pair in zip(*part, strict=True)]
                pairs.sort(key=lambda pair: pair[0])
                self.add(key, [row for row, _ in pairs], [value for _, value in pairs])

    def finish(self, records: Column[int]) -> Mapping[int, Column[Any]]:
        """All columns of a manifest with these record counts. The maps are used up."""
        found = self._columns
        return {key: found.pop(key).finish(records) for key in sorted(found)}

    def _skip(self) -> None:
        self.row += 1

    def _keep(self, keys: list[int], values: list[Any]) -> None:
        if keys:
            shape = self._shapes.get(tuple(keys))
            if shape is None:
                shape = self._shapes[tuple(keys)] = [], []
            shape[0].append(self.row)
            shape[1].extend(values)
        self.row += 1

    def _read_counts(self, data: bytes, at: int) -> tuple[None, int]:
        keys: list[int] = []
        values: list[int] = []
        while True:
            count, at = read_count(data, at, 2)
            if not count:
                break
            for _ in range(count):
                key = data[at]
                if key < 128:
                    at += 1
                else:
                    key, at = read_unsigned(data, at)
                keys.append(key)
                # Numbers of one to three bytes, read in place.
                number = data[at]
                if number < 128:
                    at += 1
                elif (second := data[at + 1]) < 128:
                    number += (second << 7) - 0x80
                    at += 2
                elif (third := data[at + 2]) < 128:
                    number += (second << 7) + (third << 14) - 0x4080
                    at += 3
                else:
                    number, at = read_unsigned(data, at)
                values.append(~(number >> 1) if number & 1 else number >> 1)
        self._keep(keys, values)
        return None, at

    def _read_blobs(self, data: bytes, at: int) -> tuple[None, int]:
        keys: list[int] = []
        values: list[bytes] = []
        limit = len(data)
        while True:
            count, at = read_count(data, at, 2)
            if not count:
                break
            for _ in range(count):
                key = data[at]
                if key < 128:
                    at += 1
                else:
                    key, at = read_unsigned(data, at)
                keys.append(key)
                size = data[at]
                if size < 128:
                    at += 1
                else:
                    size, at = read_unsigned(data, at)
                end = at + (size >> 1)
                if size & 1 or end > limit:
                    raise Malformed("A bound is longer than the bytes that are left")
                values.append(data[at:end])
                at = end
        self._keep(keys, values)
        return None, at

    def _make_general(self, node: Node) -> Reader:
        """For schemas that no known writer makes, but that mean the same."""
        key_at, value_at = _find_parts(node, is_bytes=self._is_bytes)
        read_map = make_reader(node)

        def read(data: bytes, at: int) -> tuple[None, int]:
            items, at = read_map(data, at)
            pairs = [(item[key_at], item[value_at]) for item in items or ()]
            pairs = [pair for pair in pairs if None not in pair]
            self._keep([_unsigned(key) for key, _ in pairs], [value for _, value in pairs])
            return None, at

        return read


class RawCounts(Mapping[int, Column[int]]):
    """Maps of counts that are kept as they are stored: for what scans never ask for.

    One file's map is cheap; a column is made from all maps each time it is asked for.
    """

    __slots__ = ("maps",)

    def __init__(self, maps: Column[bytes]) -> None:
        self.maps = maps

    def row(self, row: int) -> dict[int, int] | None:
        """The counts of one file."""
        stored = self.maps[row]
        return None if stored is None else dict(_PAIRS(stored, 0)[0])

    def __getitem__(self, id_: int) -> Column[int]:
        values = [None if one is None else dict(_PAIRS(one, 0)[0]).get(id_) for one in self.maps]
        if values.count(None) == len(values):
            raise KeyError(id_)
        return pack_ints(values)

    def __iter__(self) -> Iterator[int]:
        ids: set[int] = set()
        for stored in self.maps:
            if stored is not None:
                ids.update(dict(_PAIRS(stored, 0)[0]))
        return iter(sorted(ids))

    def __len__(self) -> int:
        return len([*iter(self)])


def make_raw_reader(node: Node) -> Reader:
    """The reader for a map of counts that gives its stored form, in the way every known writer has it."""
    key_at, value_at = _find_parts(node, is_bytes=False)
    read_map = make_reader(node)
    is_usual = is_usual_map(unwrap(node), is_bytes=False)
    skip = int(isinstance(node, Union))
    write = make_writer(_PAIR_LIST)

    def read(data: bytes, at: int) -> tuple[bytes | None, int]:
        items, end = read_map(data, at)
        if items is None:
            return None, end
        if is_usual:
            return data[at + skip : end], end
        out = bytearray()
        write(out, [pair for item in items if None not in (pair := (item[key_at], item[value_at]))])
        return bytes(out), end

    return read


class _Gathered:
    """One column while it grows."""

    __slots__ = ("_first_of_own", "_rows", "_values")

    def __init__(self, *, is_bytes: bool) -> None:
        self._values: IntsBuilder | BytesBuilder = BytesBuilder() if is_bytes else IntsBuilder()
        self._rows: array[int] | None = None
        """The files that have a value; None while there is an item for each, up to the last one seen."""
        self._first_of_own = 0
        """All files before this one have as many values as records, so there is nothing to keep."""

    def add(self, rows: Sequence[int], values: Sequence[Any] | None) -> None:
        if not rows:
            return
        first, own = rows[0], self._first_of_own
        seen = own + len(self._values)
        is_next = self._rows is None and first == seen and rows[-1] - first + 1 == len(rows)
        if values is None:
            if is_next and own == seen:
                self._first_of_own += len(rows)
                return
            raise _NotTheSameError
        if self._rows is None and not is_next:
            self._list_rows()
        if self._rows is not None:
            if None in values:
                there = [value is not None for value in values]
                rows, values = [*compress(rows, there)], [*compress(values, there)]
            self._rows.extend(rows)
        self._values.extend(values)

    def _list_rows(self) -> None:
        """From now on, with the numbers of the files that have a value."""
        column: Column[Any] = self._values.finish()
        there = [row for row, value in enumerate(column) if value is not None]
        self._rows = array("I", [self._first_of_own + row for row in there])
        self._values = type(self._values)()
        self._values.extend(column.take(there))

    def finish(self, records: Column[int]) -> Column[Any]:
        own = self._first_of_own
        count = len(records)
        if own == count:
            return records
        column: Column[Any] = self._values.finish()
        rows = array("I", range(own, own + len(column))) if self._rows is None else self._rows
        if not own:
            return spread(rows, column, count)
        counts = [records[row] for row in range(own)]
        return spread(array("I", [*range(own), *rows]), pack_ints([*counts, *column]), count)


class _NotTheSameError(Exception):
    """Record counts cannot stand for these values: some files in between have others, or none."""


_PAIR_LIST: Final = Array(
    Record((RecordField("key", None, (), Plain("int")), RecordField("value", None, (), Plain("long"))))
)
_PAIRS: Final = make_reader(_PAIR_LIST)


def _optional(read_items: Reader, skip: Any) -> Reader:
    def read(data: bytes, at: int) -> tuple[None, int]:
        index, at = read_long(data, at)
        if index == 1:
            return read_items(data, at)
        if index:
            raise Malformed("A value has a type that its union does not have")
        skip()
        return None, at

    return read


def is_usual_map(node: Node, *, is_bytes: bool) -> bool:
    """Whether a map is stored as every known writer does: a list of keys with values that are never null."""
    if not isinstance(node, Array) or not isinstance(node.item, Record) or len(node.item.fields) != 2:
        return False
    key, value = (field.type for field in node.item.fields)
    if node.item.fields[0].name != "key" or not (isinstance(key, Plain) and key.kind in _WHOLE):
        return False
    return isinstance(value, Plain) and (value.kind == "bytes" if is_bytes else value.kind in _WHOLE)


def _find_parts(node: Node, *, is_bytes: bool) -> tuple[int, int]:
    item = unwrap(node)
    if isinstance(item, Array) and isinstance(item.item, Record):
        parts = {field.name: unwrap(field.type) for field in item.item.fields}
        kinds = {name: part.kind for name, part in parts.items() if isinstance(part, Plain)}
        if kinds.get("key") in _WHOLE and kinds.get("value") in ({"bytes"} if is_bytes else _WHOLE):
            return list(parts).index("key"), list(parts).index("value")
    raise Malformed("The metrics of columns are not lists of keys and values")


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _unsigned(number: int) -> int:
    return number << 1 if number >= 0 else ~(number << 1)
