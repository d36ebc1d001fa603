"""Production code, broken on purpose: each variant leaves out one thing that keeps a promise.

The simulator must notice every one of them (`test_sim.py`); a checker that cannot fail proves nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.persistence.commit.committer import Committer
from cynosure.persistence.commit.entry import Base, Entry, Group
from cynosure.persistence.commit.build import Built
from cynosure.persistence.commit.view import Reads
from cynosure.persistence.gc.collect import Collector, GcReport
from cynosure.persistence.heads import Heads
from cynosure.persistence.ids import NodeLeases
from cynosure.persistence.ids.node_lease import NodeLease, NodeLeaseRow
from cynosure.persistence.spi import ObjId, Reference, RefKey, Row
from cynosure.persistence.store import Store, Versioned
from cynosure.testing.sim.chores import WatchedTasks


class TakesUnknownForLost(Committer):
    """Tries again elsewhere although the first swap may have been applied, or may be yet."""

    async def _settle_unknown(self, group: Group, base: Base, built: Built, rows: list[Row]) -> None:
        self._lost(group)


class ReadsHeadOnce(Committer):
    """Believes that what the head does not show after an unknown swap did not and will not happen."""

    async def _settle_unknown(self, group: Group, base: Base, built: Built, rows: list[Row]) -> None:
        try:
            ref = await self._heads.load(self.key)
        except CynosureError as error:
            self._answer_all(group.entries(), error)
            return
        if ref.head == built.ref.head:
            self._won(group, built)
        else:
            self._lost(group)


class TrustsOldAnswers(Committer):
    """Does not ask again whether what a request was prepared on still holds."""

    async def _admit(self, group: Group, entry: Entry, base: Base, *, is_turn: bool) -> None:
        if entry.prepared is not None:
            entry.reads = Reads(points={}, ranges=[])
        await super()._admit(group, entry, base, is_turn=is_turn)


class TrustsOldPoints(Committer):
    """Asks again about ranges but not about single keys."""

    async def _admit(self, group: Group, entry: Entry, base: Base, *, is_turn: bool) -> None:
        entry.reads = Reads(points={}, ranges=entry.reads.ranges)
        await super()._admit(group, entry, base, is_turn=is_turn)


class TrustsOldRanges(Committer):
    """Asks again about single keys but not about ranges."""

    async def _admit(self, group: Group, entry: Entry, base: Base, *, is_turn: bool) -> None:
        entry.reads = Reads(points=entry.reads.points, ranges=[])
        await super()._admit(group, entry, base, is_turn=is_turn)


class IgnoresGeneration(Committer):
    """Commits what was prepared before a collection."""

    async def _admit(self, group: Group, entry: Entry, base: Base, *, is_turn: bool) -> None:
        same = entry.base.ref._replace(generation=base.ref.generation)
        entry.base = Base(same, entry.base.state)
        await super()._admit(group, entry, base, is_turn=is_turn)


class IgnoresDeadline(Committer):
    """Swaps however late it is."""

    def _refuse_late(self, group: Group) -> bool:
        return False


class IgnoresGuards(Committer):
    """Does not look at other references again."""

    async def _with_current_guards(self, entries: list[Entry]) -> list[Entry]:
        return entries


class ForgetsKeys(Committer):
    """Does not look for the idempotency key on the newest state."""

    async def _is_repeated(self, group: Group, entry: Entry, base: Base) -> bool:
        return False


class AnswersOnDraft(Committer):
    """Tells a request what it learned on a draft, whatever becomes of the draft."""

    async def _swap(self, group: Group, *arguments: Any, **options: Any) -> None:
        for entry, error in group.refused:
            entry.refuse(error)
        await super()._swap(group, *arguments, **options)


class SaysNothingWasApplied(Committer):
    """Gives up on an unknown swap with an error that promises too much."""

    async def _settle_unknown(self, group: Group, base: Base, built: Built, rows: list[Row]) -> None:
        for entry in group.entries():
            entry.refuse(entry.contended(self.key))


class JoinsRunningRead(Heads):
    """Shares a database read that began before the reader came."""

    _running: "dict[RefKey, asyncio.Task[Reference | None]] | None" = None

    async def find(self, key: RefKey) -> Reference | None:
        running = self._running = self._running if self._running is not None else {}
        task = running.get(key)
        if task is None or task.done():
            task = running[key] = asyncio.ensure_future(super().find(key))
        return await asyncio.shield(task)


class MarksBeforeRaising(Collector):
    """Marks first and raises the generations afterwards."""

    async def _raise_generation(self, ref: Reference) -> Reference | None:
        return ref

    async def _save(self, doomed: Any) -> Any:
        for ref in await self._backend.list_refs():
            await super()._raise_generation(ref)
        return await super()._save(doomed)


class ListsAfterMarking(Collector):
    """Takes candidates into account that were written after the generations were raised."""

    async def _mark(self, candidates: Any, *arguments: Any) -> Any:
        marked, _ = await super()._mark(candidates, *arguments)
        later, _, _ = await self._list(arguments[-1])
        del marked
        return await super()._mark(later, *arguments)


class IgnoresPins(Collector):
    """Keeps nothing for long readers."""

    async def _mark_pin(self, reach: Any, pin_id: ObjId) -> None:
        return


class IgnoresHistory(Collector):
    """Keeps the head only."""

    async def _mark_history(self, reach: Any, ref: Reference, beginning: Any, report: Any) -> None:
        if ref.head:
            await reach.mark_commit(ref.head)


class NeverDeletes(Collector):
    """Collects nothing."""

    async def run(self, **options: Any) -> GcReport:
        return await super().run(**{**options, "is_dry_run": True, "resume": None})


class TakesLeasedNodes(NodeLeases):
    """Takes a node id over that another process still holds."""

    def _free_from_us(self, row: NodeLeaseRow) -> int:
        return 0


class StartsBeforePredecessor(NodeLeases):
    """Makes ids from the beginning of its lease instead of from the end of the one before."""

    async def _try(self, node: int) -> NodeLease | int:
        tried = await super()._try(node)
        return tried._replace(not_before_ms=0) if isinstance(tried, NodeLease) else tried


class TakesUnknownUpdateForLost(Store):
    """Reports a lost race when the answer to an update was lost."""

    async def _settle(self, row: Row, expected_token: str | None) -> bool:
        try:
            if expected_token is None:
                return await self.backend.insert(row)
            return await self.backend.swap(row, expected_token)
        except OutcomeUnknown:
            return False


class TakesRunningTasks(WatchedTasks):
    """Takes a task over whose holder is alive."""

    def _is_abandoned(self, old: Versioned[Any], now_us: int, delay_s: float) -> bool:
        return True


MUTANTS: Sequence[type] = ()
