"""What was dropped in a catalog, and namespaces that are dropped with all they hold.

Must not break: lists come whole, however many pages the server cuts them into.
"""

from typing import Any, Final

from msgspec import Struct, field

from cynosure.client.api import ApiClient, segment
from cynosure.client.catalog import Namespace
from cynosure.client.changes import Keyed

_OURS: Final = "/api/catalog/cynosure/v1"
_MANAGEMENT: Final = "/api/management/v1/catalogs"
_BETWEEN: Final = "\x1f"
_PAGE: Final = 1_000


class Dropped(Struct, frozen=True, rename="kebab"):
    """Something that was dropped."""

    id: str
    kind: str
    namespace: Namespace
    entity_id: str
    dropped_ms: int
    principal: str
    name: str | None = None
    purge: str | None = None
    """How far the deletion of its files is, if they are to go: `restorable` or `purging`."""
    task_id: str | None = None
    last_error: str | None = None

    @property
    def path(self) -> Namespace:
        """All levels."""
        return self.namespace if self.name is None else (*self.namespace, self.name)


class Restored(Struct, frozen=True):
    """Where something is again."""

    kind: str
    namespace: Namespace
    name: str | None = None

    @property
    def path(self) -> Namespace:
        """All levels."""
        return self.namespace if self.name is None else (*self.namespace, self.name)


class InTheWay(Struct, frozen=True):
    """Something that cannot be dropped, and why."""

    kind: str
    path: Namespace
    reason: str


class CascadePlan(Struct, frozen=True, rename="kebab"):
    """What would go."""

    namespaces: int = 0
    tables: int = 0
    generic_tables: int = 0
    views: int = 0
    policies: int = 0
    purges_under_way: int = 0
    in_the_way: tuple[InTheWay, ...] = ()

    @property
    def total(self) -> int:
        """All things of it."""
        things = self.namespaces + self.tables + self.generic_tables + self.views + self.policies
        return things + self.purges_under_way


class _Page(Struct, rename="kebab"):
    dropped: list[Dropped] = field(default_factory=list)
    next_page_token: str | None = None


class DropApi(Keyed):
    """Drops of one catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._ours = f"{_OURS}/{segment(catalog)}"

    async def list_dropped(self) -> list[Dropped]:
        """What can be restored, the oldest first."""
        found: list[Dropped] = []
        query = {"pageSize": str(_PAGE)}
        while True:
            page = (await self._api.request("GET", f"{self._ours}/dropped", query=query)).decode(_Page)
            found += page.dropped
            if not page.next_page_token:
                return found
            query["pageToken"] = page.next_page_token

    async def restore(self, drop_id: str, path: Namespace = (), *, is_namespace: bool = False) -> Restored:
        """Restore it, to another path if one is given."""
        body: dict[str, Any] = {}
        if path:
            body = {"namespace": path} if is_namespace else {"namespace": path[:-1], "name": path[-1]}
        reply = await self._change("POST", f"{self._ours}/dropped/{segment(drop_id)}/restore", body=body)
        return reply.decode(Restored)

    async def plan_namespace(self, namespace: Namespace, *, is_purging: bool) -> CascadePlan:
        """What dropping a namespace with all it holds would drop."""
        return await _plan(self._api, self._namespace(namespace), is_purging=is_purging)

    async def drop_namespace(self, namespace: Namespace, *, is_purging: bool) -> None:
        """Drop a namespace with all it holds."""
        await self._change("POST", self._namespace(namespace), body=_cascade(is_purging))

    def _namespace(self, namespace: Namespace) -> str:
        return f"{self._ours}/namespaces/{segment(_BETWEEN.join(namespace))}/drop"


class CatalogDropApi(Keyed):
    """Catalogs that are dropped with all they hold."""

    async def plan(self, name: str, *, is_purging: bool) -> CascadePlan:
        """What would go."""
        return await _plan(self._api, f"{_MANAGEMENT}/{segment(name)}/drop", is_purging=is_purging)

    async def drop(self, name: str, *, is_purging: bool) -> None:
        """Drop a catalog with all it holds."""
        await self._change("POST", f"{_MANAGEMENT}/{segment(name)}/drop", body=_cascade(is_purging))


async def _plan(api: ApiClient, path: str, *, is_purging: bool) -> CascadePlan:
    query = {"purge": "true"} if is_purging else {}
    return (await api.request("GET", path, query=query)).decode(CascadePlan)


def _cascade(is_purging: bool) -> dict[str, bool]:
    return {"cascade": True, "purge": is_purging}
