"""The dataset of polaris-tools: a tree of namespaces with tables and views at its leaves.

A tree of the given width and depth has (N^D - 1) / (N - 1) namespaces and N^(D-1) leaves; every leaf has so
many tables and views. Names and shapes are those of polaris-tools, so that figures compare.

A maintainer must not break: the same parameters make the same dataset as there.
"""

from collections.abc import Iterator

from msgspec import Struct

from benchmarks.http_client import Answer, Catalog

Namespace = tuple[str, ...]


class Leaf(Struct, frozen=True):
    """A table or view of the dataset."""

    namespace: Namespace
    name: str


class Tree(Struct, frozen=True):
    """The dataset below one root namespace."""

    root: str = "NS_0"
    width: int = 2
    depth: int = 4
    tables: int = 5
    """Per leaf."""
    views: int = 3
    columns: int = 10
    properties: int = 10

    def namespaces(self) -> Iterator[Namespace]:
        """All of them, parents first."""
        level: list[Namespace] = [(self.root,)]
        number = 0
        for _ in range(self.depth):
            yield from level
            below: list[Namespace] = []
            for parent in level:
                for _ in range(self.width):
                    number += 1
                    below.append((*parent, f"NS_{number}"))
            level = below

    def all_tables(self) -> list[Leaf]:
        """All tables, leaf by leaf."""
        return self._at_leaves("T", self.tables)

    def all_views(self) -> list[Leaf]:
        """All views, leaf by leaf."""
        return self._at_leaves("V", self.views)

    def _at_leaves(self, letter: str, each: int) -> list[Leaf]:
        leaves = [levels for levels in self.namespaces() if len(levels) == self.depth]
        return [
            Leaf(levels, f"{letter}_{at * each + number}")
            for at, levels in enumerate(leaves)
            for number in range(each)
        ]


class Requests:
    """The requests of the workloads, on one connection."""

    def __init__(self, catalog: Catalog, tree: Tree) -> None:
        self._catalog = catalog
        self._tree = tree
        self._connection = catalog.connect()
        self._properties = {f"InitialAttribute_{at}": str(at) for at in range(tree.properties)}
        fields = [
            {"id": at, "name": "id" if at == 0 else f"column{at}", "required": at == 0, "type": _type(at)}
            for at in range(tree.columns)
        ]
        self._schema = {"type": "struct", "schema-id": 0, "fields": fields}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    async def create_namespace(self, namespace: Namespace) -> Answer:
        """Create one namespace."""
        body = {"namespace": namespace, "properties": self._properties}
        return await self._connection.request("POST", f"{self._catalog.root}/namespaces", body)

    async def create_table(self, table: Leaf) -> Answer:
        """Create one table."""
        body = {
            "name": table.name,
            "schema": self._schema,
            "stage-create": False,
            "properties": self._properties,
        }
        return await self._connection.request("POST", f"{self._namespace(table)}/tables", body)

    async def create_view(self, view: Leaf) -> Answer:
        """Create one view."""
        body = {
            "name": view.name,
            "schema": self._schema,
            "view-version": _view_version(1, view),
            "properties": self._properties,
        }
        return await self._connection.request("POST", f"{self._namespace(view)}/views", body)

    async def read_namespace(self, namespace: Namespace) -> list[Answer]:
        """What a client asks of a namespace: itself, its tables, its views, whether it is there."""
        path = self._catalog.namespace(*namespace)
        get = self._connection.request
        return [await get(*each) for each in (("GET", path), ("HEAD", path))]

    async def list_leaf(self, namespace: Namespace) -> list[Answer]:
        """The tables and views of a namespace."""
        path = self._catalog.namespace(*namespace)
        return [await self._connection.request("GET", f"{path}/{kind}") for kind in ("tables", "views")]

    async def read_table(self, table: Leaf) -> list[Answer]:
        """Whether it is there, and what it is."""
        path = f"{self._namespace(table)}/tables/{table.name}"
        return [await self._connection.request(method, path) for method in ("HEAD", "GET")]

    async def load_table(self, table: Leaf) -> Answer:
        """One table."""
        return await self._connection.request("GET", f"{self._namespace(table)}/tables/{table.name}")

    async def read_view(self, view: Leaf) -> list[Answer]:
        """Whether it is there, and what it is."""
        path = f"{self._namespace(view)}/views/{view.name}"
        return [await self._connection.request(method, path) for method in ("HEAD", "GET")]

    async def update_namespace(self, namespace: Namespace, number: int) -> Answer:
        """Add a property to a namespace."""
        body = {"updates": {f"UpdatedAttribute_{number}": str(number)}, "removals": []}
        path = f"{self._catalog.namespace(*namespace)}/properties"
        return await self._connection.request("POST", path, body)

    async def update_table(self, table: Leaf, number: int) -> Answer:
        """Commit a property to a table."""
        updates = [{"action": "set-properties", "updates": {f"NewAttribute_{number % 100}": str(number)}}]
        path = f"{self._namespace(table)}/tables/{table.name}"
        return await self._connection.request("POST", path, {"requirements": [], "updates": updates})

    async def update_view(self, view: Leaf, number: int) -> Answer:
        """Commit a property to a view."""
        updates = [{"action": "set-properties", "updates": {f"NewAttribute_{number % 100}": str(number)}}]
        path = f"{self._namespace(view)}/views/{view.name}"
        return await self._connection.request("POST", path, {"requirements": [], "updates": updates})

    def _namespace(self, leaf: Leaf) -> str:
        return self._catalog.namespace(*leaf.namespace)


def _type(at: int) -> str:
    return "int" if at == 0 else "string"


def _view_version(number: int, view: Leaf) -> dict[str, object]:
    return {
        "version-id": number,
        "timestamp-ms": 1_900_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark"},
        "representations": [{"type": "sql", "sql": f"SELECT * FROM {view.name}", "dialect": "spark"}],
        "default-namespace": view.namespace,
    }
