"""The simulator must notice production code that is broken on purpose: what cannot fail proves nothing.

Each mutant leaves out one thing that keeps a promise. Its weather is drawn as for any other run, and then
bent so that the difference matters soon. The same runs with the code as it is must break no rule.
"""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from cynosure.common.errors import CynosureError
from cynosure.persistence.commit.build import Built
from cynosure.persistence.commit.committer import Committer
from cynosure.persistence.commit.entry import Base, Entry, Group
from cynosure.persistence.commit.view import Reads
from cynosure.persistence.gc.collect import Collector, GcReport
from cynosure.persistence.gc.pins import PIN
from cynosure.persistence.heads import Heads
from cynosure.persistence.ids import NodeLeases
from cynosure.persistence.ids.node_lease import NodeLease, NodeLeaseRow
from cynosure.persistence.spi import ObjId, Reference, RefKey, Row
from cynosure.persistence.store import Versioned
from cynosure.testing.sim.chores import WatchedTasks
from cynosure.testing.sim.weather import Faults, Weather, draw_weather
from tests.robustness.mutants import Mutant, check_noticed

pytestmark = pytest.mark.usefixtures("no_logs")

_QUIET = {"crash_s": 0.0, "restart_s": 0.0, "pause_s": 0.0, "partition_s": 0.0, "outage_s": 0.0}


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
            self._won(group, built, sent_s=None)
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

    async def find(self, key: RefKey, *, is_fresh: bool = False) -> Reference | None:
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


class CountsRetentionFromMarking(Collector):
    """Lets states leave the history while it runs."""

    async def _mark(self, candidates: Any, refs: Any, pins: Any, beginning: Any, report: Any) -> Any:
        return await super()._mark(candidates, refs, pins, self._begin(), report)


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
        pin = await reach.store.fetch(PIN, pin_id)
        if pin is not None and pin.value.until_us <= self._clock.now_us():
            await super()._mark_pin(reach, pin_id)


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


class ForgetsPredecessor(NodeLeases):
    """Makes ids from its own time on, although the one before may have been ahead of it."""

    def _free_from_us(self, row: NodeLeaseRow) -> int:
        return super()._free_from_us(row) if row.holder else 0

    async def _try(self, node: int) -> NodeLease | int:
        tried = await super()._try(node)
        return tried._replace(not_before_ms=0) if isinstance(tried, NodeLease) else tried


class TakesRunningTasks(WatchedTasks):
    """Takes a task over whose holder is alive."""

    def _is_abandoned(self, old: Versioned[Any], now_us: int, delay_s: float) -> bool:
        return True


def losing_answers(weather: Weather) -> Weather:
    """Swaps whose outcome nobody is told."""
    faults = Faults(delay_s=0.005, refused=0.0, request_lost=0.02, answer_lost=0.08, late=0.08, late_s=2.0)
    return replace(calm(weather), faults=faults)


def calm(weather: Weather) -> Weather:
    """Nothing goes wrong, except that several servers want the same."""
    faults = Faults(delay_s=0.02, refused=0.0, request_lost=0.0, answer_lost=0.0, late=0.0, late_s=0.0)
    return replace(
        weather,
        servers=3,
        clients=6,
        faults=faults,
        chaos=replace(weather.chaos, **_QUIET, clock_step_s=0.0),
        has_wild_clock=False,
        staleness_s=0.0,
    )


def contended(weather: Weather) -> Weather:
    """Many clients, few names, no time to think."""
    return replace(calm(weather), think_s=0.05, names=3, operations=14, references=1)


def hedging(weather: Weather) -> Weather:
    """The same key on two servers at once."""
    return replace(contended(weather), hedging=1.0, cache_bytes=1 << 22)


def guarded(weather: Weather) -> Weather:
    """Two references that change all the time, and changes that rely on both."""
    return replace(contended(weather), references=2, guards=0.8, slow_prepare=0.0)


def reading(weather: Weather) -> Weather:
    """Mostly reads, from servers that are far from the database."""
    faults = replace(weather.faults, delay_s=0.06, refused=0.0, request_lost=0.0, answer_lost=0.0, late=0.0)
    return replace(contended(weather), reads=0.6, servers=2, faults=faults, answers_at_once=False)


def stopping(weather: Weather) -> Weather:
    """Servers that are stopped for longer than a deadline."""
    chaos = replace(weather.chaos, **{**_QUIET, "pause_s": 1.0}, long_pause=0.8)
    return replace(contended(weather), think_s=0.5, chaos=chaos, servers=2)


def collecting(weather: Weather) -> Weather:
    """Collections all the time, and one server whose rows look hours old from the beginning."""
    return replace(
        contended(weather),
        think_s=0.5,
        has_wild_clock=True,
        has_tasks=False,
        swap_carries_rows=False,
        slow_prepare=1.0,
        chaos=replace(weather.chaos, **_QUIET, clock_step_s=0.0, collect_s=0.3),
        gc=msgspec.structs.replace(weather.gc, rows_per_second=0),
    )


def remembering(weather: Weather) -> Weather:
    """A short history and slow collections, while clients go back to states that are about to leave it."""
    return replace(
        calm(weather),
        think_s=2.0,
        operations=20,
        has_tasks=False,
        past=0.5,
        recent_heads=1,
        chaos=replace(weather.chaos, **_QUIET, collect_s=1.0),
        gc=msgspec.structs.replace(weather.gc, rows_per_second=20),
    )


def handing_over(weather: Weather) -> Weather:
    """Servers come and go, so node ids and tasks go from hand to hand."""
    chaos = replace(weather.chaos, **{**_QUIET, "restart_s": 0.3, "crash_s": 5.0}, clock_step_s=0.5)
    return replace(calm(weather), chaos=chaos, servers=5, think_s=0.3, has_tasks=True, row_bytes=1 << 20)


ORDER = (
    "results are those of the order in the chain",
    "a commit holds what the state allows",
    "a refusal is true of a state in its span",
)
TWICE = (
    "a request is committed once",
    "a key is committed once",
    "unavailable means nothing was applied",
    "what was refused is not committed",
    "an answer names its own commit and result",
)
KEPT = (
    "nothing in use is collected",
    "everything reachable is there",
    "retained history can be restored",
    "a healed store works",
)
LATER = ("the next holder of a node id starts later", "ids are unique")

MUTANTS = (
    Mutant(TakesUnknownForLost, "committer", losing_answers, TWICE),
    Mutant(ReadsHeadOnce, "committer", losing_answers, TWICE),
    Mutant(SaysNothingWasApplied, "committer", losing_answers, TWICE),
    Mutant(TrustsOldAnswers, "committer", contended, ORDER),
    Mutant(TrustsOldPoints, "committer", contended, ORDER),
    Mutant(TrustsOldRanges, "committer", contended, ORDER),
    Mutant(AnswersOnDraft, "committer", contended, ORDER),
    Mutant(IgnoresGeneration, "committer", collecting, KEPT),
    Mutant(IgnoresDeadline, "committer", stopping, ("no attempt begins after the deadline",)),
    Mutant(IgnoresGuards, "committer", guarded, ("a guard holds after the preparation",)),
    Mutant(ForgetsKeys, "committer", hedging, ("a key is committed once",)),
    Mutant(JoinsRunningRead, "heads", reading, ("reads are linearizable", *ORDER)),
    Mutant(MarksBeforeRaising, "collector", collecting, KEPT),
    Mutant(ListsAfterMarking, "collector", collecting, KEPT),
    Mutant(CountsRetentionFromMarking, "collector", remembering, KEPT),
    Mutant(IgnoresPins, "collector", remembering, KEPT),
    Mutant(IgnoresHistory, "collector", remembering, KEPT),
    Mutant(NeverDeletes, "collector", calm, ("garbage is collected",)),
    Mutant(TakesLeasedNodes, "leases", handing_over, ("one holds a node id",)),
    Mutant(ForgetsPredecessor, "leases", handing_over, LATER),
    Mutant(TakesRunningTasks, "tasks", handing_over, ("one runs a coordinated task",)),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.variant.__name__)
def test_the_simulator_notices_broken_code(mutant: Mutant) -> None:
    check_noticed(mutant, draw_weather)
