"""A catalog ready for operations, and what all operations of a process share.

Operations are functions `operation(catalog, caller, …)` in `operations/`, one file each; they take an
`OpenCatalog` and know nothing of HTTP.
"""

from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self, TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.committing import Check, commit_as
from cynosure.auth.ports import Authorizer, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.background import Background
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.facade import is_facade, refuse_on_facade
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.joining import Joining
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.recent_lists import RecentLists
from cynosure.catalog.recent_loads import RecentLoads
from cynosure.catalog.recent_manifests import RecentManifests
from cynosure.catalog.recent_permits import PermitHeads, RecentPermits
from cynosure.catalog.recent_plans import Plans
from cynosure.catalog.restrictions.rule import Restrictions
from cynosure.catalog.seeing import find_permission, require_permitted
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.catalog.targets import (
    AnyTableTarget,
    CatalogTarget,
    GenericTableTarget,
    NamespaceTarget,
    PolicyTarget,
    TableTarget,
    ViewTarget,
)
from cynosure.catalog.task_executor import TaskExecutor
from cynosure.catalog.watching import Watching
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.errors import Unavailable
from cynosure.iceberg.limits import SizeLimits
from cynosure.persistence.commit import Committed, Committer, Prepared, State, View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import catalog_reference, realm_reference
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import Store
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storage

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
    access: AuthSettings = field(default_factory=AuthSettings)
    lists: RecentLists = field(default_factory=RecentLists)
    watching: Watching = field(default_factory=Watching)
    """Those who wait for the next commit."""
    delegation: DelegationSettings = field(default_factory=DelegationSettings)
    """Long work: by what rules it is ordered."""
    executor: TaskExecutor | None = field(init=False, default=None)
    """Who does it. Set once all is there that it needs, which are these catalogs too."""
    joining: Joining[Any] = field(init=False)
    """Appends that wait for the one under way."""
    manifests: RecentManifests = field(init=False)
    """What was read of the files of tables."""
    plans: Plans[Any] = field(init=False)
    """Scans that are being planned."""
    restrictions: Restrictions = field(init=False)
    """What callers may not see of tables."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifests", RecentManifests(self.settings))
        object.__setattr__(self, "plans", Plans(self.settings.planning.concurrent))
        self.background.stop_with(self.plans.close)
        object.__setattr__(self, "joining", Joining(self.background))
        object.__setattr__(self, "restrictions", Restrictions(self.persistence, self.tables))

    def use_executor(self, executor: TaskExecutor) -> None:
        """Order long work from this one."""
        object.__setattr__(self, "executor", executor)

    def require_executor(self) -> TaskExecutor:
        """Who does long work; `Unavailable` in a process that has nobody for it."""
        if self.executor is None:
            raise Unavailable(
                "Nobody does long work for this process", fix="Ask a server: 'cynosure serve' starts one."
            )
        return self.executor


class OpenCatalog:
    """One catalog: its entity, its state and its files."""

    __slots__ = (
        "_permits",
        "_principals",
        "allowed",
        "base",
        "committer",
        "entity",
        "grants",
        "is_facade",
        "is_federated",
        "is_hiding",
        "is_passed_on",
        "likely_references",
        "limits",
        "loads",
        "realm",
        "shared",
        "storage",
        "store",
    )

    def __init__(self, realm: RealmId, entity: CatalogEntity, shared: Shared, storage: Storage) -> None:
        self.realm = realm
        self.entity = entity
        self.shared = shared
        self.storage = storage
        key = catalog_reference(realm, entity.id, "main")
        self.committer: Committer = shared.persistence.committer(key)
        self.store: Store = self.committer.store
        self.likely_references = (realm_reference(realm, "catalogs"), key, key._replace(name="grants"))
        """What a request about this catalog reads."""
        self.grants: Committer = shared.persistence.committer(catalog_reference(realm, entity.id, "grants"))
        """Of its roles and what is granted to them: `roles/`."""
        self._principals = realm_reference(realm, "principals")
        self._permits = RecentPermits()
        self.loads = RecentLoads()
        """What was loaded of it, and may be again."""
        self.is_facade = is_facade(entity)
        """Whether another catalog owns its tables."""
        self.is_federated = entity.connection is not None
        """Whether that one is asked about them: `cynosure.federation`."""
        # What others saw of a remote is no more anybody's business than what it has.
        self.is_hiding = self.is_federated or shared.access.hide_existence
        """Whether what somebody may not even list does not exist for them."""
        self.is_passed_on = False
        """Whether what is done here is first done there; then nothing is refused as being another's."""
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

    def passing_on(self) -> Self:
        """The same catalog, for changes that its remote is asked for first (`cynosure.federation`)."""
        same = copy(self)
        same.is_passed_on = True
        return same

    @property
    def restrictions(self) -> Restrictions:
        """What callers may not see of its tables."""
        return self.shared.restrictions

    @property
    def files(self) -> FileIO:
        """Its files, as the server reaches them."""
        return self.storage.files

    async def read(self) -> State:
        """The current state, linearizable."""
        return (await self.committer.read()).state

    def dropped_since_us(self) -> int:
        """What was dropped earlier than this cannot be restored any more."""
        persistence = self.shared.persistence
        return persistence.clock.now_us() - persistence.settings.gc.undrop_window // _US

    def target(self) -> CatalogTarget:
        """This catalog, for the authorizer."""
        return CatalogTarget(self.entity.id, self.entity.name)

    def namespace(self, namespace: Namespace) -> NamespaceTarget:
        """A namespace of it, for the authorizer; without levels, its root."""
        return NamespaceTarget(self.entity.id, namespace)

    def table(self, table: Identifier) -> TableTarget:
        """A table of it, for the authorizer."""
        return TableTarget(self.entity.id, table)

    def found_table(self, table: Identifier, ref: ObjRef | None) -> TableTarget:
        """A table that was looked up already, in the state that it is authorized on."""
        known = None if ref is None else self.shared.tables.get(ref.id)
        return TableTarget(self.entity.id, table, ref, None if known is None else known.state.id)

    def view(self, name: Identifier) -> ViewTarget:
        """A view of it, for the authorizer."""
        return ViewTarget(self.entity.id, name)

    def generic_table(self, name: Identifier) -> GenericTableTarget:
        """A generic table of it, for the authorizer."""
        return GenericTableTarget(self.entity.id, name)

    def any_table(self, name: Identifier) -> AnyTableTarget:
        """A table or generic table of it, whichever has the name: what table privileges are granted on."""
        return AnyTableTarget(self.entity.id, name)

    def policy(self, name: Identifier) -> PolicyTarget:
        """A policy of it, for the authorizer."""
        return PolicyTarget(self.entity.id, name)

    async def authorize(self, view: View, caller: Caller, operation: Operation, *targets: Target) -> Guards:
        """Refuse what the caller may not do; what the permission rests on, for `Prepared.guards`.

        What does not exist is refused as that, whoever asks.
        """
        heads = self.find_heads(view, caller) if len(targets) == 1 else None
        if heads is not None:
            known = self._permits.get(caller, operation, targets[0], heads)
            if known is not None:
                self._refuse_as_anothers(operation)
                return known
        shared = self.shared
        guards = await require_permitted(
            shared.authorizer, caller, operation, targets, view, is_hiding=self.is_hiding
        )
        # Behind the permission: who may not do it at all need not learn which policies there are.
        guards = join_guards(guards, await self.restrictions.check(view, caller, operation, targets))
        if heads is not None:
            self._permits.put(caller, operation, targets[0], heads, guards)
        # Behind the permission: who may not do it at all is told that.
        self._refuse_as_anothers(operation)
        return guards

    def _refuse_as_anothers(self, operation: Operation) -> None:
        if self.is_facade:
            refuse_on_facade(self.entity, operation, is_passed_on=self.is_passed_on)

    def find_heads(self, view: View, caller: Caller) -> PermitHeads | None:
        """What a permission to read rests on, if this request has read it ahead.

        Whoever changes something is always asked about: its view must see what the permission rests on.
        """
        if type(view) is not State or caller.identity is None:
            return None
        known = self.shared.persistence.heads.get_both_ahead(self._principals, self.grants.key)
        return None if known is None else PermitHeads(view.commit_id, known[0].head, known[1].head)

    async def authorize_one_of(
        self, view: View, caller: Caller, operations: Sequence[Operation], *targets: Target
    ) -> tuple[Operation, Guards]:
        """The first of these that the caller may do; refused when it may do none."""
        heads = self.find_heads(view, caller) if len(targets) == 1 else None
        known = None if heads is None else self._permits.get_choice(caller, operations, targets[0], heads)
        if known is not None:
            self._refuse_as_anothers(known[0])
            return known
        chosen = await self._choose(view, caller, operations, *targets)
        if heads is not None:
            self._permits.put_choice(caller, operations, targets[0], heads, chosen)
        return chosen

    async def _choose(
        self, view: View, caller: Caller, operations: Sequence[Operation], *targets: Target
    ) -> tuple[Operation, Guards]:
        shared = self.shared
        restricted: RestrictedByPolicy | None = None
        for operation in operations[:-1]:
            guards = await find_permission(
                shared.authorizer, caller, operation, targets, view, is_hiding=self.is_hiding
            )
            if guards is None:
                continue
            try:
                guards = join_guards(guards, await self.restrictions.check(view, caller, operation, targets))
            except RestrictedByPolicy as error:
                restricted = error
                continue
            self._refuse_as_anothers(operation)
            return operation, guards
        try:
            return operations[-1], await self.authorize(view, caller, operations[-1], *targets)
        except AccessDenied as denied:
            if restricted is None or isinstance(denied, RestrictedByPolicy):
                raise
            raise restricted from denied

    async def commit(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        prepare: Callable[[View], Awaitable[Prepared[R]]],
        recall: Recall[R],
    ) -> Committed[R]:
        """Commit one operation of this caller, if it may be done to these targets.

        Authorized on the very state it is prepared on, and again whenever it is prepared again.
        """
        check = self.checking(caller, operation, *targets)
        return await self.commit_checked(caller, operation.name, check, prepare, recall)

    def checking(self, caller: Caller, operation: Operation, *targets: Target) -> Check:
        """`authorize`, for a state that is yet to come."""

        async def check(view: View) -> Guards:
            return await self.authorize(view, caller, operation, *targets)

        return check

    async def commit_checked(
        self,
        caller: Caller,
        name: str,
        check: Check,
        prepare: Callable[[View], Awaitable[Prepared[R]]],
        recall: Recall[R],
    ) -> Committed[R]:
        """`commit` where what must be authorized depends on the state, or is several things."""

        async def authorized(view: View) -> Prepared[R]:
            guards = await check(view)
            prepared = await prepare(view)
            if prepared.guards:
                # It read another reference for more than permission: only preparing again can tell.
                return replace(prepared, guards=join_guards(guards, prepared.guards))
            # Files may have been written for this. Somebody else's new password is no reason to do so again.
            return replace(prepared, guards=guards, renew=lambda: check(view))

        return await commit_as(self.committer, caller, name, authorized, check=check, recall=recall)
