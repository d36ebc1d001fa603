"""Ordered keys to values: a copy-on-write tree with its root and recent changes in the commit object.

Start with `tree.py` (the `Index` value: find, apply, encode); then `buffer.py` (recent changes),
`rewrite.py` (copy on write), `node.py` and `columns.py` (stored form), `shape.py` (split and join).
`scan.py`, `diff.py`, `build.py` and `check.py` use them; `keys.py` makes keys out of names and ids.
Why it is so: docs/adr/0002-index-tree.md.
"""

from cynosure.persistence.index.build import BulkLoad
from cynosure.persistence.index.check import Shape, check
from cynosure.persistence.index.diff import Difference, diff
from cynosure.persistence.index.keys import (
    after,
    below,
    decode_id_key,
    decode_key,
    encode_id_key,
    encode_key,
    prefix_of,
)
from cynosure.persistence.index.limits import IndexLimits
from cynosure.persistence.index.node import Inner, Leaf, Node, NodeLoader, decode_node
from cynosure.persistence.index.tree import Applied, Index, IndexStats, Links, links

__all__ = [
    "Applied",
    "BulkLoad",
    "Difference",
    "Index",
    "IndexLimits",
    "IndexStats",
    "Inner",
    "Leaf",
    "Links",
    "Node",
    "NodeLoader",
    "Shape",
    "after",
    "below",
    "check",
    "decode_id_key",
    "decode_key",
    "decode_node",
    "diff",
    "encode_id_key",
    "encode_key",
    "links",
    "prefix_of",
]
