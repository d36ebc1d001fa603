"""Finding catalogs by name, and the list of them.

Must not break: the name is looked up on the current head for every request; only what a head says is
remembered, never how a name was resolved before.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from msgspec import Struct

from cynosure.auth.caller import Caller, commit_as
from cynosure.auth.closing import require_open
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import require_allowed
from cynosure.catalog.listed import load_listed
from cynosure.catalog.opened import OpenCatalog, Shared
from cynosure.persistence.commit import Committer, Prepared, View
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import ObjId, RealmId, RefKey
from cynosure.storage.open_fileio import FileIOs

R = TypeVar("R")


class _Known(Struct):
    """Catalogs as one head of a realm's list has them."""

    head: ObjId
    by_name: dict[str, OpenCatalog]


class Directory:
    """The catalogs of all realms, as one process uses them."""

    def __init__(self, shared: Shared, files: FileIOs) -> None:
        self.shared = shared
        self.files = files
        self._known: dict[RealmId, _Known] = {}

    def committer(self, realm: RealmId) -> Committer:
        """The committer of a realm's list of catalogs."""
        return self.shared.persistence.committer(realm_reference(realm, "catalogs"))

    async def authorize(
        self, caller: Caller, operation: Operation, *targets: Target
    ) -> Mapping[RefKey, ObjId]:
        """Refuse what the caller may not do to the realm or a catalog as a whole."""
        return await require_allowed(self.shared.authorizer, caller, operation, targets, None)

    async def commit(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        prepare: Callable[[View], Awaitable[Prepared[R]]],
    ) -> R:
        """Commit a change to the list of catalogs in the caller's realm, if it may be made."""

        async def authorized(view: View) -> Prepared[R]:
            await require_open(view)
            guards = await self.authorize(caller, operation, *targets)
            prepared = await prepare(view)
            return replace(prepared, guards={**guards, **prepared.guards})

        return (await commit_as(self.committer(caller.realm), caller, operation.name, authorized)).result

    async def open(self, realm: RealmId, name: str) -> OpenCatalog:
        """The catalog of this name; `NoSuchCatalog` when the realm has none."""
        state = (await self.committer(realm).read()).state
        known = self._known.get(realm)
        if known is None or known.head != state.commit_id:
            known = self._known[realm] = _Known(state.commit_id, {})
        opened = known.by_name.get(name)
        if opened is None:
            entity = (await load_listed(state, name)).entity
            opened = known.by_name[name] = OpenCatalog(
                realm, entity, self.shared, self.files.get(entity.storage, (realm, entity.id))
            )
        return opened
