"""Recent changes, embedded in the commit object; they win over the tree.

A maintainer must not break: entries are in the order of change, least recent first, because that
order decides what is spilled; a `None` value is a tombstone that hides the tree's entry.
"""

import struct
from bisect import insort
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from cynosure.common.errors import BadInput, CorruptObject, TooLarge
from cynosure.persistence.index.columns import Reader, ValueColumn, pack, unpack
from cynosure.persistence.index.limits import MAX_KEY_BYTES, MAX_VALUE_BYTES

_ENTRY_BYTES = 2
_FEW = 8
_HEADER = struct.Struct(">II")


class Buffer:
    """An immutable set of changes in the order in which they were made."""

    __slots__ = ("_ordered", "entries", "size_bytes")

    def __init__(
        self,
        entries: dict[bytes, bytes | None],
        size_bytes: int | None = None,
        ordered: list[bytes] | None = None,
    ) -> None:
        self.entries: Final = entries
        self.size_bytes: Final = _size_bytes(entries.items()) if size_bytes is None else size_bytes
        """Before compression."""
        self._ordered = ordered

    @property
    def ordered(self) -> list[bytes]:
        """The keys in key order."""
        if self._ordered is None:
            self._ordered = sorted(self.entries)
        return self._ordered

    def apply(self, changes: Mapping[bytes, bytes | None]) -> "Buffer":
        """With these changes as the most recent ones."""
        entries = self.entries.copy()
        size_bytes = self.size_bytes
        # A few keys are put into their places; many are sorted when somebody asks.
        ordered = self.ordered[:] if len(changes) <= _FEW else None
        for key, value in changes.items():
            check_entry(key, value)
            if key in entries:
                # Taken out first: a dict keeps the place of a key that is only assigned to.
                size_bytes -= entry_bytes(key, entries.pop(key))
            elif ordered is not None:
                insort(ordered, key)
            entries[key] = value
            size_bytes += entry_bytes(key, value)
        return Buffer(entries, size_bytes, ordered)

    def without(self, keys: Collection[bytes]) -> "Buffer":
        """Without these keys, which were spilled."""
        entries = self.entries.copy()
        spilled_bytes = _size_bytes([(key, entries.pop(key)) for key in keys])
        ordered = [key for key in self.ordered if key in entries]
        return Buffer(entries, self.size_bytes - spilled_bytes, ordered)

    def most_recent(self, size_bytes: int) -> set[bytes]:
        """The keys of the latest changes that together take up no more than this."""
        recent: set[bytes] = set()
        for key, value in reversed(self.entries.items()):
            # `entry_bytes`, spelled out: this loop runs in every commit that spills.
            size_bytes -= len(key) + _ENTRY_BYTES + (len(value) if value else 0)
            if size_bytes < 0:
                break
            recent.add(key)
        return recent

    @property
    def weight_bytes(self) -> int:
        """Memory held."""
        return 200 + self.size_bytes + 100 * len(self.entries)

    def encode(self) -> bytes:
        """Stored form."""
        tombstones = b""
        values = list(self.entries.values())
        if None in values:
            marks = "".join(["1" if value is None else "0" for value in values])
            tombstones = int(marks, 2).to_bytes((len(marks) + 7) // 8, "big")
        live = ValueColumn.of([value for value in values if value is not None])
        header = _HEADER.pack(len(values), len(tombstones))
        return header + tombstones + pack(b"\0".join(self.entries)) + live.encode()

    @classmethod
    def decode(cls, reader: Reader) -> "Buffer":
        """From the stored form at the reader."""
        count, tombstone_bytes = reader.unpack(_HEADER)
        tombstones = reader.take(tombstone_bytes)
        body = unpack(reader)
        keys = body.split(b"\0") if count else []
        live = ValueColumn.decode(reader)
        if len(keys) != count or (body and not count):
            raise CorruptObject("A buffer holds another number of keys than it says", expected=count)
        marks = f"{int.from_bytes(tombstones, 'big'):0{count}b}" if tombstones else ""
        if (tombstones and len(marks) != count) or live.count != count - marks.count("1"):
            raise CorruptObject("A buffer has not one value per key", keys=count, values=live.count)
        values: Iterable[bytes | None] = live.to_list()
        if tombstones:
            given = iter(values)
            values = [None if mark == "1" else next(given) for mark in marks]
        entries = dict(zip(keys, values, strict=True))
        if len(entries) != count:
            raise CorruptObject("A buffer holds a key twice", expected=count, found=len(entries))
        return cls(entries, sum(map(len, keys)) + len(live.body) + _ENTRY_BYTES * count)


def entry_bytes(key: bytes, value: bytes | None) -> int:
    """What one change counts towards the buffer's limit."""
    return len(key) + len(value or b"") + _ENTRY_BYTES


def _size_bytes(entries: Iterable[tuple[bytes, bytes | None]]) -> int:
    return sum(entry_bytes(key, value) for key, value in entries)


def check_entry(key: bytes, value: bytes | None) -> None:
    """Refuse what no node can hold."""
    if b"\0" in key:
        raise BadInput(
            "An index key holds a NUL byte", field="key", fix="Make keys with `persistence.index.keys`."
        )
    if len(key) > MAX_KEY_BYTES or (value is not None and len(value) > MAX_VALUE_BYTES):
        raise TooLarge(
            "An index entry is too large",
            field="key" if len(key) > MAX_KEY_BYTES else "value",
            fix="Use a shorter name.",
            key_bytes=len(key),
            value_bytes=len(value or b""),
        )


EMPTY_BUFFER: Final = Buffer({})
