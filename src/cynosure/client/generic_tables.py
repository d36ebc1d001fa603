"""The generic tables of one catalog, as the command line uses them.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from typing import Final

from msgspec import Struct

from cynosure.client.api import ApiClient, segment
from cynosure.client.catalog import Identifier, Namespace
from cynosure.client.changes import Keyed

_BASE: Final = "/api/catalog/polaris/v1"
_BETWEEN: Final = "\x1f"
_PAGE: Final = 1000


class GenericTable(Struct, frozen=True, rename="kebab", kw_only=True):
    """A table of another format than Iceberg."""

    name: str
    format: str
    base_location: str | None = None
    doc: str | None = None
    properties: dict[str, str] = {}


class _Loaded(Struct):
    table: GenericTable


class _Page(Struct, rename="kebab"):
    identifiers: list[Identifier] = []
    next_page_token: str | None = None


class GenericTableApi(Keyed):
    """Generic tables of one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._base = f"{_BASE}/{segment(catalog)}/namespaces"

    async def create(self, namespace: Namespace, table: GenericTable) -> GenericTable:
        """Create a generic table."""
        return (await self._change("POST", self._all(namespace), body=table)).decode(_Loaded).table

    async def list_all(self, namespace: Namespace) -> list[Identifier]:
        """The generic tables of a namespace."""
        found: list[Identifier] = []
        token: str | None = ""
        while token is not None:
            query = {"pageSize": str(_PAGE), "pageToken": token}
            page = (await self._api.request("GET", self._all(namespace), query=query)).decode(_Page)
            found += page.identifiers
            token = page.next_page_token or None
        return found

    async def load(self, namespace: Namespace, name: str) -> GenericTable:
        """One generic table."""
        return (await self._api.request("GET", self._of(namespace, name))).decode(_Loaded).table

    async def drop(self, namespace: Namespace, name: str) -> None:
        """Drop a generic table; its files stay."""
        await self._change("DELETE", self._of(namespace, name))

    def _all(self, namespace: Namespace) -> str:
        return f"{self._base}/{segment(_BETWEEN.join(namespace))}/generic-tables"

    def _of(self, namespace: Namespace, name: str) -> str:
        return f"{self._all(namespace)}/{segment(name)}"
