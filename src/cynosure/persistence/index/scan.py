"""Ordered reads: the tree's leaves in order with the buffer laid over them.

A maintainer must not break: every buffered key of the range comes out exactly once, also in ranges
where the tree has no entry at all.
"""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from cynosure.persistence.index.buffer import Buffer
from cynosure.persistence.index.keys import end_of_prefix
from cynosure.persistence.index.node import Inner, Leaf, Node, NodeLoader, child_of, load_all
from cynosure.persistence.spi import ObjId

_MOST_AHEAD = 64

Entry = tuple[bytes, bytes]


def bounds(prefix: bytes, start: bytes, end: bytes | None) -> tuple[bytes, bytes | None]:
    """The one range, `low` inclusive to `high` exclusive, that a prefix, a start and an end leave."""
    prefix_end = end_of_prefix(prefix)
    high = end if prefix_end is None else prefix_end if end is None else min(end, prefix_end)
    return max(start, prefix), high


async def chunks(
    root: Node, buffer: Buffer, loader: NodeLoader, *, low: bytes, high: bytes | None, ahead: int
) -> AsyncGenerator[list[Entry], None]:
    """All entries from `low` to `high`, a leaf's worth at a time; a chunk may be empty."""
    if high is not None and low >= high:
        return
    at = bisect_left(buffer.ordered, low)
    async with aclosing(_leaves(root, loader, low, high, ahead)) as leaves:
        async for leaf, upper in leaves:
            bound = high if upper is None or (high is not None and high < upper) else upper
            until = len(buffer.ordered) if bound is None else bisect_left(buffer.ordered, bound, at)
            yield _overlaid(_within(leaf, low, high), buffer, at, until)
            at = until


def scan_leaf(root: Leaf, buffer: Buffer, *, low: bytes, high: bytes | None) -> list[Entry]:
    """`chunks` of a tree that is one leaf: nothing has to be awaited.

    Every commit asks an index that is mostly empty (two generators were among its larger costs).
    """
    if high is not None and low >= high:
        return []
    ordered = buffer.ordered
    at = bisect_left(ordered, low)
    until = len(ordered) if high is None else bisect_left(ordered, high, at)
    return _overlaid(_within(root, low, high), buffer, at, until)


def _within(leaf: Leaf, low: bytes, high: bytes | None) -> list[Entry]:
    keys = leaf.keys.to_list()
    if not keys:
        return []
    first = bisect_left(keys, low)
    last = len(keys) if high is None else bisect_left(keys, high)
    return list(zip(keys[first:last], leaf.values.to_list()[first:last], strict=True))


def _overlaid(entries: list[Entry], buffer: Buffer, at: int, until: int) -> list[Entry]:
    """Entries with what is buffered between two positions laid over them."""
    if at == until:
        return entries
    merged: dict[bytes, bytes | None] = dict(entries)
    merged.update((key, buffer.entries[key]) for key in buffer.ordered[at:until])
    return sorted((key, value) for key, value in merged.items() if value is not None)


async def _leaves(
    root: Node, loader: NodeLoader, low: bytes, high: bytes | None, ahead: int
) -> AsyncGenerator[tuple[Leaf, bytes | None], None]:
    """Leaves whose range meets `low` to `high`, each with the upper end of its range.

    Reads ahead twice as far each time it had to wait for leaves, so that a long scan is a few large requests
    and a short one does not fetch what nobody asked for.
    """
    ahead = max(1, min(ahead, _MOST_AHEAD))
    fetched: dict[ObjId, Node] = {}
    stack: list[tuple[Inner, ObjId, bytes | None]] = []
    node: Node = root
    upper: bytes | None = None
    while True:
        if isinstance(node, Leaf):
            yield node, upper
        else:
            separators = node.separators
            first = bisect_right(separators, low)
            last = len(separators) if high is None else bisect_left(separators, high)
            for at in range(last, first - 1, -1):
                bound = separators[at] if at < len(separators) else upper
                stack.append((node, node.children[at], bound))
        if not stack:
            return
        parent, id, upper = stack.pop()
        found = fetched.pop(id, None) or loader.get(id)
        if found is None:
            wanted = [id, *_next_ids(stack, parent, ahead - 1)]
            fetched.update(zip(wanted, await load_all(loader, wanted), strict=True))
            found = fetched.pop(id)
            if parent.level == 1:
                ahead = min(2 * ahead, _MOST_AHEAD)
        node = child_of(parent, found)


def _next_ids(stack: Sequence[tuple[Inner, ObjId, bytes | None]], parent: Inner, count: int) -> list[ObjId]:
    """The siblings that come next under the same parent."""
    upcoming = reversed(stack[max(0, len(stack) - count) :]) if count > 0 else ()
    return [id for owner, id, _ in upcoming if owner is parent]
