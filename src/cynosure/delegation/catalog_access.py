"""The catalog as a worker sees it: what it needs of a table to work on it, and what it must tell.

Two implementations: `CatalogOverHttp` (`access_http.py`), with the service's own principal, and `CatalogHere`
(`access_local.py`), in the catalog's own process.

A maintainer must not break: what is answered here is never stored, and credentials are asked for again when
they are about to expire.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct

from cynosure.common.delegated.payload import TaskOrder
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location


class TableFacts(Struct, frozen=True):
    """A table, or what is left of one that is to be purged."""

    entity_id: str
    table_uuid: str
    location: str
    places: tuple[Location, ...]
    """All that it holds to itself. Nothing outside of them is ever deleted."""
    metadata_location: str
    metadata: dict[str, Any]
    """Of the table, as the protocol has it."""
    is_federated: bool = False


class ClientFiles(Struct, frozen=True):
    """How another process reaches the files: sent to Spark's executors, never stored."""

    properties: dict[str, str]
    """As Iceberg's clients name them, with credentials; empty for local files."""
    expires_ms: int
    """When the credentials end; 0: never."""

    def __repr__(self) -> str:
        return "ClientFiles(…)"


class TableAccess(Protocol):
    """One table, open to one task."""

    @property
    def facts(self) -> TableFacts:
        """What it is."""
        ...

    @property
    def files(self) -> FileIO:
        """Its files, with credentials that are renewed by themselves. Reaches its places and nothing else."""
        ...

    async def client_files(self) -> ClientFiles:
        """Credentials for another process, good for a while yet."""
        ...


class CatalogAccess(Protocol):
    """What a worker may ask of the catalog."""

    async def open_tombstone(self, order: TaskOrder) -> TableAccess:
        """A table that is to be purged. `NotFound` when it has no tombstone any more (restored, or gone)."""
        ...

    async def begin_purging(self, order: TaskOrder) -> None:
        """From now on it cannot be restored; asked before the first file is deleted. Repeating is fine.

        `NotFound` or `Conflict` when it must not be purged: restored meanwhile, or its places are shared.
        """
        ...

    async def open_table(self, order: TaskOrder) -> TableAccess:
        """A table that is there, to be written to."""
        ...

    async def list_overlapping_dropped(
        self, order: TaskOrder, places: Sequence[Location]
    ) -> list[TableAccess]:
        """Dropped tables that can be restored and whose files are in these places: those are alive."""
        ...

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        """Tell the catalog that this task has ended; it asks for the outcome itself."""
        ...
