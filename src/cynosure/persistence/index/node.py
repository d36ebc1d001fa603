"""Nodes of the tree: immutable, one row each, except the root, which travels in the commit object.

    leaf    keys and their values
    inner   children and the separators between them:
            child i holds separators[i-1] <= key < separators[i]

A maintainer must not break: a node never changes after it was made (caches share it without
invalidation), and a leaf has level 0, an inner node exactly one more than its children.
"""

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias, cast

from cynosure.common.errors import CorruptObject, NewerFormat
from cynosure.persistence.index.columns import KeyColumn, Reader, ValueColumn, common_prefix
from cynosure.persistence.spi import ObjId

FORMAT: Final = 1
_HEADER = struct.Struct(">BB")
_ID_BYTES = 8
_MAX_ID = (1 << 63) - 1
_MAX_LEVEL = 32


class Leaf:
    """Entries of one range of keys."""

    __slots__ = ("keys", "values")
    level: Final = 0

    def __init__(self, keys: KeyColumn, values: ValueColumn) -> None:
        self.keys = keys
        self.values = values

    @classmethod
    def of(cls, items: Iterable[tuple[bytes, bytes]]) -> "Leaf":
        """From entries in key order."""
        entries = dict(items)
        return cls(KeyColumn.of(list(entries)), ValueColumn.of(list(entries.values())))

    def find(self, key: bytes) -> bytes | None:
        """The value of this key in this leaf."""
        at = self.keys.find(key)
        if at < 0:
            return None
        values = self.values
        if values.ends is None:  # spelled out, because every lookup ends here
            width = values.width
            return values.body[at * width : at * width + width]
        return values[at]

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries in key order."""
        return zip(self.keys.to_list(), self.values.to_list(), strict=True)

    def apply(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> "Leaf":
        """This leaf with changed keys, without those whose value is `None`; itself when nothing differs."""
        replaced: dict[int, bytes] = {}
        for key, value in zip(keys, values, strict=True):
            at = self.keys.find(key)
            if at < 0 and value is None:
                continue
            if at < 0 or value is None:
                return self._merge(keys, values)
            if self.values[at] != value:
                replaced[at] = value
        return Leaf(self.keys, self.values.replaced(replaced)) if replaced else self

    def _merge(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> "Leaf":
        merged: dict[bytes, bytes | None] = dict(self.items())
        merged.update(zip(keys, values, strict=True))
        return Leaf.of(sorted((key, value) for key, value in merged.items() if value is not None))

    @property
    def count(self) -> int:
        """Entries in this node."""
        return self.keys.count

    @property
    def size_bytes(self) -> int:
        """Before compression, without the common prefix of each key."""
        return self.keys.size_bytes + self.values.size_bytes

    @property
    def weight_bytes(self) -> int:
        """Memory held, for a cache that is limited in bytes."""
        return 48 + self.keys.weight_bytes + self.values.weight_bytes

    def encode(self) -> bytes:
        """Stored form."""
        return _HEADER.pack(FORMAT, 0) + self.keys.encode() + self.values.encode()


class Inner:
    """Children of one range of keys, with the separators between them."""

    __slots__ = ("_ids", "_keys", "children", "level", "separators")

    def __init__(
        self,
        level: int,
        separators: list[bytes],
        ids: "array[int]",
        keys: KeyColumn | None = None,
    ) -> None:
        self.level = level
        self.separators = separators
        self._ids = ids
        # The same array under its meaning: wrapping each id costs more than the search for it.
        self.children = cast("Sequence[ObjId]", ids)
        self._keys = keys or KeyColumn.of(separators)

    @classmethod
    def of(cls, level: int, separators: list[bytes], children: Iterable[int]) -> "Inner":
        """From child ids in key order and the separators between them."""
        return cls(level, separators, array("Q", children))

    def child_for(self, key: bytes) -> ObjId:
        """The child whose range holds this key."""
        return self.children[bisect_right(self.separators, key)]

    def replaced(self, changes: Mapping[int, ObjId]) -> "Inner":
        """A copy with other children at some positions, under the same separators."""
        ids = self._ids[:]
        for at, child in changes.items():
            ids[at] = child
        return Inner(self.level, self.separators, ids, self._keys)

    @property
    def count(self) -> int:
        """Children of this node."""
        return len(self.children)

    @property
    def size_bytes(self) -> int:
        """Before compression, without the common prefix of each separator."""
        return self._keys.size_bytes + _ID_BYTES * len(self.children)

    @property
    def weight_bytes(self) -> int:
        """Memory held, for a cache that is limited in bytes."""
        separators = sum(map(len, self.separators)) + 49 * len(self.separators)
        return 64 + self._keys.weight_bytes + 56 + separators + 80 + _ID_BYTES * len(self.children)

    def encode(self) -> bytes:
        """Stored form."""
        return _HEADER.pack(FORMAT, self.level) + self._keys.encode() + _big_endian(self._ids).tobytes()


Node: TypeAlias = Leaf | Inner

EMPTY_LEAF: Final = Leaf.of(())


class NodeLoader(Protocol):
    """Where nodes come from: a cache in front of the store."""

    def get(self, id: ObjId) -> Node | None:
        """The node if it is in memory."""
        ...

    async def load(self, id: ObjId) -> Node:
        """The node, from memory or the store. A node that does not exist raises `MissingObject`."""
        ...

    async def load_many(self, ids: Sequence[ObjId]) -> list[Node]:
        """Several nodes in the order of `ids`, in as few round trips as the store allows."""
        ...


def decode_node(data: bytes) -> Node:
    """A node from its stored form. Damage is `CorruptObject`, a later layout `NewerFormat`."""
    reader = Reader(data)
    node = read_node(reader, data)
    reader.finish()
    return node


def read_node(reader: Reader, data: bytes) -> Node:
    """The node at the reader, which reads `data`."""
    format_version, level = reader.unpack(_HEADER)
    if format_version > FORMAT:
        raise NewerFormat(
            "An index node was written by a newer version",
            fix="Upgrade this server to the version that wrote it.",
            found=format_version,
            known=FORMAT,
        )
    if format_version < 1 or level > _MAX_LEVEL:
        raise CorruptObject("An index node has an impossible header", format=format_version, level=level)
    keys = KeyColumn.decode(reader, data)
    if level == 0:
        values = ValueColumn.decode(reader)
        if values.count != keys.count:
            raise CorruptObject(
                "An index leaf has not one value per key", keys=keys.count, values=values.count
            )
        return Leaf(keys, values)
    ids = _big_endian(array("Q", reader.take(_ID_BYTES * (keys.count + 1))))
    if max(ids) > _MAX_ID:
        raise CorruptObject("An index node names an impossible child")
    return Inner(level, keys.to_list(), ids, keys)


async def load_all(loader: NodeLoader, ids: Sequence[ObjId]) -> list[Node]:
    """Nodes in the order of `ids`; those not in memory come in one request."""
    nodes = [loader.get(id) for id in ids]
    if None in nodes:
        missing = [id for id, node in zip(ids, nodes, strict=True) if node is None]
        loaded = iter(await loader.load_many(missing))
        nodes = [next(loaded) if node is None else node for node in nodes]
    return cast("list[Node]", nodes)


def child_of(parent: Inner, child: Node) -> Node:
    """`child`, when its level fits under `parent`: a wrong link must never become an endless walk."""
    if child.level != parent.level - 1:
        raise CorruptObject(
            "An index node has a child of another level", parent=parent.level, child=child.level
        )
    return child


def separator_between(low: bytes, high: bytes) -> bytes:
    """The shortest key that is above `low` and not above `high`."""
    return high[: len(common_prefix(low, high)) + 1]


def _big_endian(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "little":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
