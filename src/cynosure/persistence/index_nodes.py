"""Index nodes as stored objects: their type, and the loader that reads them through the cache.

Must not break: nodes are immutable, so the loader never asks the database for one it has.
"""

from collections.abc import Sequence

from cynosure.persistence.index import Node, decode_node
from cynosure.persistence.objects import ObjectType
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store


class _NodeCodec:
    def encode(self, value: Node) -> bytes:
        return value.encode()

    def decode(self, payload: bytes, version: int) -> Node:
        return decode_node(payload)

    def weigh(self, value: Node, payload_bytes: int) -> int:
        return value.weight_bytes


INDEX_NODE: ObjectType[Node] = ObjectType(
    name="index-node",
    codec=_NodeCodec(),
    is_compressed=False,  # The node's own codec compresses its keys.
)


class NodeCache:
    """Implements the index's `NodeLoader` on a store."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, id: ObjId) -> Node | None:
        """From memory only."""
        return self._store.get(INDEX_NODE, id)

    async def load(self, id: ObjId) -> Node:
        """From memory or the database."""
        return await self._store.load(INDEX_NODE, id)

    async def load_many(self, ids: Sequence[ObjId]) -> list[Node]:
        """From memory or the database, with as few round trips as the backend allows."""
        return await self._store.load_many(INDEX_NODE, ids)
