"""Group commit: the only code that moves a reference.

*Prepare* runs in the caller's task: take the head as known or as read, work the change out, encode. *Commit*
runs in one task per reference and process: take what is queued, check that every answer a preparation relied
on still holds, put all that fit into one commit object, swap: one flush for all (measured: 6 times the rate).

    commit() ── prepare ──► queue ──► turn: admit each ──► build ──► swap ─┬─ won ──► answer all
                  ▲                      │ stale                          ├─ lost ─► queue again
                  └──────────────────────┘                                └─ unknown ► outcome.py

Must not break:
- one request's refusal, slowness or cancellation never changes what happens to its group;
- what a request was told on a *draft* is said to it only when that draft is committed;
- nothing is committed after its deadline, or under another generation than it was prepared in;
- an answer without a swap (a refusal, "nothing to do") rests on a head read after the request arrived.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from random import Random
from typing import TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.common.retry import Backoff
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.persistence import metrics
from cynosure.persistence.commit.arrivals import Arrivals
from cynosure.persistence.commit.build import Built, CommitLimits, build_commit
from cynosure.persistence.commit.entry import Base, Counters, Entry, Group, broken_off
from cynosure.persistence.commit.guarding import split_by_guards
from cynosure.persistence.commit.head_belief import Company, KnownHead
from cynosure.persistence.commit.outcome import settle_swap
from cynosure.persistence.commit.preparing import Preparer
from cynosure.persistence.commit.records import COMMIT, Holds
from cynosure.persistence.commit.request import AlreadyCommitted, Committed, Request
from cynosure.persistence.commit.view import Draft, Standing, State
from cynosure.persistence.heads import Heads, missing_reference
from cynosure.persistence.ids import IdSource
from cynosure.persistence.spi import ObjId, Reference, RefKey, Row
from cynosure.persistence.store import Store

R = TypeVar("R")
_log = Log(__name__)

_GROUPS_PER_TURN = 8
"""How many groups may follow each other in one turn. Handing it over costs three round trips, and the next
process has to read and decode the head that was just written."""
_PATIENCE_S = 0.005
"""How long one who has the turn waits for those who are being prepared, for the same reason."""


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
        self._arrivals = Arrivals()
        self._worker: asyncio.Task[None] | None = None
        self._preparing: set[asyncio.Task[None]] = set()
        self._preparer = Preparer(store, clock, limits, counters, indexes)
        self._head = KnownHead(clock)
        self._is_assumed = False
        """Nobody has read the head that the group in hand is based on since its members came."""
        self._company = Company()
        self._alone_for = 0
        """How many entries to commit one by one, after a group could not be built."""
        self._last_read: Base | None = None

    async def read(self, *, is_fresh: bool = False) -> Base:
        """The current state (`Heads.find`). While nothing moves, the same object."""
        ref = None if is_fresh else self._heads.take_ahead(self.key)
        if ref is None:
            ref = await self._heads.load(self.key, is_fresh=is_fresh)
        base = self._last_read
        if base is None or base.ref != ref:
            base = self._last_read = await self._base_of(ref)
        return base

    async def find_key(self, key_hash: str) -> ObjId | None:
        """The commit of the request with this idempotency key, if it is in the current state."""
        return await self._preparer.find_key(key_hash, (await self.read()).state)

    async def commit(self, request: Request[R]) -> Committed[R] | AlreadyCommitted:
        """Apply a change. Returns when it is durable; see `Prepared` and the errors of `prepare`.

        Raises `Contended` (nothing applied) or `OutcomeUnknown` at the deadline. Cancelling the caller
        does not undo a change that is under way.
        """
        backoff = Backoff(self._clock, self._rng, deadline_s=self._limits.deadline_s)
        with self._arrivals.one():
            assumed = None if request.is_exclusive else self._head.assumed()
            base = assumed or await self.read()
            entry = Entry(request, backoff, asyncio.get_running_loop().create_future(), base)
            if assumed is None or not await self._becomes_change(entry):
                entry.has_read_head = True
                head = base if assumed is None else await self.read()
                outcome = await self._preparer.prepare_on(entry, head)
                if outcome is not None:
                    return outcome
            self._enqueue(entry)
        # Whatever this request reads from here on must show what it did.
        self._heads.drop_ahead(self.key)
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

    async def _becomes_change(self, entry: Entry) -> bool:
        """Prepare on an assumed head, which saves a read; whether a change came of it.

        A change is checked against the true head when it is committed. Any other answer must rest on a
        head that was read after the request arrived.
        """
        try:
            return await self._preparer.prepare_on(entry, entry.base) is None
        except CynosureError:
            return False

    async def _prepare_again(self, entry: Entry) -> None:
        """Outside the group, on a fresh head; then back into the queue."""
        entry.has_read_head = True
        try:
            outcome = await self._preparer.prepare_on(entry, await self.read(is_fresh=True))
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
            # A context of its own: it works for others too, who must not log or read as this request.
            self._worker = asyncio.create_task(self._work(), context=Context())

    # --- commit ---------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while self._queue:
                try:
                    await self._arrivals.wait()
                    await self._turn()
                except Exception as error:
                    self._break_off(error)
        finally:
            # Set before anyone else runs, so that the next entry starts a new worker.
            self._worker = None

    def _break_off(self, defect: Exception) -> None:
        """A defect of ours. Whoever waits must hear of it, and not that nothing was applied."""
        _log.event("commit.broken_off", level=ERROR, error=defect, with_traceback=True, ref=self.key.name)
        self._answer_all(self._in_hand, broken_off(self.key, defect))
        self._head.is_behind = True

    async def _turn(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                is_turn = await self._take_turn(stack) if self._company.wants_turn else False
                for _ in range(_GROUPS_PER_TURN):
                    await self._commit_group(is_turn=is_turn)
                    # Only where others write too; else a turn is a question, not a need.
                    if not (is_turn and self._company.is_known) or self._head.is_behind:
                        break
                    await self._arrivals.wait(patience_s=_PATIENCE_S)
                    if not self._queue:
                        break
        except CynosureError as error:
            # Nothing was swapped: the head could not be read.
            self._answer_all(list(self._queue), error)
            self._queue.clear()

    async def _take_turn(self, stack: AsyncExitStack) -> bool:
        """A turn where the backend offers one, and the head as it began; else, after a lost race, a pause."""
        has_lost = self._company.is_known
        self._company.ask()
        hold = self._backend.hold_ref(self.key, COMMIT.name)
        if hold is None:
            self._company.forget()
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
        known = self._head.base
        if known is None or held.current != known.ref:
            if known is not None:
                self._company.meet()  # So be fair to them.
            if held.head_row is not None:
                self.store.admit_row(COMMIT, held.head_row)
            self._head.know(await self._base_of(held.current))
        self._head.trust()
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
            rows_bytes += entry.size_bytes
            entries.append(entry)
        return entries

    async def _newest_base(self, entries: list[Entry], *, is_turn: bool) -> Base:
        self._is_assumed = False
        base = self._head.base
        if is_turn:
            assert base is not None  # noqa: S101 - a turn begins with reading it
            return base
        if not self._head.is_behind:
            self._is_assumed = not any(entry.has_read_head for entry in entries)
        else:
            # Only now, after the pause: a head read before it would be old again, and lose again.
            base = await self.read(is_fresh=True)
            self._head.know(base)
            self._head.is_behind = False
        for entry in entries:
            if base is None or entry.base.is_newer_than(base):
                base = entry.base
        assert base is not None  # noqa: S101 - every entry has one, and there is an entry
        return base

    async def _with_current_guards(self, entries: list[Entry]) -> list[Entry]:
        holding, moved = await split_by_guards(entries, self._heads, patience_s=self._limits.inline_prepare_s)
        for entry in moved:
            self._send_back(entry)
        return holding

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
        task = asyncio.create_task(self._preparer.prepare(entry, view, on, base))
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
            if task.exception() is None:
                self._enqueue(entry)
            else:
                # What it was told may rest on a draft that never came to be: ask again on a real state.
                await self._prepare_again(entry)

        follower = asyncio.create_task(follow())
        self._preparing.add(follower)
        follower.add_done_callback(self._preparing.discard)

    async def _is_repeated(self, group: Group, entry: Entry, base: Base) -> bool:
        keys = entry.request.keys
        if not keys:
            return False
        if taken := [key for other in group.accepted for key in other.keys if key in keys]:
            group.repeated.append((entry, taken[0]))
            return True
        if entry.base.state.commit_id != base.state.commit_id:
            for key in keys:
                found = await self._preparer.find_key(key, base.state, absent_in=entry.base.state)
                if found is not None:
                    entry.answer(AlreadyCommitted(found, key))
                    return True
        return False

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
        sent_s = self._clock.monotonic_s()
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
            self._company.win(is_turn=is_turn)
            self._won(group, built, sent_s=sent_s)
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
            self._head.is_behind = True
            self._answer_all(group.entries(), error)
            return
        if won:
            self._head.is_behind = True  # Others may have gone on from it.
            self._won(group, built, sent_s=None)
        else:
            self._lost(group)

    def _won(self, group: Group, built: Built, *, sent_s: float | None) -> None:
        """`sent_s` is when the swap was sent; `None` when others may have moved the head since."""
        self._counters.commits += 1
        metrics.COMMITS.inc()
        self._counters.requests += len(group.accepted)
        metrics.REQUESTS.inc(len(group.accepted))
        sequence = built.state.commit.record.sequence
        for each in [*built.objects, *(each for entry in group.accepted for each in entry.objects)]:
            self.store.remember(each)
        if sent_s is not None:
            self._head.know(Base(built.ref, built.state))
            self._heads.observe(built.ref, sent_s=sent_s)
        for entry in [*group.accepted, *group.unchanged]:
            assert entry.prepared is not None  # noqa: S101
            entry.answer(Committed(entry.prepared.result, built.ref.head, sequence))
        for entry, error in group.refused:
            entry.refuse(error)
        for entry, key in group.repeated:
            entry.answer(AlreadyCommitted(built.ref.head, key))

    def _lost(self, group: Group) -> None:
        self._counters.lost += 1
        metrics.LOST_SWAPS.inc()
        self._head.doubt()
        if not self._is_assumed:
            # Losing from a head that was only assumed is no sign of a crowd: read it, and go on at once.
            self._company.meet()
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
