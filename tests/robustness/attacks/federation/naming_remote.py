"""A remote in memory that remembers of what it was asked."""

from typing import Any

from cynosure.catalog.names import Identifier
from cynosure.federation.remote import NewTable, TableCommit, ViewCommit
from cynosure.testing.memory_remote import MemoryRemote


class NamingRemote(MemoryRemote):
    """Which namespaces it was asked about, in `namespaces_asked`."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces_asked: set[tuple[str, ...]] = set()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        verb = name.partition("_")[0]
        if verb not in ("list", "load", "create", "update", "drop", "register", "commit", "rename"):
            return found

        def asked(*args: Any, **more: Any) -> Any:
            for each in args:
                self.namespaces_asked |= {_namespace_of(one) for one in _spread(each)}
            return found(*args, **more)

        return asked


def _spread(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _namespace_of(value: Any) -> tuple[str, ...]:
    match value:
        case Identifier():
            return value.namespace
        case NewTable() | TableCommit():
            return value.table.namespace
        case ViewCommit():
            return value.view.namespace
        case tuple():
            return value
    return ()
