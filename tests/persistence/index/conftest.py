"""A store of encoded nodes, as the tree sees it: what is not written can never be loaded."""

from collections.abc import Callable, Iterable, Sequence

import pytest

from cynosure.common.errors import MissingObject
from cynosure.persistence.index import Index, IndexLimits, Node, decode_node
from cynosure.persistence.spi import ObjId

TINY = IndexLimits(
    buffer_bytes=40, root_bytes=60, leaf_entries=4, leaf_bytes=90, inner_entries=4, inner_bytes=120
)


class NodeRows:
    """Rows in memory; every load decodes anew, `get` knows only what was kept on purpose."""

    def __init__(self, *, keeps_nodes: bool = False) -> None:
        self.rows: dict[ObjId, bytes] = {}
        self.loads = 0
        self.requests = 0
        self._keeps_nodes = keeps_nodes
        self._kept: dict[ObjId, Node] = {}
        self._next_id = 1000

    def new_id(self) -> ObjId:
        self._next_id += 1
        return ObjId(self._next_id)

    def write(self, nodes: Iterable[tuple[ObjId, Node]]) -> None:
        for id, node in nodes:
            assert id not in self.rows, "an id was handed out twice"
            self.rows[id] = node.encode()

    def get(self, id: ObjId) -> Node | None:
        return self._kept.get(id)

    async def load(self, id: ObjId) -> Node:
        return (await self.load_many([id]))[0]

    async def load_many(self, ids: Sequence[ObjId]) -> list[Node]:
        self.requests += 1
        self.loads += len(ids)
        nodes = []
        for id in ids:
            if id not in self.rows:
                raise MissingObject("A node is not in the store", id=id)
            nodes.append(decode_node(self.rows[id]))
        if self._keeps_nodes:
            self._kept.update(zip(ids, nodes, strict=True))
        return nodes

    async def apply(
        self, index: Index, changes: dict[bytes, bytes | None], limits: IndexLimits = TINY
    ) -> Index:
        applied = await index.apply(self, changes, new_id=self.new_id, limits=limits)
        self.write(applied.nodes)
        return applied.index

    async def items(self, index: Index) -> dict[bytes, bytes]:
        return dict(await index.scan(self, limit=10_000_000))


@pytest.fixture
def rows() -> NodeRows:
    return NodeRows()


@pytest.fixture
def make_rows() -> Callable[..., NodeRows]:
    return NodeRows
