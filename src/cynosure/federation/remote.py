"""The port to a remote catalog, in the words of Iceberg: what each kind of remote does behind it.

Implementations are in `remotes/`; `cynosure.testing.remote_kit` holds them to what is promised here.

A maintainer must not break: three outcomes of a change never merge. Refused, or provably never arrived, is an
error; one that may have been carried out is `OutcomeUnknown`; all else is done. And whatever a remote sends
is bounded: bytes, time, pages.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from cynosure.catalog.names import Identifier, Namespace
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import TableRequirement
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.views import ViewMetadata, ViewRequirement, ViewUpdate


class Tag(Struct, frozen=True):
    """What tells one version of a table or view from another, without reading it. Kept in the mirror."""

    metadata_location: str | None = None
    etag: str | None = None
    """As the remote sent it, if it sent one; then it alone is compared."""
    version: str | None = None
    """Of the entry itself, where the remote counts: Glue's VersionId."""


class RemoteTable(Struct, frozen=True):
    """A table as the remote has it now."""

    metadata: TableMetadata
    tag: Tag
    config: Mapping[str, str] = {}
    """What the remote tells clients; may hold credentials. Never passed on as it is."""
    storage_credentials: Sequence[tuple[str, Mapping[str, str]]] = ()
    """Credentials that the remote gave for prefixes, if they were asked for."""

    @property
    def uuid(self) -> str:
        """What tells this table from all others, in lower case."""
        return self.metadata.table_uuid.lower()


class RemoteView(Struct, frozen=True):
    """A view as the remote has it now."""

    metadata: ViewMetadata
    tag: Tag

    @property
    def uuid(self) -> str:
        """What tells this view from all others, in lower case."""
        return self.metadata.view_uuid.lower()


class Unchanged(Struct, frozen=True):
    """The remote still has the version that the asker knows."""


UNCHANGED = Unchanged()


class NewTable(Struct, frozen=True, kw_only=True):
    """A table to be created: all of its first metadata."""

    table: Identifier
    metadata: TableMetadata
    is_staged: bool = False
    is_placed: bool = True
    """Whether the client chose the location. If not, a remote that chooses itself is left to do so."""


class TableCommit(Struct, frozen=True, kw_only=True):
    """A change of one table, as a client sent it."""

    table: Identifier
    requirements: Sequence[TableRequirement]
    updates: Sequence[TableUpdate]
    base: RemoteTable | None = None
    """What the mirror knows, checked a moment ago: pointers are swapped from its tag. `None`: a creation."""


class ViewCommit(Struct, frozen=True, kw_only=True):
    """A change of one view, as a client sent it."""

    view: Identifier
    requirements: Sequence[ViewRequirement]
    updates: Sequence[ViewUpdate]
    base: RemoteView | None = None


class NamesPage(Struct, frozen=True):
    """Some names, in the remote's order, and how to go on."""

    names: Sequence[str]
    next_token: str | None = None


class Abilities(Struct, frozen=True):
    """What a kind of remote can do at all. What it cannot is refused before it is asked."""

    has_views: bool
    has_nested_namespaces: bool
    has_transactions: bool
    is_writable: bool = True
    takes_keys: bool = False
    """Whether the remote advertises that it takes Idempotency-Keys; known once it was asked."""
    names: Literal["any", "lower"] = "any"
    """Which names it can have: Hive and Glue keep lower case only."""
    refuses_late_swaps: bool = True
    """Whether a swap that arrives late, behind somebody else's, is refused by the remote itself."""
    registers_views: bool = False
    """Whether it makes views of metadata files, if it has views at all."""


class RemoteCatalog(Protocol):
    """One remote catalog. Its own errors become ours: `federation.errors`, `NoSuchTable`, `Conflict` …

    Methods that change something take `key`, an Idempotency-Key to be forwarded where the remote takes them.
    """

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        ...

    async def check(self) -> None:
        """Ask the remote something cheap. `RemoteUnavailable` or `RemoteRefused` when it is not well."""
        ...

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """Last names of the namespaces right below `parent`."""
        ...

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """Its properties. `NoSuchNamespace`."""
        ...

    async def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str], *, key: str | None = None
    ) -> Mapping[str, str]:
        """Its properties as the remote made them. `NamespaceExists`."""
        ...

    async def update_namespace(
        self,
        namespace: Namespace,
        *,
        removals: Sequence[str],
        updates: Mapping[str, str],
        key: str | None = None,
    ) -> None:
        """Change its properties."""
        ...

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:
        """`NamespaceNotEmpty`."""
        ...

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """Names of its Iceberg tables."""
        ...

    async def load_table(self, table: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:
        """The table, or that it is still the known version. `NoSuchTable`."""
        ...

    async def create_table(self, wanted: NewTable, *, key: str | None = None) -> RemoteTable:
        """`TableExists`. A staged one is only described."""
        ...

    async def register_table(
        self, table: Identifier, metadata_location: str, *, is_overwrite: bool, key: str | None = None
    ) -> RemoteTable:
        """A table of a metadata file."""
        ...

    async def commit_table(self, change: TableCommit, *, key: str | None = None) -> RemoteTable:
        """The table after the change. `RemoteConflict` when a requirement does not hold."""
        ...

    async def commit_transaction(self, changes: Sequence[TableCommit], *, key: str | None = None) -> None:
        """All or nothing."""
        ...

    async def drop_table(self, table: Identifier, *, is_purge: bool, key: str | None = None) -> None:
        """`NoSuchTable`."""
        ...

    async def rename_table(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """`NoSuchTable`, `TableExists`."""
        ...

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """Names of its views."""
        ...

    async def load_view(self, view: Identifier, known: Tag | None = None) -> RemoteView | Unchanged:
        """`NoSuchView`."""
        ...

    async def create_view(
        self, view: Identifier, metadata: ViewMetadata, *, key: str | None = None
    ) -> RemoteView:
        """`ViewExists`. With an empty location the remote chooses one."""
        ...

    async def register_view(
        self, view: Identifier, metadata_location: str, *, key: str | None = None
    ) -> RemoteView:
        """A view of a metadata file. `ViewExists`; `NotOffered`, where a remote is known not to do it."""
        ...

    async def commit_view(self, change: ViewCommit, *, key: str | None = None) -> RemoteView:
        """The view after the change. `RemoteConflict` when a requirement does not hold."""
        ...

    async def drop_view(self, view: Identifier, *, key: str | None = None) -> None:
        """`NoSuchView`."""
        ...

    async def rename_view(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """`NoSuchView`, `ViewExists`."""
        ...

    async def close(self) -> None:
        """End its connections."""
        ...
