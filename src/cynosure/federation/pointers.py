"""Remotes that only keep where a table's metadata file is: Hive, Glue, SQL.

`PointerCatalog` is what such a remote does; `remotes/pointer_remote.py` makes a `RemoteCatalog` of one,
reading and writing metadata files with the catalog's own storage, and nothing else.

A maintainer must not break: `swap` is conditional in the remote itself, so of two writers one loses, and one
whose answer was lost is `OutcomeUnknown`, never success or failure.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from cynosure.catalog.names import Identifier, Namespace
from cynosure.federation.remote import Abilities, NamesPage


class Pointer(Struct, frozen=True):
    """Where a table's metadata is."""

    metadata_location: str
    version: str | None = None
    """Of the entry, where the remote counts."""
    location: str | None = None
    """Of the table, as the entry says."""


class PointerCatalog(Protocol):
    """A remote of pointers."""

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        ...

    async def check(self) -> None:
        """Ask it something cheap."""
        ...

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        ...

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        ...

    async def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """See `RemoteCatalog`."""
        ...

    async def update_namespace(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """See `RemoteCatalog`."""
        ...

    async def drop_namespace(self, namespace: Namespace) -> None:
        """See `RemoteCatalog`."""
        ...

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """Iceberg tables only."""
        ...

    async def find(self, table: Identifier) -> Pointer:
        """`NoSuchTable`; `NotIceberg` (a kind of `NoSuchTable`) for a table of another format."""
        ...

    async def create(self, table: Identifier, pointer: Pointer, columns: Mapping[str, str]) -> Pointer:
        """`TableExists`. `columns` for remotes that keep a description beside the pointer."""
        ...

    async def swap(
        self, table: Identifier, expected: Pointer, wanted: Pointer, columns: Mapping[str, str]
    ) -> Pointer:
        """Conditional. `RemoteConflict` when it is another one by now."""
        ...

    async def drop(self, table: Identifier) -> None:
        """`NoSuchTable`."""
        ...

    async def rename(self, source: Identifier, target: Identifier) -> None:
        """`NoSuchTable`, `TableExists`."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
