"""What changed between two indexes, in key order, reading only what they do not share.

A maintainer must not break: a node id stands for its content for ever, so a subtree that both
indexes reach by the same id is equal and is never read.
"""

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from cynosure.common.errors import CorruptObject
from cynosure.persistence.index.node import Inner, Leaf, Node, NodeLoader, load_all
from cynosure.persistence.index.tree import Index
from cynosure.persistence.spi import ObjId

_LEAVES_AT_ONCE = 32


class Difference(NamedTuple):
    """One key whose value differs; `None` where the key does not exist."""

    key: bytes
    old: bytes | None
    new: bytes | None


async def diff(loader: NodeLoader, old: Index, new: Index) -> AsyncGenerator[Difference, None]:
    """Every key whose value differs, in key order. Work is proportional to what the two do not share."""
    buffered = await _buffered(loader, old, new)
    ordered = sorted(buffered)
    at = 0
    old_leaves, new_leaves = await _unshared(loader, old.root, new.root)
    left, right = _Side(loader, old_leaves), _Side(loader, new_leaves)
    while await left.fill() | await right.fill():
        bound = min(side.last for side in (left, right) if side.entries)
        before, after = left.take(bound), right.take(bound)
        until = bisect_right(ordered, bound, at)
        differing = {key: buffered[key] for key in ordered[at:until]}
        for key in before.keys() | after.keys():
            if key not in buffered:
                differing[key] = (before.get(key), after.get(key))
        at = until
        for key in sorted(differing):
            if differing[key][0] != differing[key][1]:
                yield Difference(key, *differing[key])
    for key in ordered[at:]:
        if buffered[key][0] != buffered[key][1]:
            yield Difference(key, *buffered[key])


async def _buffered(
    loader: NodeLoader, old: Index, new: Index
) -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """Both values of every key that either buffer holds: there the trees alone do not decide."""
    before, after = old.buffer.entries, new.buffer.entries
    # Equal on both sides: nothing changed, whatever the trees below them say.
    same = {key: (value, value) for key, value in before.items() if key in after and after[key] == value}
    # Sorted, so that the order of requests does not depend on the hashes of this process.
    keys = sorted(key for key in before.keys() | after.keys() if key not in same)
    old_values, new_values = await old.find_many(loader, keys), await new.find_many(loader, keys)
    return same | dict(zip(keys, zip(old_values, new_values, strict=True), strict=True))


async def _unshared(
    loader: NodeLoader, old: Node, new: Node
) -> tuple[list[ObjId] | Leaf, list[ObjId] | Leaf]:
    """The leaves that only one side has. An embedded root leaf has no id and comes as itself."""
    sides = [_Level(old.level, [old]), _Level(new.level, [new])]
    while (top := max(side.level for side in sides)) > 0:
        for side in sides:
            if side.level == top:
                side.descend()
        if sides[0].level == sides[1].level:
            shared = set(sides[0].ids) & set(sides[1].ids)
            for side in sides:
                side.ids = [id for id in side.ids if id not in shared]
        for side in sides:
            if side.level == top - 1 and side.level > 0 and not side.nodes:
                side.nodes = await load_all(loader, side.ids)
    return sides[0].leaves, sides[1].leaves


class _Level:
    """The nodes of one index at one level, as far as the other index may not have them."""

    def __init__(self, level: int, nodes: list[Node]) -> None:
        self.level = level
        self.nodes = nodes
        self.ids: list[ObjId] = []

    def descend(self) -> None:
        ids: list[ObjId] = []
        for node in self.nodes:
            if not isinstance(node, Inner) or node.level != self.level:
                raise CorruptObject("An index node has a child of another level", expected=self.level)
            ids += node.children
        self.level, self.nodes, self.ids = self.level - 1, [], ids

    @property
    def leaves(self) -> list[ObjId] | Leaf:
        first = self.nodes[0] if self.nodes else None
        return first if isinstance(first, Leaf) else self.ids


class _Side:
    """Entries of one side's leaves, as a queue in key order."""

    def __init__(self, loader: NodeLoader, leaves: Sequence[ObjId] | Leaf) -> None:
        self._loader = loader
        self.entries: list[tuple[bytes, bytes]] = list(leaves.items()) if isinstance(leaves, Leaf) else []
        self._pending: list[ObjId] = [] if isinstance(leaves, Leaf) else list(reversed(leaves))

    async def fill(self) -> bool:
        """Read on when nothing is left; false at the end."""
        while not self.entries and self._pending:
            count = min(_LEAVES_AT_ONCE, len(self._pending))
            ids = [self._pending.pop() for _ in range(count)]
            for leaf in await load_all(self._loader, ids):
                if not isinstance(leaf, Leaf):
                    raise CorruptObject("An index node has a child of another level", expected=0)
                self.entries += leaf.items()
        return bool(self.entries)

    @property
    def last(self) -> bytes:
        return self.entries[-1][0]

    def take(self, bound: bytes) -> dict[bytes, bytes]:
        """Remove and give the entries up to `bound`."""
        count = bisect_right(self.entries, bound, key=lambda entry: entry[0])
        taken, self.entries = self.entries[:count], self.entries[count:]
        return dict(taken)
