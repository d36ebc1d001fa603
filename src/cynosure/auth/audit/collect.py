"""Commits of all references of a realm, told once each.

A *round* reads the positions reached, the list of catalogs and the heads; merges the commits in between by
time; appends their events together with the new positions. Whoever comes second, in this process or another,
finds the positions moved and begins again. So any number of servers may collect at the same time, and none
need to.

A catalog that was dropped stays under observation until its references are deleted, hours later: what was
told of it by then is settled. Its drop and its place under observation are in one commit, so neither is
forgotten.

Must not break: positions are compared in the commit that moves them; what is told is never told again.
"""

import heapq
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Final, NamedTuple

from msgspec.structs import replace

from cynosure.auth.audit import metrics
from cynosure.auth.audit.backlog import REMOVED, Position, Step, read_backlog
from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.events import StoredEvent
from cynosure.auth.audit.journal import POSITIONS, Moved, append, audit_of
from cynosure.auth.audit.shared_runs import SharedRuns
from cynosure.auth.audit.told import Source, tell_gap
from cynosure.persistence.commit import State
from cynosure.persistence.index import after, decode_key, encode_key, prefix_of
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import catalog_reference, realm_reference
from cynosure.persistence.spi import REALM_SCOPE, CatalogId, ObjId, RealmId, Reference, RefKey

OPERATION: Final = "collect-events"
_REALM_SOURCES: Final = ("catalogs", "principals", "settings")
_CATALOG_SOURCES: Final = ("main", "grants")
_APPEND_EVENTS: Final = 1_000
_ROUND_EVENTS: Final = 20_000
_MOST_ROUNDS: Final = 8
"""What one call does at most: a reader waits for it."""
_FROM: Final = "from"


class _Watched(NamedTuple):
    """A reference under observation."""

    source: Source
    position: Position
    stored: bytes | None
    """The position as the index has it."""
    is_listed: bool


class _Seen(NamedTuple):
    """What follows from one state of `audit` and one list of catalogs. Mostly nothing has happened since."""

    head: ObjId
    listed: Mapping[CatalogId, str]
    positions: Mapping[RefKey, bytes]
    watched: Mapping[RefKey, _Watched]


class EventCollector:
    """Tells the commits of realms. One per process."""

    def __init__(
        self,
        persistence: Persistence,
        names: CatalogNames,
        *,
        append_events: int = _APPEND_EVENTS,
        round_events: int = _ROUND_EVENTS,
    ) -> None:
        self._persistence = persistence
        self._names = names
        self._limits = append_events, round_events
        self._runs: dict[RealmId, SharedRuns[bool]] = {}
        self._seen: dict[RealmId, _Seen] = {}

    async def collect(self, realm: RealmId) -> bool:
        """Tell everything that was acknowledged before this call; `False` when there is more than that to do.

        Only for realms that exist: what is known of one is kept for ever.
        """
        runs = self._runs.get(realm)
        if runs is None:
            runs = self._runs[realm] = SharedRuns(lambda: self._collect(realm))
        return await runs.run()

    async def close(self) -> None:
        """Wait for what is under way."""
        for runs in self._runs.values():
            await runs.close()

    async def _collect(self, realm: RealmId) -> bool:
        for _ in range(_MOST_ROUNDS):
            if await self._round(realm):
                return True
        return False

    async def _round(self, realm: RealmId) -> bool:
        """Whether everything has been told and nothing new came under observation."""
        # Order: positions before heads. A head read earlier than a position could be behind it.
        positions, watched = await self._look(realm)
        refs = await self._fetch(list(watched))
        work = _Work(self._persistence, realm, *self._limits)
        async with AsyncExitStack() as stack:
            for key, each in watched.items():
                ref = refs[key]
                if ref is None:
                    work.close_down(each)
                elif ref.head != each.position.commit:
                    backlog = read_backlog(self._persistence, each.source, ref, each.position)
                    await work.begin(await stack.enter_async_context(aclosing(backlog)), each, ref)
                elif not each.is_listed and not each.position.is_settled:
                    work.settle(each)
            return await work.tell(positions)

    async def _look(self, realm: RealmId) -> tuple[Mapping[RefKey, bytes], Mapping[RefKey, _Watched]]:
        state = (await audit_of(self._persistence, realm).read(is_fresh=True)).state
        listed = await self._names.list(realm)
        seen = self._seen.get(realm)
        if seen is None or seen.head != state.commit_id or seen.listed is not listed:
            positions = await self._load_positions(realm, state)
            watched = _watch(realm, positions, listed)
            seen = self._seen[realm] = _Seen(state.commit_id, listed, positions, watched)
        return seen.positions, seen.watched

    async def _load_positions(self, realm: RealmId, state: State) -> dict[RefKey, bytes]:
        found: dict[RefKey, bytes] = {}
        start = prefix = prefix_of(_FROM)
        while entries := await state.scan(POSITIONS, prefix=prefix, start=start, limit=1_000):
            for key, value in entries:
                _, catalog, name = decode_key(key)
                found[RefKey(realm, CatalogId(catalog), name)] = value
            start = after(entries[-1][0])
        return found

    async def _fetch(self, keys: list[RefKey]) -> dict[RefKey, Reference | None]:
        backend = self._persistence.backend
        found: dict[RefKey, Reference | None] = {}
        for at in range(0, len(keys), backend.limits.fetch_batch):
            some = keys[at : at + backend.limits.fetch_batch]
            found |= zip(some, await backend.fetch_refs(some), strict=True)
        return found


class _Work:
    """One round: what is to be told and how positions move."""

    def __init__(
        self, persistence: Persistence, realm: RealmId, append_events: int, round_events: int
    ) -> None:
        self._persistence = persistence
        self._realm = realm
        self._append_events = append_events
        self._round_events = round_events
        self._moved: dict[bytes, Moved] = {}
        self._events: list[StoredEvent] = []
        self._steps: list[tuple[int, RefKey, Step]] = []
        """The next step of each reference, the earliest first."""
        self._backlogs: dict[RefKey, tuple[AsyncGenerator[Step, None], _Watched, Reference]] = {}
        self._is_complete = True

    async def begin(self, backlog: AsyncGenerator[Step, None], watched: _Watched, ref: Reference) -> None:
        """A reference has moved."""
        self._backlogs[ref.key] = backlog, watched, ref
        await self._advance(ref.key)

    def settle(self, watched: _Watched) -> None:
        """A dropped catalog's reference has been told up to its head."""
        self._move(watched, replace(watched.position, is_settled=True))

    def close_down(self, watched: _Watched) -> None:
        """A reference is gone."""
        if watched.stored is None:
            return
        if not watched.position.is_settled:
            position, now_us = watched.position, self._persistence.clock.now_us()
            first = position.sequence + 1
            self._events.append(tell_gap(watched.source, first, first - 1, now_us, REMOVED))
        self._move(watched, None)

    async def tell(self, positions: Mapping[RefKey, bytes]) -> bool:
        """Append it all, in the order of time. Whether that was all."""
        told = 0
        while self._steps:
            _, key, step = heapq.heappop(self._steps)
            _, watched, ref = self._backlogs[key]
            is_settled = not watched.is_listed and step.commit == ref.head
            self._move(
                watched,
                Position(step.sequence, step.commit, watched.source.catalog, is_settled=is_settled),
            )
            for dropped in step.dropped:
                self._observe(dropped.id, dropped.name, positions)
            self._events += step.events
            told += len(step.events)
            await self._advance(key)
            if len(self._events) >= self._append_events and not await self._append():
                return False
            if told >= self._round_events:
                self._is_complete = False
                break
        return await self._append() and self._is_complete

    async def _advance(self, key: RefKey) -> None:
        step = await anext(self._backlogs[key][0], None)
        if step is not None:
            heapq.heappush(self._steps, (step.time_us, key, step))

    def _observe(self, catalog: CatalogId, name: str, positions: Mapping[RefKey, bytes]) -> None:
        for reference in _CATALOG_SOURCES:
            key = catalog_reference(self._realm, catalog, reference)
            at = _position_key(key)
            if key not in positions and at not in self._moved:
                self._moved[at] = Moved(None, Position(catalog=name).encode())
                self._is_complete = False

    def _move(self, watched: _Watched, position: Position | None) -> None:
        key = _position_key(watched.source.key)
        before = self._moved[key].before if key in self._moved else watched.stored
        self._moved[key] = Moved(before, None if position is None else position.encode())

    async def _append(self) -> bool:
        if not self._moved:
            return True
        events, moved = self._events, self._moved
        if not await append(self._persistence, self._realm, events, moved, operation=OPERATION):
            return False
        metrics.EVENTS.inc(len(events))
        metrics.GAPS.inc(sum(event.kind == "gap" for event in events))
        self._stored(moved)
        self._events, self._moved = [], {}
        return True

    def _stored(self, moved: Mapping[bytes, Moved]) -> None:
        """The positions are now what they were moved to: the next append begins from there."""
        for key, (backlog, watched, ref) in self._backlogs.items():
            if (each := moved.get(_position_key(key))) is not None:
                self._backlogs[key] = backlog, watched._replace(stored=each.after), ref


def _watch(
    realm: RealmId, positions: Mapping[RefKey, bytes], listed: Mapping[CatalogId, str]
) -> dict[RefKey, _Watched]:
    """Everything to look at: what belongs to the realm, listed catalogs, dropped ones still there."""
    found: dict[RefKey, _Watched] = {}
    keys = [realm_reference(realm, name) for name in _REALM_SOURCES]
    keys += [catalog_reference(realm, catalog, name) for catalog in listed for name in _CATALOG_SOURCES]
    for key in dict.fromkeys((*keys, *positions)):
        stored = positions.get(key)
        position = Position.decode(stored)
        is_listed = key.catalog == REALM_SCOPE or key.catalog in listed
        source = Source(key, listed.get(key.catalog, position.catalog))
        found[key] = _Watched(source, position, stored, is_listed)
    return found


def _position_key(key: RefKey) -> bytes:
    return encode_key(_FROM, key.catalog, key.name)
