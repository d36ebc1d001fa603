"""Walk a whole index and verify what every other module takes for granted.

For consistency checks, tests and benchmarks. It reads every node: never on the way to an answer.
"""

from itertools import pairwise
from typing import NamedTuple

from cynosure.common.errors import CorruptObject
from cynosure.persistence.index.node import Leaf, Node, NodeLoader, child_of, load_all
from cynosure.persistence.index.tree import Index
from cynosure.persistence.spi import ObjId

_LOAD_BATCH = 64


class Shape(NamedTuple):
    """Sizes of the tree below the buffer."""

    height: int
    inner_nodes: int
    leaf_nodes: int
    entries: int
    node_ids: frozenset[ObjId]


async def check(loader: NodeLoader, index: Index) -> Shape:
    """Verify order, separators, levels and links; `CorruptObject` names the first rule that does not hold."""
    inner_nodes = leaf_nodes = entries = 0
    ids: list[ObjId] = []
    stack: list[tuple[Node, bytes, bytes | None]] = [(index.root, b"", None)]
    while stack:
        node, low, high = stack.pop()
        keys = node.keys.to_list() if isinstance(node, Leaf) else node.separators
        _check_order(keys, low, high)
        if isinstance(node, Leaf):
            if not node.count and node is not index.root:
                raise CorruptObject("An index leaf is empty")
            leaf_nodes += node is not index.root
            entries += node.count
            continue
        inner_nodes += node is not index.root
        bounds = [low, *node.separators, high]
        for start in range(0, node.count, _LOAD_BATCH):
            batch = node.children[start : start + _LOAD_BATCH]
            ids += batch
            for at, child in enumerate(await load_all(loader, batch), start):
                stack.append((child_of(node, child), bounds[at] or b"", bounds[at + 1]))
    if len(set(ids)) != len(ids):
        raise CorruptObject("An index reaches a node in two ways")
    return Shape(index.root.level, inner_nodes, leaf_nodes, entries, frozenset(ids))


def _check_order(keys: list[bytes], low: bytes, high: bytes | None) -> None:
    if any(left >= right for left, right in pairwise(keys)):
        raise CorruptObject("An index node's keys are not in order")
    if keys and (keys[0] < low or (high is not None and keys[-1] >= high)):
        raise CorruptObject("An index node holds keys of another range")
