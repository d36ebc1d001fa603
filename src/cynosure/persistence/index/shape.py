"""When a node is too full or too empty, and how it is cut or joined.

A maintainer must not break: a cut leaves at least two children in every inner node, so a tree that
grows always grows narrower towards its root, however long its keys are.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import ceil

from cynosure.persistence.index.limits import IndexLimits
from cynosure.persistence.index.node import Inner, Leaf, Node, separator_between

_SPLIT_FILL = 3 / 4
_APPEND_FILL = 7 / 8
_TINY_FILL = 1 / 3
_MERGED_FILL = 3 / 4
_CHILD_BYTES = 9


def fill(node: Node, limits: IndexLimits) -> float:
    """How full a node is; above 1 it must be cut."""
    if isinstance(node, Leaf):
        return max(node.count / limits.leaf_entries, node.size_bytes / limits.leaf_bytes)
    return max(node.count / limits.inner_entries, node.size_bytes / limits.inner_bytes)


def has_same_shape(before: Node, after: Node) -> bool:
    """Whether only values or ids were replaced, so that the node needs neither a cut nor a neighbour."""
    if isinstance(before, Leaf) and isinstance(after, Leaf):
        widths = before.values.ends is after.values.ends and before.values.width == after.values.width
        return before.keys is after.keys and widths
    return isinstance(before, Inner) and isinstance(after, Inner) and before.separators is after.separators


def is_overfull(node: Node, limits: IndexLimits) -> bool:
    """Whether `split` would cut this node."""
    least = 1 if isinstance(node, Leaf) else 3
    return node.count > least and fill(node, limits) > 1


def is_tiny(node: Node, limits: IndexLimits) -> bool:
    """Whether a node that lost entries should look for a neighbour to join."""
    return fill(node, limits) < _TINY_FILL


def may_join(left: Node, right: Node, limits: IndexLimits) -> bool:
    """Whether two neighbours fit into one node, with room left so that it is not cut again at once."""
    return fill(left, limits) + fill(right, limits) <= _MERGED_FILL


def fits_root(node: Node, limits: IndexLimits, *, share: float = 1.0) -> bool:
    """Whether a node may travel in the commit object."""
    is_minimal = isinstance(node, Inner) and node.count <= 2
    return is_minimal or node.size_bytes <= limits.root_bytes * share


def joined(left: Node, separator: bytes, right: Node) -> Node:
    """One node with the content of two neighbours."""
    if isinstance(left, Inner) and isinstance(right, Inner):
        separators = [*left.separators, separator, *right.separators]
        return Inner.of(left.level, separators, [*left.children, *right.children])
    if isinstance(left, Leaf) and isinstance(right, Leaf):
        return Leaf.of([*left.items(), *right.items()])
    raise AssertionError("neighbours have the same level")


def split(node: Node, limits: IndexLimits, *, is_append: bool = False) -> list[tuple[bytes, Node]]:
    """The nodes to store instead of this one, each with the separator before it (the first has none).

    Halves are even unless the change was an append: keys that only grow (ids, dates) would otherwise
    leave a trail of half-empty nodes.
    """
    if not is_overfull(node, limits):
        return [(b"", node)]
    if isinstance(node, Leaf):
        items = list(node.items())
        prefix_bytes = len(node.keys.prefix)
        least_share = 1 / limits.leaf_entries
        shares = [
            max(least_share, (len(key) - prefix_bytes + len(value) + 1) / limits.leaf_bytes)
            for key, value in items
        ]
        cuts = _cuts(shares, is_append=is_append, least=1)
        smallest = min(high - low for low, high in pairwise([*cuts, len(items)]))
        slack = min(cut_slack(limits), smallest // 4)
        keys = [key for key, _ in items]
        cuts = [0, *(best_cut(keys, cut, slack) for cut in cuts[1:])]
        return [
            (separator_between(keys[low - 1], keys[low]) if low else b"", Leaf.of(items[low:high]))
            for low, high in pairwise([*cuts, len(items)])
        ]
    least_share = 1 / limits.inner_entries
    shares = [
        max(least_share, (len(separator) + _CHILD_BYTES) / limits.inner_bytes)
        for separator in (b"", *node.separators)
    ]
    return [
        (
            node.separators[low - 1] if low else b"",
            Inner.of(node.level, node.separators[low : high - 1], node.children[low:high]),
        )
        for low, high in pairwise([*_cuts(shares, is_append=is_append, least=2), node.count])
    ]


def cut_slack(limits: IndexLimits) -> int:
    """How far from its ideal place a cut between two leaves may be, in entries."""
    return limits.leaf_entries // 20


def best_cut(keys: Sequence[bytes], at: int, slack: int) -> int:
    """The place near `at` with the shortest separator.

    Separators are in every row above the leaves and in every commit; and the shortest ones lie between
    namespaces, so the tables of one tend to stay in one leaf.
    """
    nearby = range(max(1, at - slack), min(len(keys), at + slack + 1))
    return min(nearby, key=lambda cut: (len(separator_between(keys[cut - 1], keys[cut])), abs(cut - at)))


def _cuts(shares: list[float], *, is_append: bool, least: int) -> list[int]:
    """Where the pieces begin, by how much of a full node each entry takes."""
    total = sum(shares)
    target = _APPEND_FILL if is_append else total / ceil(total / _SPLIT_FILL)
    cuts = [0]
    for at, (share, filled) in enumerate(zip(shares, accumulate(shares), strict=True)):
        has_room = at - cuts[-1] >= least and len(shares) - at >= least
        if has_room and filled - share / 2 > target * len(cuts):
            cuts.append(at)
    return cuts
