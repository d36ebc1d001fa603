"""Finding catalogs by name, and the list of them.

Must not break: the name is looked up on the current head for every request; only what a head says is
remembered, never how a name was resolved before.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from msgspec import Struct

from cynosure.auth.access.visible import has_catalog_role
from cynosure.auth.caller import Caller
from cynosure.auth.closing import require_open
from cynosure.auth.committing import Check, commit_as
from cynosure.auth.ports import Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall
from cynosure.auth.require import AccessDenied, require_allowed
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.connections import Connections
from cynosure.catalog.entities import CATALOG
from cynosure.catalog.errors import NoSuchCatalog
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.listed import Listed, find_listed, load_listed
from cynosure.catalog.opened import OpenCatalog, Shared
from cynosure.catalog.targets import CatalogTarget
from cynosure.persistence.commit import Committer, Prepared, State, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import ObjId, RealmId, RefKey
from cynosure.storage.open_storage import Storages

R = TypeVar("R")


class _Known(Struct):
    """Catalogs as one head of a realm's list has them."""

    head: ObjId
    by_name: dict[str, OpenCatalog]


class Directory:
    """The catalogs of all realms, as one process uses them."""

    def __init__(self, shared: Shared, storages: Storages, connections: Connections) -> None:
        self.shared = shared
        self.storages = storages
        self.connections = connections
        self._known: dict[RealmId, _Known] = {}

    def committer(self, realm: RealmId) -> Committer:
        """The committer of a realm's list of catalogs. The realm must exist: one is kept for each."""
        return self.shared.persistence.committer(realm_reference(realm, "catalogs"))

    async def read(self, realm: RealmId) -> State:
        """The current list of catalogs of a realm, linearizable."""
        return (await self.committer(realm).read()).state

    async def authorize(self, caller: Caller, operation: Operation, *targets: Target) -> Guards:
        """Refuse what the caller may not do to the realm or a catalog as a whole."""
        return await require_allowed(self.shared.authorizer, caller, operation, targets, None)

    async def commit(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        prepare: Callable[[View], Awaitable[Prepared[R]]],
        recall: Recall[R],
    ) -> R:
        """Commit a change to the list of catalogs in the caller's realm, if it may be made."""

        async def check(view: View) -> Guards:
            return await self.authorize(caller, operation, *targets)

        async def authorized(view: View) -> Prepared[R]:
            guards = await check(view)
            prepared = await prepare(view)
            return replace(prepared, guards=join_guards(guards, prepared.guards))

        return await self.commit_authorizing(caller, operation.name, authorized, check=check, recall=recall)

    async def commit_authorizing(
        self,
        caller: Caller,
        name: str,
        prepare: Callable[[View], Awaitable[Prepared[R]]],
        *,
        check: Check,
        recall: Recall[R],
    ) -> R:
        """`commit` where `prepare` authorizes itself, because it has to look something up first."""

        async def opened(view: View) -> Prepared[R]:
            await require_open(view)
            return await prepare(view)

        committer = self.committer(caller.realm)
        return (await commit_as(committer, caller, name, opened, check=check, recall=recall)).result

    async def authorize_on(
        self, view: View, caller: Caller, operation: Operation, name: str
    ) -> tuple[Listed, Guards]:
        """The entry of a catalog in a state of the list, if the caller may do this to it.

        `NoSuchCatalog` when there is none; or, where existence is hidden, when the caller has nothing to do
        with it. As much is asked of the authorizer either way, about another catalog if need be.
        """
        listed = await find_listed(view, name)
        if self.shared.access.hide_existence and not caller.is_operator:
            return await self._authorize_veiled(view, caller, operation, name, listed)
        if listed is None:
            raise NoSuchCatalog(name)
        return listed, await self.authorize(caller, operation, CatalogTarget(listed.entity.id, name))

    def list_likely(self, realm: RealmId, name: str) -> tuple[RefKey, ...]:
        """References that a request about this catalog will read, as far as is known here. A guess."""
        known = self._known.get(realm)
        opened = None if known is None else known.by_name.get(name)
        return () if opened is None else opened.likely_references

    async def open(self, realm: RealmId, name: str) -> OpenCatalog:
        """The catalog of this name; `NoSuchCatalog` when the realm has none."""
        state = await self.read(realm)
        known = self._known.get(realm)
        if known is None or known.head != state.commit_id:
            known = self._known[realm] = _Known(state.commit_id, {})
        opened = known.by_name.get(name)
        if opened is None:
            entity = (await load_listed(state, name)).entity
            opened = known.by_name[name] = OpenCatalog(
                realm, entity, self.shared, self.storages.get(entity.storage, (realm, entity.id))
            )
        return opened

    async def open_for(self, caller: Caller, name: str) -> OpenCatalog:
        """As `open`, for an operation inside the catalog, which asks for what it needs there.

        Where existence is hidden, `NoSuchCatalog` also for a catalog that the caller has nothing to do with.
        """
        if self.shared.access.hide_existence:
            await self.require_seen(caller, name)
        return await self.open(caller.realm, name)

    async def require_seen(self, caller: Caller, name: str) -> None:
        """Refuse whoever neither has a role in this catalog nor may load it."""
        if caller.is_operator:
            return
        view = await self.read(caller.realm)
        listed = await find_listed(view, name)
        is_hiding = self.shared.access.hide_existence
        subject = await _find_any(view) if listed is None and is_hiding else listed
        if subject is None:
            raise NoSuchCatalog(name)
        target = CatalogTarget(subject.entity.id, name)
        decision = await self.shared.authorizer.decide(caller, ops.LOAD_CATALOG, (target,), None)
        denied = AccessDenied(caller, ops.LOAD_CATALOG, (target,), decision)
        if not await self._sees(caller, target, is_there=listed is not None):
            if is_hiding:
                raise NoSuchCatalog(name) from denied
            raise denied
        if listed is None:
            raise NoSuchCatalog(name)

    async def _authorize_veiled(
        self, view: View, caller: Caller, operation: Operation, name: str, listed: Listed | None
    ) -> tuple[Listed, Guards]:
        subject = await _find_any(view) if listed is None else listed
        if subject is None:
            raise NoSuchCatalog(name)
        target = CatalogTarget(subject.entity.id, name)
        decision = await self.shared.authorizer.decide(caller, operation, (target,), None)
        if listed is not None and decision.is_allowed:
            return listed, decision.guards
        denied = AccessDenied(caller, operation, (target,), decision)
        if not await self._sees(caller, target, is_there=listed is not None):
            raise NoSuchCatalog(name) from denied
        if listed is None:
            raise NoSuchCatalog(name)
        raise denied

    async def _sees(self, caller: Caller, target: CatalogTarget, *, is_there: bool) -> bool:
        """Whether the caller may know if there is such a catalog.

        All is asked whatever the first answer is, so that the time it takes does not tell. About one that is
        missing, the only answer that counts is whether the caller may list all of them.
        """
        authorizer = self.shared.authorizer
        has_role = await has_catalog_role(authorizer, caller, target.catalog)
        may_load = await authorizer.decide(caller, ops.LOAD_CATALOG, (target,), None)
        may_list = await authorizer.decide(caller, ops.LIST_CATALOGS, (RealmTarget(caller.realm),), None)
        return may_list.is_allowed or (is_there and (has_role or may_load.is_allowed))


async def _find_any(view: View) -> Listed | None:
    """Some catalog to ask the authorizer about in place of one that is missing."""
    first = await view.scan("names", limit=1)
    if not first:
        return None
    ref = ObjRef.unpack(first[0][1])
    return Listed(ref, (await view.load_many(CATALOG, [ref.id]))[0])
