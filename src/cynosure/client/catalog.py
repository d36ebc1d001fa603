"""The Iceberg REST API of one catalog, as far as the command line uses it.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from cynosure.client.api import ApiClient, segment
from cynosure.client.changes import Keyed

Namespace = tuple[str, ...]

_BASE: Final = "/api/catalog/v1"
_OURS: Final = "/api/catalog/cynosure/v1"
_BETWEEN: Final = "\x1f"
_PAGE: Final = 1000
_PURGE: Final = {"purgeRequested": "true"}
_PURGE_S: Final = 600.0
"""The server says first how long it waits for a purge."""
_STATISTICS_S: Final = 100.0
"""Longer than a server lets a request take: of a large table it may read a thousand manifests."""


class Identifier(Struct, frozen=True):
    """A table or view."""

    namespace: Namespace
    name: str


class LoadedNamespace(Struct, frozen=True):
    """A namespace with its properties."""

    namespace: Namespace
    properties: dict[str, str] = {}


class _Page(Struct, rename="kebab"):
    namespaces: list[Namespace] = []
    identifiers: list[Identifier] = []
    next_page_token: str | None = None


class CatalogApi(Keyed):
    """Namespaces, tables and views of one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._base = f"{_BASE}/{segment(catalog)}/namespaces"
        self._ours = f"{_OURS}/{segment(catalog)}/namespaces"

    async def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """Those directly below `parent`; without one, the first level."""
        query = {"parent": _BETWEEN.join(parent)} if parent else {}
        return [each for page in await self._pages(self._base, query) for each in page.namespaces]

    async def walk_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        """All below `parent`, each after the one it is in."""
        found: list[Namespace] = []
        for each in await self.list_namespaces(parent):
            found += [each, *await self.walk_namespaces(each)]
        return found

    async def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> LoadedNamespace:
        """Create a namespace; the one it is in exists."""
        body = {"namespace": namespace, "properties": properties}
        return (await self._change("POST", self._base, body=body)).decode(LoadedNamespace)

    async def load_namespace(self, namespace: Namespace) -> LoadedNamespace:
        """One namespace."""
        return (await self._api.request("GET", self._of(namespace))).decode(LoadedNamespace)

    async def update_namespace(
        self, namespace: Namespace, *, updates: Mapping[str, str], removals: tuple[str, ...] = ()
    ) -> None:
        """Set and remove properties."""
        body = {"updates": updates, "removals": removals}
        await self._change("POST", f"{self._of(namespace)}/properties", body=body)

    async def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        await self._change("DELETE", self._of(namespace))

    async def list_tables(self, namespace: Namespace) -> list[Identifier]:
        """The tables of a namespace."""
        pages = await self._pages(f"{self._of(namespace)}/tables", {})
        return [each for page in pages for each in page.identifiers]

    async def list_views(self, namespace: Namespace) -> list[Identifier]:
        """The views of a namespace."""
        pages = await self._pages(f"{self._of(namespace)}/views", {})
        return [each for page in pages for each in page.identifiers]

    async def load_table(self, namespace: Namespace, name: str) -> dict[str, Any]:
        """A table's metadata and where it is, as the protocol has it."""
        return await self._load(f"{self._of(namespace)}/tables/{segment(name)}")

    async def load_statistics(
        self, namespace: Namespace, name: str, query: Mapping[str, str]
    ) -> dict[str, Any]:
        """The files of a table, counted; `query` may have snapshot-id or branch, and partitions."""
        path = f"{self._ours}/{segment(_BETWEEN.join(namespace))}/tables/{segment(name)}/statistics"
        reply = await self._api.request("GET", path, query=query, timeout_s=_STATISTICS_S)
        found: dict[str, Any] = reply.decode(dict)
        return found

    async def load_view(self, namespace: Namespace, name: str) -> dict[str, Any]:
        """A view's metadata and where it is, as the protocol has it."""
        return await self._load(f"{self._of(namespace)}/views/{segment(name)}")

    async def drop_table(self, namespace: Namespace, name: str, *, is_purging: bool = False) -> None:
        """Drop a table; its files stay, unless they are to be purged."""
        query = dict(_PURGE) if is_purging else None
        await self._change("DELETE", f"{self._of(namespace)}/tables/{segment(name)}", query=query)

    async def purge_table_once(self, namespace: Namespace, name: str) -> None:
        """Drop a table with its files; `OutcomeUnknown` when the server answers that it takes longer."""
        path = f"{self._of(namespace)}/tables/{segment(name)}"
        await self._send_once("DELETE", path, None, _PURGE, timeout_s=_PURGE_S)

    async def drop_view(self, namespace: Namespace, name: str) -> None:
        """Drop a view."""
        await self._change("DELETE", f"{self._of(namespace)}/views/{segment(name)}")

    def _of(self, namespace: Namespace) -> str:
        return f"{self._base}/{segment(_BETWEEN.join(namespace))}"

    async def _load(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self._api.request("GET", path)).decode(dict)
        return found

    async def _pages(self, path: str, query: Mapping[str, str]) -> list[_Page]:
        pages: list[_Page] = []
        asked = {**query, "pageSize": str(_PAGE), "pageToken": ""}
        while True:
            pages.append((await self._api.request("GET", path, query=asked)).decode(_Page))
            token = pages[-1].next_page_token
            if not token:
                return pages
            asked = {**asked, "pageToken": token}
