"""Group commit: the only code that moves a reference.

Two phases. *Prepare* runs in the caller's task, in parallel with others: read the head, work the change
out, encode its objects. *Commit* runs in one task per reference and process: take what is queued, check
that each answer its preparation relied on is still the same, put all that fit into one commit object,
swap. Measured, one swap for sixteen writers instead of one each is 4-6 times faster with fsync.

    commit() ── prepare ──► queue ──► turn: admit each ──► build ──► swap ─┬─ won ──► answer all
                  ▲                      │ stale                          ├─ lost ─► queue again
                  └──────────────────────┘                                └─ unknown ► outcome.py

Must not break:
- one request's refusal, slowness or cancellation never changes what happens to its group;
- what a request was told on a *draft* is said to it only when that draft is committed;
- nothing is committed after its deadline, or under another generation than it was prepared in.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import Contended, CynosureError, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff
from cynosure.persistence import metrics
from cynosure.persistence.commit.build import Built, CommitLimits, build_commit
from cynosure.persistence.commit.outcome import settle_swap
from cynosure.persistence.commit.recent_keys import find_key
from cynosure.persistence.commit.records import COMMIT, Holds
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Prepared, Request
from cynosure.persistence.commit.view import Draft, Reads, Standing, State, Tracked, View
from cynosure.persistence.heads import Heads, missing_reference
from cynosure.persistence.ids import IdSource
from cynosure.persistence.spi import HeldRef, ObjId, Reference, RefKey, Row
from cynosure.persistence.store import Encoded, Store

R = TypeVar("R")

_TURNS_AFTER_LOSS = 64
"""After a lost race, how many groups take turns with other processes (`Backend.hold_ref`)."""
_WINS_WITHOUT_TURN = 32
"""After so many groups that won without a turn, one asks for it all the same. A turn stops only those who
ask, so a process that is always first, from its own last commit, would starve those who do."""


@dataclass(slots=True)
class Counters:
    """What the committers of one `Persistence` have seen, for status and tests (`metrics.py` counts too)."""

    commits: int = 0
    requests: int = 0
    lost: int = 0
    unknown: int = 0
    prepared_again: int = 0
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Base:
    """A reference as read, and the state at its head."""

    ref: Reference
    state: State

    def is_newer_than(self, other: "Base") -> bool:
        """Generation first: a disaster reset moves to an older sequence under a newer generation."""
        return (self.ref.generation, self.state.commit.record.sequence) > (
            other.ref.generation,
            other.state.commit.record.sequence,
        )


@dataclass(slots=True, eq=False)
class _Entry:
    """A request on its way."""

    request: Request[Any]
    backoff: Backoff
    future: asyncio.Future[Committed[Any] | AlreadyCommitted]
    base: Base
    prepared: Prepared[Any] | None = None
    reads: Reads = field(default_factory=lambda: Reads(points={}, ranges=[]))
    objects: list[Encoded] = field(default_factory=list)
    prepared_on: ObjId | None = None
    """The commit it was prepared on; `None` when that was a draft."""
    is_abandoned: bool = False
    attempts: int = 0


@dataclass(slots=True)
class _Group:
    """What one turn will commit, and what it will say to those it does not."""

    draft: Draft
    accepted: list[_Entry] = field(default_factory=list)
    refused: list[tuple[_Entry, CynosureError]] = field(default_factory=list)
    unchanged: list[_Entry] = field(default_factory=list)
    repeated: list[tuple[_Entry, _Entry]] = field(default_factory=list)
    """A request whose key another request of this group has, and that other request."""

    def entries(self) -> list[_Entry]:
        return [
            *self.accepted,
            *(entry for entry, _ in self.refused),
            *self.unchanged,
            *(entry for entry, _ in self.repeated),
        ]


class Committer:
    """Commits to one reference, from one process. Others may commit to it at the same time."""

    def __init__(
        self,
        key: RefKey,
        *,
        store: Store,
        heads: Heads,
        ids: IdSource,
        clock: Clock,
        rng: Random,
        limits: CommitLimits,
        counters: Counters,
        indexes: Mapping[str, Holds],
    ) -> None:
        self.key = key
        self._indexes = indexes
        self.store = store
        self._backend = store.backend
        self._heads = heads
        self._ids = ids
        self._clock = clock
        self._rng = rng
        self._limits = limits
        self._counters = counters
        self._queue: deque[_Entry] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._preparing: set[asyncio.Task[None]] = set()
        self._base: Base | None = None
        self._is_behind = False
        """Others have moved the reference: the next group begins by reading it."""
        self._turns_wanted = 0
        self._wins_without_turn = 0
        self._alone_for = 0
        """How many entries to commit one by one, after a group could not be built."""

    async def read(self) -> Base:
        """The current state: linearizable, one shared database read."""
        ref = await self._heads.load(self.key)
        return await self._base_of(ref)

    async def commit(self, request: Request[R]) -> Committed[R] | AlreadyCommitted:
        """Apply a change. Returns when it is durable; see `Prepared` and the errors of `prepare`.

        Raises `Contended` (nothing applied) or `OutcomeUnknown` at the deadline. Cancelling the caller
        does not undo a change that is under way.
        """
        backoff = Backoff(self._clock, self._rng, deadline_s=self._limits.deadline_s)
        base = await self.read()
        entry = _Entry(request, backoff, asyncio.get_running_loop().create_future(), base)
        found = await self._find_key(entry, base.state)
        if found is not None:
            return AlreadyCommitted(found)
        await self._prepare(entry, base.state, base.state.commit_id, base)
        assert entry.prepared is not None  # noqa: S101 - _prepare sets it or raises
        if not any(entry.prepared.changes.values()):
            sequence = base.state.commit.record.sequence
            return Committed(entry.prepared.result, base.state.commit_id, sequence)
        self._enqueue(entry)
        try:
            return await asyncio.shield(entry.future)
        except asyncio.CancelledError:
            entry.is_abandoned = True
            raise

    async def close(self) -> None:
        """Wait until everything queued is answered."""
        while self._worker is not None or self._preparing:
            tasks = [*self._preparing, *([self._worker] if self._worker else [])]
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    # --- prepare --------------------------------------------------------------------------------

    async def _prepare(self, entry: _Entry, view: View, prepared_on: ObjId | None, base: Base) -> None:
        entry.attempts += 1
        if entry.attempts > 1:
            self._counters.prepared_again += 1
            metrics.PREPARED_AGAIN.inc()
        entry.prepared = None
        tracked = Tracked(view)
        prepared = await entry.request.prepare(tracked)
        objects = [self.store.encode(new) for new in prepared.objects]
        if objects and not self._backend.limits.swap_carries_rows:
            await self._backend.write([row for each in objects for row in each.rows])
        entry.base, entry.prepared, entry.prepared_on = base, prepared, prepared_on
        entry.reads, entry.objects = tracked.reads, objects

    async def _prepare_again(self, entry: _Entry) -> None:
        """Outside the group, on a fresh head; then back into the queue."""
        try:
            base = await self.read()
            found = await self._find_key(entry, base.state)
            if found is not None:
                self._answer(entry, AlreadyCommitted(found))
                return
            await self._prepare(entry, base.state, base.state.commit_id, base)
        except Exception as error:  # Also a bug in the caller's own code is the caller's answer.
            self._refuse(entry, error)
        else:
            self._enqueue(entry)

    def _send_back(self, entry: _Entry) -> None:
        task = asyncio.create_task(self._prepare_again(entry))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    def _enqueue(self, entry: _Entry) -> None:
        self._queue.append(entry)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    # --- commit ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._turn()
        finally:
            # Set before anyone else runs, so that the next entry starts a new worker.
            self._worker = None

    async def _turn(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                wants_turn = self._turns_wanted or self._wins_without_turn >= _WINS_WITHOUT_TURN
                held = await self._take_turn(stack) if wants_turn else None
                await self._commit_group(held)
        except CynosureError as error:
            # Nothing was swapped: the head could not be read.
            self._answer_all(list(self._queue), error)
            self._queue.clear()

    async def _take_turn(self, stack: AsyncExitStack) -> HeldRef | None:
        """A turn where the backend offers one; else, after a lost race, a pause."""
        has_lost = self._turns_wanted > 0
        self._turns_wanted = max(0, self._turns_wanted - 1)
        self._wins_without_turn = 0
        hold = self._backend.hold_ref(self.key, COMMIT.name)
        if hold is None:
            self._turns_wanted = 0
            if has_lost:
                await max((entry.backoff for entry in self._queue), key=lambda each: each.waited_s).wait()
            return None
        try:
            held = await stack.enter_async_context(hold)
        except Unavailable:
            return None  # Too many want a turn: the swap itself decides.
        self._counters.turns += 1
        metrics.TURNS.inc()
        return held

    async def _commit_group(self, held: HeldRef | None) -> None:
        entries = self._take()
        if not entries:
            return
        try:
            base = await self._newest_base(entries, held)
            entries = await self._with_current_guards(entries)
        except CynosureError as error:
            self._answer_all(entries, error)
            return
        group = _Group(Draft(base.state))
        for entry in entries:
            try:
                await self._admit(group, entry, base, is_turn=held is not None)
            except CynosureError as error:
                self._refuse(entry, error)
        if not group.accepted:
            self._base = base
            self._answer_unchanged(group, base)
            return
        try:
            built = await build_commit(
                group.draft,
                base.ref,
                [(entry.request, entry.prepared) for entry in group.accepted if entry.prepared],
                ids=self._ids,
                now_us=self._clock.now_us(),
                limits=self._limits,
                indexes=self._indexes,
            )
        except CynosureError as error:
            self._cannot_build(group, error)
            return
        encoded = list(built.objects)
        if self._backend.limits.swap_carries_rows:
            encoded = [each for entry in group.accepted for each in entry.objects] + encoded
        rows = [row for each in encoded for row in each.rows]
        if self._refuse_late(group):
            return
        await self._swap(group, base, built, rows, held)

    def _refuse_late(self, group: _Group) -> bool:
        """Whether a deadline passed since the entries were taken; then the others are queued again.

        Order: right before the swap. Reading, preparing and building may take long, and a process may be
        stopped in between.
        """
        late = [entry for entry in group.accepted if not entry.backoff.remaining_s]
        for entry in late:
            self._refuse(entry, _contended(self.key, entry))
        if late:
            self._queue_again(group, [entry for entry in group.entries() if entry not in late])
        return bool(late)

    def _take(self) -> list[_Entry]:
        most = 1 if self._alone_for else self._limits.group_requests
        self._alone_for = max(0, self._alone_for - 1)
        entries: list[_Entry] = []
        rows_bytes = 0
        while self._queue and len(entries) < most and rows_bytes < self._limits.group_bytes:
            if entries and (self._queue[0].request.is_exclusive or entries[0].request.is_exclusive):
                break
            entry = self._queue.popleft()
            if entry.is_abandoned or entry.future.done():
                continue
            if not entry.backoff.remaining_s:
                self._refuse(entry, _contended(self.key, entry))
                continue
            rows_bytes += sum(each.payload_bytes for each in entry.objects)
            entries.append(entry)
        return entries

    async def _newest_base(self, entries: list[_Entry], held: HeldRef | None) -> Base:
        if held is not None:
            if held.current is None:
                raise missing_reference(self.key)
            if self._base is None or held.current != self._base.ref:
                if self._base is not None:
                    self._turns_wanted = _TURNS_AFTER_LOSS  # Others write here too, so be fair to them.
                if held.head_row is not None:
                    self.store.admit_row(COMMIT, held.head_row)
                self._base = await self._base_of(held.current)
            self._is_behind = False
            return self._base
        if self._is_behind:
            # Only now, after the pause: a head read before it would be old again, and lose again.
            self._base, self._is_behind = await self.read(), False
        base = self._base
        for entry in entries:
            if base is None or entry.base.is_newer_than(base):
                base = entry.base
        assert base is not None  # noqa: S101 - every entry has one, and there is an entry
        return base

    async def _with_current_guards(self, entries: list[_Entry]) -> list[_Entry]:
        keys = {key for entry in entries if entry.prepared for key in entry.prepared.guards}
        if not keys:
            return entries
        heads = {ref.key: ref.head for ref in await self._heads.load_many(sorted(keys))}
        current: list[_Entry] = []
        for entry in entries:
            guards = entry.prepared.guards if entry.prepared else {}
            if all(heads[key] == head for key, head in guards.items()):
                current.append(entry)
            else:
                self._send_back(entry)
        return current

    async def _admit(self, group: _Group, entry: _Entry, base: Base, *, is_turn: bool) -> None:
        if await self._is_repeated(group, entry, base):
            return
        is_usable = entry.prepared is not None and entry.base.ref.generation == base.ref.generation
        if entry.request.is_exclusive:
            is_usable = is_usable and entry.prepared_on == base.state.commit_id
        if is_usable:
            standing = await group.draft.standing(entry.reads, entry.prepared_on)
            if standing is Standing.HOLDS:
                self._accept(group, entry)
                return
        else:
            standing = Standing.STALE
        if standing is Standing.STALE and not is_turn and not entry.request.is_exclusive:
            # Preparing it here would let one slow request hold up its group; with a turn the state
            # cannot move meanwhile, so a hot entity makes progress however many processes want it.
            self._send_back(entry)
            return
        # Overtaken inside the group: its turn comes after those before it, in the same commit.
        is_alone = entry.request.is_exclusive
        view, on = (base.state, base.state.commit_id) if is_alone else (group.draft, None)
        task = asyncio.create_task(self._prepare(entry, view, on, base))
        done, _ = await asyncio.wait({task}, timeout=None if is_alone else self._limits.inline_prepare_s)
        if not done:
            self._finish_outside(entry, task)
            return
        error = task.exception()
        if error is None:
            self._accept(group, entry)
        elif isinstance(error, CynosureError):
            group.refused.append((entry, error))
        else:
            self._refuse(entry, error)

    def _finish_outside(self, entry: _Entry, task: asyncio.Task[None]) -> None:
        async def follow() -> None:
            await asyncio.wait({task})
            error = task.exception()
            if error is None:
                self._enqueue(entry)
            else:
                # What it was told may rest on a draft that never came to be: ask again on a real state.
                await self._prepare_again(entry)

        follower = asyncio.create_task(follow())
        self._preparing.add(follower)
        follower.add_done_callback(self._preparing.discard)

    def _accept(self, group: _Group, entry: _Entry) -> None:
        assert entry.prepared is not None  # noqa: S101 - only prepared entries are accepted
        if any(entry.prepared.changes.values()):
            group.draft.add(entry.prepared.changes, entry.prepared.objects)
            group.accepted.append(entry)
        else:
            group.unchanged.append(entry)

    async def _is_repeated(self, group: _Group, entry: _Entry, base: Base) -> bool:
        if not entry.request.key_hash:
            return False
        for other in group.accepted:
            if other.request.key_hash == entry.request.key_hash:
                group.repeated.append((entry, other))
                return True
        if entry.base.state.commit_id != base.state.commit_id:
            found = await self._find_key(entry, base.state)
            if found is not None:
                self._answer(entry, AlreadyCommitted(found))
                return True
        return False

    async def _find_key(self, entry: _Entry, state: State) -> ObjId | None:
        if not entry.request.key_hash:
            return None
        since_us = self._clock.now_us() - int(self._limits.key_lifetime_s * 1_000_000)
        return await find_key(state.commit, state.nodes, entry.request.key_hash, since_us=since_us)

    def _cannot_build(self, group: _Group, error: CynosureError) -> None:
        if len(group.accepted) == 1:
            self._refuse(group.accepted[0], error)
            self._return_to_queue([entry for entry in group.entries() if entry is not group.accepted[0]])
        else:
            # Whose key led into the damage is not known: let each find out alone.
            self._alone_for = len(group.entries())
            self._return_to_queue(group.entries())

    # --- swap and answers -----------------------------------------------------------------------

    async def _swap(
        self, group: _Group, base: Base, built: Built, rows: list[Row], held: HeldRef | None
    ) -> None:
        try:
            if held is not None:
                won = await held.swap(built.ref, rows)
            else:
                won = await self._backend.swap_ref(base.ref, built.ref, rows)
        except OutcomeUnknown:
            self._counters.unknown += 1
            metrics.UNKNOWN_SWAPS.inc()
            await self._settle_unknown(group, base, built, rows)
            return
        except CynosureError as error:
            self._answer_all(group.entries(), error)
            return
        if won:
            self._wins_without_turn = 0 if held is not None else self._wins_without_turn + 1
            self._won(group, built)
        else:
            self._lost(group)

    async def _settle_unknown(self, group: _Group, base: Base, built: Built, rows: list[Row]) -> None:
        backoff = max((entry.backoff for entry in group.accepted), key=lambda each: each.remaining_s)
        try:
            won = await settle_swap(
                self._backend,
                self.store,
                backoff,
                expected=base.ref,
                updated=built.ref,
                sequence=built.state.commit.record.sequence,
                rows=rows,
            )
        except CynosureError as error:
            self._is_behind = True
            self._answer_all(group.entries(), error)
            return
        if won:
            self._is_behind = True  # Others may have gone on from it.
            self._won(group, built, is_head=False)
        else:
            self._lost(group)

    def _won(self, group: _Group, built: Built, *, is_head: bool = True) -> None:
        self._counters.commits += 1
        metrics.COMMITS.inc()
        self._counters.requests += len(group.accepted)
        metrics.REQUESTS.inc(len(group.accepted))
        sequence = built.state.commit.record.sequence
        for each in built.objects:
            self.store.remember(each)
        for entry in group.accepted:
            for each in entry.objects:
                self.store.remember(each)
        if is_head:
            self._base = Base(built.ref, built.state)
            self._heads.observe(built.ref)
        for entry in [*group.accepted, *group.unchanged]:
            assert entry.prepared is not None  # noqa: S101
            self._answer(entry, Committed(entry.prepared.result, built.ref.head, sequence))
        for entry, error in group.refused:
            self._refuse(entry, error)
        for entry, _ in group.repeated:
            self._answer(entry, AlreadyCommitted(built.ref.head))

    def _lost(self, group: _Group) -> None:
        self._counters.lost += 1
        metrics.LOST_SWAPS.inc()
        self._turns_wanted = _TURNS_AFTER_LOSS
        self._is_behind = True
        self._queue_again(group, group.entries())

    def _queue_again(self, group: _Group, entries: list[_Entry]) -> None:
        """The group's draft did not come to be."""
        for entry, _ in group.refused:
            entry.prepared = None  # It was told so on that draft.
        self._return_to_queue(entries)

    def _return_to_queue(self, entries: list[_Entry]) -> None:
        self._queue.extendleft(reversed(entries))

    def _answer_unchanged(self, group: _Group, base: Base) -> None:
        record = base.state.commit.record
        for entry in group.unchanged:
            assert entry.prepared is not None  # noqa: S101
            self._answer(entry, Committed(entry.prepared.result, base.state.commit_id, record.sequence))
        for entry, error in group.refused:
            self._refuse(entry, error)

    def _answer_all(self, entries: list[_Entry], error: CynosureError) -> None:
        for entry in entries:
            self._refuse(entry, error)

    def _answer(self, entry: _Entry, outcome: Committed[Any] | AlreadyCommitted) -> None:
        if not entry.future.done():
            entry.future.set_result(outcome)

    def _refuse(self, entry: _Entry, error: BaseException) -> None:
        if not entry.future.done():
            entry.future.set_exception(error)
            if entry.is_abandoned:
                entry.future.exception()  # Nobody listens any more; that is not worth a warning.

    async def _base_of(self, ref: Reference) -> Base:
        return Base(ref, await State.load(self.store, ref.head))


def _contended(key: RefKey, entry: _Entry) -> Contended:
    return Contended(
        "Other writers kept this change from being committed until its deadline",
        fix="Try again; if it keeps happening, send fewer concurrent writers to one catalog.",
        reference=key.name,
        attempts=entry.attempts,
        waited_s=round(entry.backoff.waited_s, 3),
    )
