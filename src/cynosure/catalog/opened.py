"""A catalog ready for operations, and what all operations of a process share.

Operations are functions `operation(catalog, caller, …)` in `operations/`, one file each; they take an
`OpenCatalog` and know nothing of HTTP.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from cynosure.auth.caller import Caller, commit_as
from cynosure.auth.ports import Authorizer, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import require_allowed
from cynosure.catalog.background import Background
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.recent_lists import RecentLists
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.iceberg.limits import SizeLimits
from cynosure.persistence.commit import Committed, Committer, Prepared, State, View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import ObjId, RealmId, RefKey
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
    authorizer: Authorizer
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

    async def authorize(
        self, view: View, caller: Caller, operation: Operation, *targets: Target
    ) -> Mapping[RefKey, ObjId]:
        """Refuse what the caller may not do; what the permission rests on, for `Prepared.guards`."""
        return await require_allowed(self.shared.authorizer, caller, operation, targets, view)

    async def commit(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        prepare: Callable[[View], Awaitable[Prepared[R]]],
    ) -> Committed[R]:
        """Commit one operation of this caller, if it may be done to these targets.

        Authorized on the very state it is prepared on, and again whenever it is prepared again.
        """

        async def authorized(view: View) -> Prepared[R]:
            guards = await self.authorize(view, caller, operation, *targets)
            prepared = await prepare(view)
            return replace(prepared, guards={**guards, **prepared.guards})

        return await commit_as(self.committer, caller, operation.name, authorized)
