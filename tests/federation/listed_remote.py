"""A remote with very many names, that counts what it is asked and holds."""

from collections.abc import Mapping
from typing import Any

from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.remote import Abilities, NamesPage


class ListedRemote:
    """Has the namespace `ns` with so many tables; `get` makes it the one client of all catalogs."""

    def __init__(self, n_tables: int = 0, *, has_views: bool = True) -> None:
        self.abilities = Abilities(has_views=has_views, has_nested_namespaces=True, has_transactions=True)
        self.n_tables = n_tables
        self.asked: list[tuple[str | None, int]] = []
        self.is_ignoring_size = False
        self.next_tokens: Mapping[str | None, str] | None = None
        """What follows which token, in place of the truth."""
        self.extra: list[str] = []

    def get(self, catalog: OpenCatalog) -> Any:
        return self

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        self.asked.append((token, size))
        return NamesPage([] if parent else ["ns", *self.extra])

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        if namespace != ("ns",):
            raise NoSuchNamespace(".".join(namespace))
        return {}

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        self.asked.append((token, size))
        await self.load_namespace(namespace)
        if self.next_tokens is not None:
            return NamesPage([f"t-{token}"], self.next_tokens[token])
        start = 0 if token is None else int(token)
        end = self.n_tables if self.is_ignoring_size else min(self.n_tables, start + size)
        names = [f"t{number:05}" for number in range(start, end)]
        return NamesPage([*names, *self.extra], str(end) if end < self.n_tables else None)

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        self.asked.append((token, size))
        return NamesPage(["v"])
