"""The index: an immutable ordered map of bytes to bytes, embedded in a commit object.

What is embedded is the root node and a buffer of recent changes; everything below the root is
immutable rows. A maintainer must not break: the buffer wins over the tree, and `apply` leaves the
index it is called on untouched, because other commits and readers hold it.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from cynosure.common.errors import BadInput, CorruptObject, NewerFormat
from cynosure.persistence.index.buffer import EMPTY_BUFFER, Buffer, entry_bytes
from cynosure.persistence.index.columns import Reader
from cynosure.persistence.index.limits import IndexLimits
from cynosure.persistence.index.node import (
    EMPTY_LEAF,
    Inner,
    Leaf,
    Node,
    NodeLoader,
    child_of,
    load_all,
    read_node,
)
from cynosure.persistence.index.rewrite import Rewrite
from cynosure.persistence.index.scan import Entry, bounds, chunks, scan_leaf
from cynosure.persistence.spi import ObjId

FORMAT: Final = 1
_HEADER = struct.Struct(">BI")
_BULK_FACTOR = 2
_ENTRIES_PER_LEAF = 64


class IndexStats(NamedTuple):
    """What can be said of an index without loading anything."""

    height: int
    """Node rows below the embedded root on the way to a value."""
    root_entries: int
    buffer_entries: int
    buffer_bytes: int
    tombstones: int
    embedded_bytes: int


class Links(NamedTuple):
    """Everything a node or an embedded index points to."""

    children: Sequence[ObjId]
    values: Sequence[bytes]


class Applied(Struct, frozen=True):
    """A changed index and the rows that must be written no later than it."""

    index: "Index"
    nodes: list[tuple[ObjId, Node]]


class Index:
    """Root and buffer. A value: equal bytes mean equal content, whatever limits it was made under."""

    EMPTY: ClassVar["Index"]
    __slots__ = ("_encoded", "buffer", "root")

    def __init__(self, root: Node, buffer: Buffer, encoded: bytes | None = None) -> None:
        self.root: Final = root
        self.buffer: Final = buffer
        self._encoded = encoded

    # --- reading -------------------------------------------------------------------------------

    async def find(self, loader: NodeLoader, key: bytes) -> bytes | None:
        """The value of `key`, or `None`. Suspends only when a node is not in memory."""
        entries = self.buffer.entries
        if key in entries:
            return entries[key]
        node = self.root
        while isinstance(node, Inner):
            id = node.children[bisect_right(node.separators, key)]
            child = loader.get(id)
            if child is None:
                child = await loader.load(id)
            if child.level != node.level - 1:
                child_of(node, child)
            node = child
        return node.find(key)

    async def find_many(self, loader: NodeLoader, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of `keys`, in their order; missing nodes of one level come in one request."""
        entries = self.buffer.entries
        found: dict[bytes, bytes | None] = {key: entries[key] for key in keys if key in entries}
        pending: list[tuple[Node, list[bytes]]] = [(self.root, [key for key in keys if key not in entries])]
        while pending:
            below: dict[ObjId, tuple[Inner, list[bytes]]] = {}
            for node, wanted in pending:
                if isinstance(node, Leaf):
                    found.update((key, node.find(key)) for key in wanted)
                    continue
                for key in wanted:
                    below.setdefault(node.child_for(key), (node, []))[1].append(key)
            nodes = await load_all(loader, list(below))
            pending = [
                (child_of(parent, node), wanted)
                for node, (parent, wanted) in zip(nodes, below.values(), strict=True)
            ]
        return [found[key] for key in keys]

    async def scan(
        self,
        loader: NodeLoader,
        *,
        prefix: bytes = b"",
        start: bytes = b"",
        end: bytes | None = None,
        limit: int,
    ) -> list[Entry]:
        """Up to `limit` entries in key order, from `start` (inclusive) to `end` (exclusive), below `prefix`.

        To go on after a page, start at `keys.after(last_key)`.
        """
        if limit < 1:
            raise BadInput(
                "A page holds at least one entry", field="limit", fix="Ask for 1 or more.", limit=limit
            )
        low, high = bounds(prefix, start, end)
        if isinstance(self.root, Leaf):
            return scan_leaf(self.root, self.buffer, low=low, high=high)[:limit]
        entries: list[Entry] = []
        ahead = limit // _ENTRIES_PER_LEAF
        found = chunks(self.root, self.buffer, loader, low=low, high=high, ahead=ahead)
        async with aclosing(found):
            async for chunk in found:
                entries += chunk
                if len(entries) >= limit:
                    break
        return entries[:limit]

    def chunks(
        self, loader: NodeLoader, *, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None
    ) -> AsyncGenerator[list[Entry], None]:
        """All entries of a range, a leaf's worth at a time. Close it (`aclosing`) when you leave early."""
        low, high = bounds(prefix, start, end)
        return chunks(self.root, self.buffer, loader, low=low, high=high, ahead=1)

    # --- changing ------------------------------------------------------------------------------

    async def apply(
        self,
        loader: NodeLoader,
        changes: Mapping[bytes, bytes | None],
        *,
        new_id: Callable[[], ObjId],
        limits: IndexLimits,
    ) -> Applied:
        """An index with these changes; a `None` value removes the key.

        While the buffer stays within its limit nothing is written. Above it, the leaf that the least
        recently changed entry belongs to takes all buffered entries of its range: rewriting it costs
        the same for one as for all.
        """
        if not changes:
            return Applied(self, [])
        buffer = self.buffer.apply(changes)
        if buffer.size_bytes <= limits.buffer_bytes:
            return Applied(Index(self.root, buffer), [])
        cold = await self._coldest(loader, buffer, limits)
        rewrite = Rewrite(cold, loader=loader, new_id=new_id, limits=limits)
        root = await rewrite.run(self.root)
        return Applied(Index(root, buffer.without(cold)), list(rewrite.nodes.items()))

    async def _coldest(
        self, loader: NodeLoader, buffer: Buffer, limits: IndexLimits
    ) -> dict[bytes, bytes | None]:
        """What to spill: whole leaf ranges, that of the least recent change first.

        The most recent changes, up to half the limit, stay in any case: they are the likeliest to
        change again.
        """
        ordered, entries = buffer.ordered, buffer.entries
        recent = buffer.most_recent(limits.buffer_bytes // 2)
        is_bulk = buffer.size_bytes > _BULK_FACTOR * limits.buffer_bytes
        excess_bytes = buffer.size_bytes - limits.buffer_bytes
        cold: dict[bytes, bytes | None] = {}
        leaves = 0
        for oldest in entries:
            if excess_bytes <= 0 or (leaves >= limits.spill_leaves and not is_bulk):
                break
            if oldest in cold:
                continue
            low, high = await self._leaf_range(loader, oldest)
            end = len(ordered) if high is None else bisect_left(ordered, high)
            for key in ordered[bisect_left(ordered, low) : end]:
                if key not in recent:
                    value = cold[key] = entries[key]
                    excess_bytes -= entry_bytes(key, value)
            leaves += 1
        return cold

    async def _leaf_range(self, loader: NodeLoader, key: bytes) -> tuple[bytes, bytes | None]:
        """The range of keys that share a leaf with `key`. The leaf itself is not needed."""
        low, high = b"", None
        node = self.root
        while isinstance(node, Inner):
            at = bisect_right(node.separators, key)
            low = node.separators[at - 1] if at else low
            high = node.separators[at] if at < len(node.separators) else high
            if node.level == 1:
                break
            id = node.children[at]
            node = child_of(node, loader.get(id) or await loader.load(id))
        return low, high

    # --- stored form ---------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The embedded form. Made once: an index that a commit does not touch costs it nothing."""
        if self._encoded is None:
            root = self.root.encode()
            self._encoded = _HEADER.pack(FORMAT, len(root)) + root + self.buffer.encode()
        return self._encoded

    @classmethod
    def decode(cls, data: bytes) -> "Index":
        """From the embedded form. Damage is `CorruptObject`, a later layout `NewerFormat`."""
        reader = Reader(data)
        format_version, root_bytes = reader.unpack(_HEADER)
        if format_version > FORMAT:
            raise NewerFormat(
                "An index was written by a newer version",
                fix="Upgrade this server to the version that wrote it.",
                found=format_version,
                known=FORMAT,
            )
        start = reader.at
        root = read_node(reader, data)
        if format_version < 1 or reader.at - start != root_bytes:
            raise CorruptObject("An index has an impossible header", format=format_version)
        buffer = Buffer.decode(reader)
        reader.finish()
        return cls(root, buffer, data)

    @property
    def weight_bytes(self) -> int:
        """Memory held, for a cache that is limited in bytes."""
        return 64 + self.root.weight_bytes + self.buffer.weight_bytes + len(self._encoded or b"")

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly no key. A buffer of tombstones over a tree does not count as empty."""
        return not self.buffer.entries and self.root.count == 0

    def stats(self) -> IndexStats:
        """Sizes, without loading anything."""
        values = self.buffer.entries.values()
        return IndexStats(
            height=self.root.level,
            root_entries=self.root.count,
            buffer_entries=len(values),
            buffer_bytes=self.buffer.size_bytes,
            tombstones=sum(value is None for value in values),
            embedded_bytes=len(self.encode()),
        )


Index.EMPTY = Index(EMPTY_LEAF, EMPTY_BUFFER)


def links(owner: Index | Node) -> Links:
    """Child rows and values, for whoever must follow everything that is reachable.

    Values that the buffer hides are included: they are reachable until their leaf is rewritten.
    """
    if isinstance(owner, Index):
        children, values = links(owner.root)
        buffered = [value for value in owner.buffer.entries.values() if value is not None]
        return Links(children, [*values, *buffered])
    if isinstance(owner, Leaf):
        return Links((), owner.values.to_list())
    return Links(owner.children, ())
