"""A store of encoded nodes, as the tree sees it: what was not written can never be loaded."""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from cynosure.common.errors import MissingObject
from cynosure.persistence.index import Index, IndexLimits, Node, decode_node
from cynosure.persistence.spi import ObjId


class NodeRows:
    """Rows in memory. Every load decodes anew; `get` knows only what `keeps_nodes` kept."""

    def __init__(self, *, keeps_nodes: bool = False) -> None:
        self.rows: dict[ObjId, bytes] = {}
        self.loads = 0
        self.requests = 0
        self._keeps_nodes = keeps_nodes
        self._kept: dict[ObjId, Node] = {}
        self._last_id = 1000

    def new_id(self) -> ObjId:
        self._last_id += 1
        return ObjId(self._last_id)

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
        missing = [id for id in ids if id not in self.rows]
        if missing:
            raise MissingObject("A node is not in the store", ids=missing)
        nodes = [decode_node(self.rows[id]) for id in ids]
        if self._keeps_nodes:
            self._kept.update(zip(ids, nodes, strict=True))
        return nodes

    async def apply(self, index: Index, changes: Mapping[bytes, bytes | None], limits: IndexLimits) -> Index:
        applied = await index.apply(self, changes, new_id=self.new_id, limits=limits)
        self.write(applied.nodes)
        return applied.index

    async def items(self, index: Index) -> dict[bytes, bytes]:
        return dict(await index.scan(self, limit=10_000_000))


@pytest.fixture
def rows() -> NodeRows:
    return NodeRows()


@pytest.fixture(scope="session")
def make_rows() -> type[NodeRows]:
    return NodeRows


@pytest.fixture(scope="session")
def tiny() -> IndexLimits:
    """A few dozen keys already make a deep tree that splits, joins and spills all the time."""
    return IndexLimits(
        buffer_bytes=40, root_bytes=60, leaf_entries=4, leaf_bytes=90, inner_entries=4, inner_bytes=120
    )
