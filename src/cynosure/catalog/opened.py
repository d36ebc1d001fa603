"""A catalog ready for operations, and what all operations of a process share.

Operations are functions `operation(catalog, caller, …)` in `operations/`, one file each; they take an
`OpenCatalog` and know nothing of HTTP.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from cynosure.catalog.background import Background
from cynosure.catalog.caller import Caller
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.recent_lists import RecentLists
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.iceberg.limits import SizeLimits
from cynosure.persistence.commit import Committed, Committer, Prepared, Request, State, View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import Store
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location

R = TypeVar("R")
_US = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the operations of one process share."""

    persistence: Persistence
    tables: RecentTables
    settings: CatalogSettings
    background: Background
    imports: SingleFlight
    """Imports of metadata files under way."""
    lists: RecentLists = field(default_factory=RecentLists)


class OpenCatalog:
    """One catalog: its entity, its state and its files."""

    __slots__ = ("allowed", "base", "committer", "entity", "files", "limits", "realm", "shared", "store")

    def __init__(self, realm: RealmId, entity: CatalogEntity, shared: Shared, files: FileIO) -> None:
        self.realm = realm
        self.entity = entity
        self.shared = shared
        self.files = files
        key = catalog_reference(realm, entity.id, "main")
        self.committer: Committer = shared.persistence.committer(key)
        self.store: Store = self.committer.store
        self.base = Location.parse(entity.base_location)
        self.allowed = (self.base, *(Location.parse(text) for text in entity.storage.allowed_locations))
        """Where files may be."""
        sizes = shared.settings.sizes
        self.limits = SizeLimits(
            max_columns=sizes.columns,
            max_properties_bytes=sizes.properties_bytes,
            max_snapshots=sizes.snapshots,
        )
        """How large tables may become."""

    async def read(self) -> State:
        """The current state, linearizable."""
        return (await self.committer.read()).state

    def dropped_since_us(self) -> int:
        """What was dropped earlier than this cannot be restored any more."""
        persistence = self.shared.persistence
        return persistence.clock.now_us() - persistence.settings.gc.undrop_window // _US

    async def commit(
        self, caller: Caller, operation: str, prepare: Callable[[View], Awaitable[Prepared[R]]]
    ) -> Committed[R]:
        """Commit one operation of this caller. Errors of `prepare` reach the caller as they are."""
        outcome = await self.committer.commit(
            Request(
                prepare,
                caller.principal,
                operation=operation,
                request_id=caller.request_id,
                key_hash=caller.key_hash,
            )
        )
        assert isinstance(outcome, Committed)  # noqa: S101 - keys are looked up before an operation begins
        return outcome
