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
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from random import Random
from typing import Any, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, CynosureError, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.persistence import metrics
from cynosure.persistence.commit.build import Built, CommitLimits, build_commit
from cynosure.persistence.commit.entry import Base, Counters, Entry, Group
from cynosure.persistence.commit.outcome import settle_swap
from cynosure.persistence.commit.recent_keys import find_key
from cynosure.persistence.commit.records import COMMIT, Holds
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Request
from cynosure.persistence.commit.view import Draft, Standing, State, Tracked, View
from cynosure.persistence.heads import Heads, missing_reference
from cynosure.persistence.ids import IdSource
from cynosure.persistence.spi import ObjId, Reference, RefKey, Row
from cynosure.persistence.store import Store

R = TypeVar("R")
_log = Log(__name__)

_TURNS_AFTER_LOSS = 64
"""After a lost race, how many groups take turns with other processes (`Backend.hold_ref`)."""
_WINS_WITHOUT_TURN = 32
"""After so many groups that won without a turn, one asks for it all the same. A turn stops only those who
ask, so a process that is always first, from its own last commit, would starve those who do."""
_GROUPS_PER_TURN = 8
"""How many groups may follow each other in one turn. Handing it over costs three round trips, and the next
process has to read and decode the head that was just written."""
_PATIENCE_S = 0.005
"""How long one who has the turn waits for those who are being prepared, for the same reason."""
_ASSUMED_S = 1.0
"""How long the head a process last wrote or read is taken for the current one when a change is prepared."""
_DOUBTED_S = 5.0
"""After a lost race, how long it is not."""
_ARRIVAL_STEPS = 3
"""Steps of the event loop from an answer to the caller's next request."""


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
        self._queue: deque[Entry] = deque()
        self._in_hand: list[Entry] = []
        """Taken from the queue and not answered yet."""
        self._arriving = 0
        """How many requests are being prepared for the first time."""
        self._all_here: asyncio.Future[None] | None = None
        self._worker: asyncio.Task[None] | None = None
        self._preparing: set[asyncio.Task[None]] = set()
        self._base: Base | None = None
        self._base_s = 0.0
        """When the base was known to be the head."""
        self._doubted_until_s = 0.0
        self._is_assumed = False
        """Nobody has read the head that the group in hand is based on since its members came."""
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
        self._arriving += 1
        try:
            assumed = self._assumed_base(request)
            base = assumed or await self.read()
            entry = Entry(request, backoff, asyncio.get_running_loop().create_future(), base)
            if assumed is None or not await self._becomes_change(entry):
                entry.has_read_head = True
                outcome = await self._prepare_on(entry, base if assumed is None else await self.read())
                if outcome is not None:
                    return outcome
            self._enqueue(entry)
        finally:
            self._arrive()
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

    async def _prepare(self, entry: Entry, view: View, prepared_on: ObjId | None, base: Base) -> None:
        entry.attempts += 1
        if entry.attempts > 1:
            self._counters.prepared_again += 1
            metrics.PREPARED_AGAIN.inc()
        entry.prepared = None
        tracked = Tracked(view)
        prepared = await entry.request.prepare(tracked)
        _check_indexes(prepared.changes, self._indexes)
        objects = [self.store.encode(new) for new in prepared.objects]
        if objects and not self._backend.limits.swap_carries_rows:
            await self._backend.write([row for each in objects for row in each.rows])
        entry.base, entry.prepared, entry.prepared_on = base, prepared, prepared_on
        entry.reads, entry.objects = tracked.reads, objects

    def _assumed_base(self, request: Request[Any]) -> Base | None:
        """The head as this process knows it, when it is probably still the head."""
        now_s = self._clock.monotonic_s()
        is_likely = self._doubted_until_s <= now_s <= self._base_s + _ASSUMED_S
        return self._base if is_likely and not request.is_exclusive else None

    async def _becomes_change(self, entry: Entry) -> bool:
        """Prepare on an assumed head, which saves a read; whether a change came of it.

        A change is checked against the true head when it is committed. Any other answer must rest on a
        head that was read after the request arrived.
        """
        try:
            return await self._prepare_on(entry, entry.base) is None
        except CynosureError:
            return False

    async def _prepare_on(self, entry: Entry, base: Base) -> Committed[Any] | AlreadyCommitted | None:
        """Prepare on a committed state. An outcome when there is nothing to commit."""
        found = await self._find_key(entry, base.state)
        if found is not None:
            return AlreadyCommitted(found)
        await self._prepare(entry, base.state, base.state.commit_id, base)
        assert entry.prepared is not None  # noqa: S101 - _prepare sets it or raises
        if any(entry.prepared.changes.values()):
            return None
        return Committed(entry.prepared.result, base.state.commit_id, base.state.commit.record.sequence)

    async def _prepare_again(self, entry: Entry) -> None:
        """Outside the group, on a fresh head; then back into the queue."""
        entry.has_read_head = True
        try:
            outcome = await self._prepare_on(entry, await self.read())
        except Exception as error:  # Also a bug in the caller's own code is the caller's answer.
            entry.refuse(error)
            return
        if outcome is None:
            self._enqueue(entry)
        else:
            entry.answer(outcome)

    def _send_back(self, entry: Entry) -> None:
        task = asyncio.create_task(self._prepare_again(entry))
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    def _enqueue(self, entry: Entry) -> None:
        self._queue.append(entry)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())

    # --- commit ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while self._queue:
                try:
                    await self._let_arrive()
                    await self._turn()
                except Exception as error:
                    self._break_off(error)
        finally:
            # Set before anyone else runs, so that the next entry starts a new worker.
            self._worker = None

    def _break_off(self, defect: Exception) -> None:
        """A defect of ours. Whoever waits must hear of it, and not that nothing was applied."""
        _log.event("commit.broken_off", level=ERROR, error=defect, with_traceback=True, ref=self.key.name)
        unknown = OutcomeUnknown(
            "A defect interrupted this commit",
            fix="Read the state again before you repeat the request, and report the log.",
            reference=self.key.name,
        )
        unknown.__cause__ = defect
        self._answer_all(self._in_hand, unknown)
        self._is_behind = True

    async def _let_arrive(self, *, patience_s: float = 0.0) -> None:
        """Callers answered a moment ago often come again at once: they shall be in the next group."""
        for _ in range(_ARRIVAL_STEPS):
            await asyncio.sleep(0)
        if self._arriving and patience_s:
            self._all_here = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._all_here}, timeout=patience_s)

    def _arrive(self) -> None:
        self._arriving -= 1
        if not self._arriving and self._all_here is not None and not self._all_here.done():
            self._all_here.set_result(None)

    async def _turn(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                wants_turn = self._turns_wanted or self._wins_without_turn >= _WINS_WITHOUT_TURN
                is_turn = await self._take_turn(stack) if wants_turn else False
                for _ in range(_GROUPS_PER_TURN):
                    await self._commit_group(is_turn=is_turn)
                    # Only where others write too; else a turn is a question, not a need.
                    if not (is_turn and self._turns_wanted) or self._is_behind:
                        break
                    await self._let_arrive(patience_s=_PATIENCE_S)
                    if not self._queue:
                        break
        except CynosureError as error:
            # Nothing was swapped: the head could not be read.
            self._answer_all(list(self._queue), error)
            self._queue.clear()

    async def _take_turn(self, stack: AsyncExitStack) -> bool:
        """A turn where the backend offers one, and the head as it began; else, after a lost race, a pause."""
        has_lost = self._turns_wanted > 0
        self._turns_wanted = max(0, self._turns_wanted - 1)
        self._wins_without_turn = 0
        hold = self._backend.hold_ref(self.key, COMMIT.name)
        if hold is None:
            self._turns_wanted = 0
            if has_lost:
                await max((entry.backoff for entry in self._queue), key=lambda each: each.waited_s).wait()
            return False
        try:
            held = await stack.enter_async_context(hold)
        except Unavailable:
            return False  # Too many want a turn: the swap itself decides.
        self._counters.turns += 1
        metrics.TURNS.inc()
        if held.current is None:
            raise missing_reference(self.key)
        if self._base is None or held.current != self._base.ref:
            if self._base is not None:
                self._turns_wanted = _TURNS_AFTER_LOSS  # Others write here too, so be fair to them.
            if held.head_row is not None:
                self.store.admit_row(COMMIT, held.head_row)
            self._know(await self._base_of(held.current))
        self._is_behind = False
        self._doubted_until_s = 0.0  # Who waits for this turn does not move the head meanwhile.
        return True

    async def _commit_group(self, *, is_turn: bool) -> None:
        entries = self._in_hand = self._take()
        if not entries:
            return
        try:
            base = await self._newest_base(entries, is_turn=is_turn)
            entries = await self._with_current_guards(entries)
        except CynosureError as error:
            self._answer_all(entries, error)
            return
        group = Group(Draft(base.state))
        for entry in entries:
            try:
                await self._admit(group, entry, base, is_turn=is_turn)
            except CynosureError as error:
                entry.refuse(error)
        if not group.accepted:
            # Without a swap nothing proves that this was the head: they need one that is read for them.
            for entry in group.entries():
                self._send_back(entry)
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
        await self._swap(group, base, built, rows, is_turn=is_turn)

    def _refuse_late(self, group: Group) -> bool:
        """Whether a deadline passed since the entries were taken; then the others are queued again.

        Order: right before the swap. Reading, preparing and building may take long, and a process may be
        stopped in between.
        """
        late = [entry for entry in group.accepted if not entry.backoff.remaining_s]
        for entry in late:
            entry.refuse(entry.contended(self.key))
        if late:
            self._queue_again(group, [entry for entry in group.entries() if entry not in late])
        return bool(late)

    def _take(self) -> list[Entry]:
        most = 1 if self._alone_for else self._limits.group_requests
        self._alone_for = max(0, self._alone_for - 1)
        entries: list[Entry] = []
        rows_bytes = 0
        while self._queue and len(entries) < most and rows_bytes < self._limits.group_bytes:
            if entries and (self._queue[0].request.is_exclusive or entries[0].request.is_exclusive):
                break
            entry = self._queue.popleft()
            if entry.is_abandoned or entry.future.done():
                continue
            if not entry.backoff.remaining_s:
                entry.refuse(entry.contended(self.key))
                continue
            rows_bytes += sum(each.payload_bytes for each in entry.objects)
            entries.append(entry)
        return entries

    async def _newest_base(self, entries: list[Entry], *, is_turn: bool) -> Base:
        self._is_assumed = False
        if is_turn:
            assert self._base is not None  # noqa: S101 - a turn begins with reading it
            return self._base
        if not self._is_behind:
            self._is_assumed = not any(entry.has_read_head for entry in entries)
        else:
            # Only now, after the pause: a head read before it would be old again, and lose again.
            self._know(await self.read())
            self._is_behind = False
        base = self._base
        for entry in entries:
            if base is None or entry.base.is_newer_than(base):
                base = entry.base
        assert base is not None  # noqa: S101 - every entry has one, and there is an entry
        return base

    def _know(self, base: Base) -> None:
        self._base, self._base_s = base, self._clock.monotonic_s()

    async def _with_current_guards(self, entries: list[Entry]) -> list[Entry]:
        keys = {key for entry in entries if entry.prepared for key in entry.prepared.guards}
        if not keys:
            return entries
        found = await asyncio.gather(*(self._heads.find(key) for key in sorted(keys)))
        heads = {ref.key: ref.head for ref in found if ref is not None}
        current: list[Entry] = []
        for entry in entries:
            guards = entry.prepared.guards if entry.prepared else {}
            if all(heads.get(key) == head for key, head in guards.items()):
                current.append(entry)
            else:
                self._send_back(entry)
        return current

    async def _admit(self, group: Group, entry: Entry, base: Base, *, is_turn: bool) -> None:
        if await self._is_repeated(group, entry, base):
            return
        is_usable = entry.prepared is not None and entry.base.ref.generation == base.ref.generation
        if entry.request.is_exclusive:
            is_usable = is_usable and entry.prepared_on == base.state.commit_id
        if is_usable:
            standing = await group.draft.standing(entry.reads, entry.prepared_on)
            if standing is Standing.HOLDS:
                group.accept(entry)
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
            group.accept(entry)
        elif isinstance(error, CynosureError):
            group.refused.append((entry, error))
        else:
            entry.refuse(error)

    def _finish_outside(self, entry: Entry, task: asyncio.Task[None]) -> None:
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

    async def _is_repeated(self, group: Group, entry: Entry, base: Base) -> bool:
        if not entry.request.key_hash:
            return False
        for other in group.accepted:
            if other.request.key_hash == entry.request.key_hash:
                group.repeated.append((entry, other))
                return True
        if entry.base.state.commit_id != base.state.commit_id:
            found = await self._find_key(entry, base.state)
            if found is not None:
                entry.answer(AlreadyCommitted(found))
                return True
        return False

    async def _find_key(self, entry: Entry, state: State) -> ObjId | None:
        if not entry.request.key_hash:
            return None
        since_us = self._clock.now_us() - int(self._limits.key_lifetime_s * 1_000_000)
        return await find_key(state.commit, state.nodes, entry.request.key_hash, since_us=since_us)

    def _cannot_build(self, group: Group, error: CynosureError) -> None:
        if len(group.accepted) == 1:
            group.accepted[0].refuse(error)
            self._queue_again(group, group.entries()[1:])
        else:
            # Whose key led into the damage is not known: let each find out alone.
            self._alone_for = len(group.entries())
            self._queue_again(group, group.entries())

    # --- swap and answers -----------------------------------------------------------------------

    async def _swap(self, group: Group, base: Base, built: Built, rows: list[Row], *, is_turn: bool) -> None:
        try:
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
            self._wins_without_turn = 0 if is_turn else self._wins_without_turn + 1
            self._won(group, built)
        else:
            self._lost(group)

    async def _settle_unknown(self, group: Group, base: Base, built: Built, rows: list[Row]) -> None:
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

    def _won(self, group: Group, built: Built, *, is_head: bool = True) -> None:
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
            self._know(Base(built.ref, built.state))
            self._heads.observe(built.ref)
        for entry in [*group.accepted, *group.unchanged]:
            assert entry.prepared is not None  # noqa: S101
            entry.answer(Committed(entry.prepared.result, built.ref.head, sequence))
        for entry, error in group.refused:
            entry.refuse(error)
        for entry, _ in group.repeated:
            entry.answer(AlreadyCommitted(built.ref.head))

    def _lost(self, group: Group) -> None:
        self._counters.lost += 1
        metrics.LOST_SWAPS.inc()
        self._doubted_until_s = self._clock.monotonic_s() + _DOUBTED_S
        self._is_behind = True
        if not self._is_assumed:
            # Losing from a head that was only assumed is no sign of a crowd: read it, and go on at once.
            self._turns_wanted = _TURNS_AFTER_LOSS
        self._queue_again(group, group.entries())

    def _queue_again(self, group: Group, entries: list[Entry]) -> None:
        """The group's draft did not come to be."""
        for entry, _ in group.refused:
            entry.prepared = None  # It was told so on that draft.
        self._queue.extendleft(reversed(entries))

    def _answer_all(self, entries: list[Entry], error: CynosureError) -> None:
        for entry in entries:
            entry.refuse(error)

    async def _base_of(self, ref: Reference) -> Base:
        return Base(ref, await State.load(self.store, ref.head))


def _check_indexes(changed: Iterable[str], known: Mapping[str, Holds]) -> None:
    # Found out here, a wrong name is its own request's trouble; when building, it would be the group's.
    for name in changed:
        if name not in known:
            raise BadInput("No such index", field="changes", fix=f"Use one of {sorted(known)}.", index=name)
