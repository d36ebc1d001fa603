"""Having in the mirror what the remote has, before an operation of the catalog looks there.

    names ─► freshness ─► partial authorization ─► the remote ─► backfill, move or forget

Nothing is answered here: the operation that follows finds what is there, authorizes on that and answers, so a
table that was made anew at the remote has nobody's grants, and what is missing is missing in the same words
as anywhere.

Must not break: whoever may do nothing with a thing causes no request about it, so nobody learns from times,
counts or errors what a remote has.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.file_access.giving import Access
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.names import (
    Identifier,
    Namespace,
    check_name,
    namespace_key,
    parse_namespace,
    path_of,
    table_key,
    view_key,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.common.clock import Clock
from cynosure.federation.aliases import give_up_alike, is_misspelled, is_spelled_so
from cynosure.federation.circles import passed
from cynosure.federation.clients import Clients
from cynosure.federation.errors import (
    NamedFileMissing,
    RemoteBusy,
    RemoteFileMissing,
    RemoteMisbehaved,
    RemoteUnavailable,
)
from cynosure.federation.guard.metrics import note_seen
from cynosure.federation.handover import find_moving
from cynosure.federation.mirror import facade_table
from cynosure.federation.mirror.seen import Seen, SeenMeanwhile, find_by_uuid, find_seen
from cynosure.federation.policy import CatalogPolicy, policy_of
from cynosure.federation.remote import RemoteCatalog, RemoteTable, Unchanged
from cynosure.federation.seen_kinds import NAMESPACES, TABLES, VIEWS, F, Kind, N
from cynosure.federation.settings import FederationSettings
from cynosure.federation.spelling import Judged, Spelled, Spelling
from cynosure.federation.stages.access import narrow, without_own_access
from cynosure.federation.stages.freshness import Freshness
from cynosure.federation.stages.partial import may_grant_on_table, may_write_table
from cynosure.federation.stages.together import Together
from cynosure.persistence.commit import State
from cynosure.persistence.spi import CatalogId
from cynosure.storage.access.ports import Vended

_TRIES: Final = 5
"""How often the remote is asked when others see something else meanwhile."""
_MOST_POLICIES: Final = 10_000


class _Asking(NamedTuple):
    """One thing that a remote is asked about."""

    catalog: OpenCatalog
    caller: Caller
    remote: RemoteCatalog
    policy: CatalogPolicy
    key: bytes
    """In `names`."""


class Federation:
    """What one process knows of remotes, and what it asks them with."""

    def __init__(self, clients: Clients, settings: FederationSettings, clock: Clock) -> None:
        self.clients = clients
        self.settings = settings
        self._clock = clock
        self.freshness = Freshness(clock, settings.negative)
        self._together = Together()
        self._spelling = Spelling(clock)
        self._policies: dict[CatalogId, tuple[CatalogEntity, CatalogPolicy]] = {}
        """By catalog, for as long as its definition is the same: asked for by every request."""

    async def close(self) -> None:
        """End all connections to remotes."""
        await self.clients.close()

    def policy(self, catalog: OpenCatalog) -> CatalogPolicy:
        """How the remote of this catalog is treated."""
        known = self._policies.get(catalog.entity.id)
        if known is not None and known[0] is catalog.entity:
            return known[1]
        if len(self._policies) >= _MOST_POLICIES:
            self._policies.clear()
        policy = policy_of(catalog, self.settings)
        self._policies[catalog.entity.id] = catalog.entity, policy
        return policy

    def giving(self, catalog: OpenCatalog) -> OpenCatalog:
        """The catalog as it gives clients access to files: with its own storage, or not at all."""
        return catalog if self.policy(catalog).credentials == "own" else without_own_access(catalog)

    async def give_access(self, catalog: OpenCatalog, table: Identifier, access: Access) -> Access:
        """Access to a table's files for somebody who may write them: `access`, or what the remote gives.

        Whoever calls has authorized that, on what the mirror has now.
        """
        if self.policy(catalog).credentials != "remote":
            return access
        vended = await self.load_vended(catalog, table)
        return access if vended is None else access._replace(vended=vended)

    async def load_vended(self, catalog: OpenCatalog, table: Identifier) -> Vended | None:
        """The remote's credentials for a table of the mirror, for its places only; `None`: there are none."""
        view = await catalog.read()
        ref = await require_table_ref(view, table)
        state = (await load_table_at(view, ref.id, catalog.shared.tables)).state
        scope = table_scope(catalog, state, is_writable=True)
        if not await _is_asked(view):
            return None
        there = await self.clients.get(catalog).load_table(table)
        if not isinstance(there, RemoteTable) or there.uuid != state.table_uuid.lower():
            return None
        return narrow(there.storage_credentials, scope, now_ms=self._clock.now_us() // 1_000)

    async def see(self, catalog: OpenCatalog, caller: Caller, params: Mapping[str, str]) -> None:
        """See what a path names."""
        namespace = params.get("namespace")
        if namespace is None:
            return
        if (table := params.get("table")) is not None:
            await self.see_table(catalog, caller, _identifier(namespace, table, "table"))
        elif (view := params.get("view")) is not None:
            await self.see_view(catalog, caller, _identifier(namespace, view, "view"))
        else:
            await self.see_namespace(catalog, caller, parse_namespace(namespace))

    async def see_table(
        self, catalog: OpenCatalog, caller: Caller, table: Identifier, *, is_fresh: bool = False
    ) -> None:
        """Have the table as the remote has it. `is_fresh`: however lately it was checked."""
        if is_fresh or not self._is_fresh(catalog, table_key(table)):
            await self._see(catalog, caller, TABLES, table)

    async def see_view(
        self, catalog: OpenCatalog, caller: Caller, name: Identifier, *, is_fresh: bool = False
    ) -> None:
        """Have the view as the remote has it."""
        if is_fresh or not self._is_fresh(catalog, view_key(name)):
            await self._see(catalog, caller, VIEWS, name)

    async def see_namespace(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, *, is_fresh: bool = False
    ) -> None:
        """Have the namespace as the remote has it."""
        if is_fresh or not self._is_fresh(catalog, namespace_key(namespace)):
            await self._see(catalog, caller, NAMESPACES, namespace)

    async def see_to_grant(self, catalog: OpenCatalog, caller: Caller, table: Identifier) -> None:
        """Have what a grant on a table is for: the one that is there now, or the name."""
        if self.policy(catalog).grants == "validated":
            await self.see_table(catalog, caller, table, is_fresh=True)
        elif await may_grant_on_table(catalog, caller, table, await catalog.read()):
            await facade_table(catalog, caller, table)

    def _is_fresh(self, catalog: OpenCatalog, key: bytes) -> bool:
        """Whether what the mirror has counts."""
        is_fresh = self.freshness.is_fresh(catalog, key, self.policy(catalog))
        if is_fresh:
            note_seen("fresh")
        return is_fresh

    async def _see(self, catalog: OpenCatalog, caller: Caller, kind: Kind[N, F], name: N) -> None:
        asking = _Asking(catalog, caller, self.clients.get(catalog), self.policy(catalog), kind.key(name))
        if not kind.can_have(asking.remote.abilities, name):
            return
        state = await catalog.read()
        if await _is_asked(state) and await kind.may_know(catalog, caller, name, state):
            try:
                await self._ask(asking, lambda: self._look(asking, kind, name))
            except RemoteFileMissing as error:
                # What all who wait are told names no file.
                if error.location and await may_write_table(
                    catalog, caller, _identifier_of(asking.key), state
                ):
                    raise NamedFileMissing(error.location) from error
                raise

    async def _ask(self, asking: _Asking, look: Callable[[], Awaitable[None]]) -> None:
        """Look, once for all who wait; again while others see something else meanwhile."""

        async def look_again() -> None:
            for _ in range(_TRIES - 1):
                try:
                    return await look()
                except SeenMeanwhile:
                    continue
            await look()

        entity = asking.catalog.entity
        # With the version of its definition: after a change of the connection another remote is asked.
        place = (asking.catalog.realm, entity.id, entity.version, asking.key, passed())
        try:
            await self._together.run(place, look_again)
        except RemoteBusy:
            # Perhaps in the line of another principal, who asks too much: once more, in this one's own.
            await self._together.run((*place, asking.caller.principal), look_again)

    async def _look(self, asking: _Asking, kind: Kind[N, F], name: N) -> None:
        catalog, caller, remote, _, key = asking
        known, asked_s = await self._find_known(asking), self.freshness.now_s()
        if known is None and not await is_spelled_so(catalog, caller, remote, kind.namespace(name)):
            self._note(asking, asked_s, "negative")
            return
        try:
            answer = await kind.load(remote, name, None if known is None else known.tag)
        except kind.missing:
            await kind.forget(catalog, caller, name, known)
            self._note(asking, asked_s, "negative")
            return
        except RemoteUnavailable:
            if not self.freshness.is_showable(catalog, key, known, asking.policy):
                raise
            note_seen("stale")
            return
        if not isinstance(answer, Unchanged):
            if known is None and not await self._is_spelled_so(asking, kind, name, answer):
                self._note(asking, asked_s, "negative")
                return
            known = await self._find_moved(asking, kind, answer, known)
            await kind.backfill(catalog, caller, name, answer, known)
            self._note(asking, asked_s, "changed")
        elif known is None:
            raise RemoteMisbehaved(catalog.entity.name, problem="unchanged since nothing")
        else:
            self._note(asking, asked_s, "unchanged")

    async def _is_spelled_so(self, asking: _Asking, kind: Kind[N, F], name: N, found: F) -> bool:
        """Whether what is new here has this very name at the remote, and not another one like it."""
        catalog, caller, remote, _, key = asking
        if not await self._spelling.is_namespace_right(catalog, remote, kind.namespace(name)):
            return False
        renames = kind.renames
        if renames is None:
            return True
        namespace, leaf = _identifier_of(key)

        async def has_also(other: str) -> bool:
            there = await renames.find(remote, Identifier(namespace, other))
            return isinstance(there, Unchanged) or renames.uuid(there) == renames.uuid(found)

        wanted = Spelled(kind.label, namespace, leaf, renames.lists(remote), has_also)
        judged = await self._spelling.judge(catalog, remote, wanted)
        if judged is Judged.ONLY:
            await give_up_alike(catalog, caller, _identifier_of(key), renames.uuid(found))
        return judged is not Judged.WRONG

    async def _find_moved(
        self, asking: _Asking, kind: Kind[N, F], found: F, known: Seen | None
    ) -> Seen | None:
        """Move what has the same uuid under another name, if the remote has it there no more.

        What the mirror has under this name then.
        """
        renames = kind.renames
        if renames is None:
            return known
        catalog, caller, remote, _, key = asking
        uuid = renames.uuid(found)
        holder = await find_by_uuid(await catalog.read(), uuid)
        if holder is None or holder == key or holder[:1] != key[:1]:
            return known
        source, target = _identifier_of(holder), _identifier_of(key)
        try:
            there = await renames.find(remote, source)
        except kind.missing:
            is_there = False
        else:
            is_there = not isinstance(there, Unchanged) and renames.uuid(there) == uuid
        if is_there and not await is_misspelled(catalog, renames.lists(remote), source, target):
            # Two names of one thing. Its places are those of the first one, so the other is refused.
            return known
        await renames.move(catalog, caller, source, target, uuid)
        self.freshness.forget(catalog, holder)
        return await self._find_known(asking)

    async def _find_known(self, asking: _Asking) -> Seen | None:
        return await find_seen(await asking.catalog.read(), asking.key)

    def _note(
        self, asking: _Asking, asked_s: float, outcome: Literal["negative", "unchanged", "changed"]
    ) -> None:
        note_seen(outcome)
        self.freshness.note(asking.catalog, asking.key, asked_s, is_missing=outcome == "negative")


async def _is_asked(state: State) -> bool:
    """Whether what the remote says counts. While its catalog is moved here, what the mirror has does."""
    return await find_moving(state) is None


@lru_cache(maxsize=4_096)
def _identifier(namespace: str, name: str, field: str) -> Identifier:
    # Remembered: clients load the same tables again and again.
    return Identifier(parse_namespace(namespace), check_name(name, field=field))


def _identifier_of(key: bytes) -> Identifier:
    *namespace, name = path_of(key)
    return Identifier(tuple(namespace), name)
