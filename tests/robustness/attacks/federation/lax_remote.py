"""A remote in memory that does not mind how names are spelled, as databases with such collations do."""

from collections.abc import Callable
from typing import Any, TypeVar

from cynosure.catalog.names import Identifier, Namespace
from cynosure.federation.remote import NamesPage
from cynosure.testing.memory_remote import MemoryRemote

K = TypeVar("K")
V = TypeVar("V")


class _Lax(dict[K, V]):
    """A dictionary whose keys are found in any spelling, and stay as they were written first."""

    def __init__(self, fold: Callable[[Any], Any]) -> None:
        super().__init__()
        self._fold = fold

    def spelled(self, key: Any) -> Any:
        """The key as it was written first."""
        wanted = self._fold(key)
        return next((each for each in self if self._fold(each) == wanted), key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self.spelled(key))

    def __getitem__(self, key: K) -> V:
        return super().__getitem__(self.spelled(key))

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(self.spelled(key), value)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(self.spelled(key))

    def setdefault(self, key: K, default: Any = None) -> V:
        return super().setdefault(self.spelled(key), default)

    def get(self, key: K, default: Any = None) -> Any:
        return super().get(self.spelled(key), default)

    def pop(self, key: K, *default: Any) -> Any:
        return super().pop(self.spelled(key), *default)


class LaxRemote(MemoryRemote):
    """Takes names in any spelling that `fold` makes the same, and lists them as they were written first."""

    def __init__(self, fold: Callable[[str], str] = str.lower) -> None:
        super().__init__()
        self._fold = fold
        self.namespaces = _Lax(self._fold_path)
        self.tables = _Lax(self._fold_name)
        self.views = _Lax(self._fold_name)

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await super().list_namespaces(self._spelled(parent), token=token, size=size)

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await super().list_tables(self._spelled(namespace), token=token, size=size)

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await super().list_views(self._spelled(namespace), token=token, size=size)

    def _spelled(self, namespace: Namespace) -> Namespace:
        assert isinstance(self.namespaces, _Lax)
        found: Namespace = self.namespaces.spelled(namespace)
        return found

    def _fold_path(self, path: Namespace) -> Namespace:
        return tuple(self._fold(each) for each in path)

    def _fold_name(self, name: Identifier) -> Identifier:
        return Identifier(self._fold_path(name.namespace), self._fold(name.name))
