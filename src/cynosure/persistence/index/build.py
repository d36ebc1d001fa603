"""Bulk load: a tree from sorted entries, bottom up, without reading anything.

A maintainer must not break: nodes come out before any node that points to them, so that a load can
be written as it goes and an interrupted one leaves only unreachable rows.
"""

from collections.abc import Callable, Iterable

from cynosure.common.errors import BadInput
from cynosure.persistence.index.buffer import EMPTY_BUFFER, check_entry
from cynosure.persistence.index.limits import IndexLimits
from cynosure.persistence.index.node import Inner, Leaf, Node, separator_between
from cynosure.persistence.index.shape import best_cut, cut_slack, fits_root, split
from cynosure.persistence.index.tree import Applied, Index
from cynosure.persistence.spi import ObjId

_FILL = 3 / 4


class BulkLoad:
    """Builds one index. Feed it in key order, write the nodes it gives, then finish."""

    def __init__(self, *, new_id: Callable[[], ObjId], limits: IndexLimits) -> None:
        self._new_id = new_id
        self._limits = limits
        self._leaf_target = int(limits.leaf_entries * _FILL)
        self._slack = cut_slack(limits)
        self._inner_target = int(limits.inner_entries * _FILL)
        self._entries: list[tuple[bytes, bytes]] = []
        self._last: bytes | None = None
        self._closed_last = b""
        self._levels: list[list[tuple[bytes, ObjId]]] = []
        self._nodes: list[tuple[ObjId, Node]] = []

    def feed(self, items: Iterable[tuple[bytes, bytes]]) -> list[tuple[ObjId, Node]]:
        """Take more entries, all above those before; gives the nodes that are complete."""
        for key, value in items:
            check_entry(key, value)
            if self._last is not None and key <= self._last:
                raise BadInput("Bulk-loaded keys are not in ascending order", field="items", fix="Sort them.")
            self._last = key
            self._entries.append((key, value))
            if len(self._entries) > self._leaf_target + self._slack:
                keys = [key for key, _ in self._entries]
                self._close_leaf(best_cut(keys, self._leaf_target, self._slack))
        nodes, self._nodes = self._nodes, []
        return nodes

    def finish(self) -> Applied:
        """The index, and the nodes that were not given before."""
        leaf = Leaf.of(self._entries)
        if not self._levels and fits_root(leaf, self._limits):
            return Applied(Index(leaf, EMPTY_BUFFER), [])
        if self._entries:
            self._close_leaf(len(self._entries))
        level = 1
        while True:
            root = self._inner(level)
            if level == len(self._levels) and fits_root(root, self._limits):
                return Applied(Index(root, EMPTY_BUFFER), self._nodes)
            self._close_inner(level)
            level += 1

    def _close_leaf(self, count: int) -> None:
        entries, self._entries = self._entries[:count], self._entries[count:]
        first = separator_between(self._closed_last, entries[0][0]) if self._levels else b""
        self._closed_last = entries[-1][0]
        for separator, piece in split(Leaf.of(entries), self._limits):
            self._add(1, separator or first, piece)

    def _inner(self, level: int) -> Inner:
        pending = self._levels[level - 1]
        return Inner.of(level, [separator for separator, _ in pending[1:]], [id for _, id in pending])

    def _close_inner(self, level: int) -> None:
        first = self._levels[level - 1][0][0]
        inner = self._inner(level)
        self._levels[level - 1] = []
        for separator, piece in split(inner, self._limits):
            self._add(level + 1, separator or first, piece)

    def _add(self, level: int, separator: bytes, node: Node) -> None:
        if len(self._levels) < level:
            self._levels.append([])
        pending = self._levels[level - 1]
        if len(pending) >= self._inner_target:
            # Only when another child follows: a level never ends with an inner node without children.
            self._close_inner(level)
            pending = self._levels[level - 1]
        id = self._new_id()
        self._nodes.append((id, node))
        pending.append((separator, id))
