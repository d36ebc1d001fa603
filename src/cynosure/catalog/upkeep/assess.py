"""What is to be done for the tables of a catalog now, and why all else is not: the plan.

The cheapest facts decide first: switches, what is under way, schedule, window, whether the table changed. Of
what is left the longest waiting comes first, and only for as many as may be under way are files read.

Must not break: nothing is changed here, so that a plan can be asked for at any time; what it says
would run is what the scheduler orders (`scheduler.py`).
"""

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.upkeep.ends import with_ends
from cynosure.catalog.upkeep.facts import load_surveyed, weigh
from cynosure.catalog.upkeep.runs import Known, Upkeep, load_known
from cynosure.catalog.upkeep.survey import MOST_TABLES, Work, survey
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.persistence.commit import State
from cynosure.persistence.spi import ObjId

MOST_READ: Final = 100
"""Tables whose files are looked at in one round."""
_AT_ONCE: Final = 200
_WHEN_CHANGED: Final = frozenset({TaskType.DATA_COMPACTION, TaskType.METADATA_COMPACTION})
"""Kinds that find nothing to do in a table that is as they left it."""


class Decision(StrEnum):
    """What is to be done, or why nothing is."""

    RUN = "run"
    DISABLED = "disabled"
    MALFORMED = "malformed"
    EXTERNAL = "external"
    RESTRICTED = "restricted"
    OFF = "off"
    NO_SERVICE = "no-service"
    RUNNING = "running"
    NOT_DUE = "not-due"
    OUTSIDE_WINDOW = "outside-window"
    UNCHANGED = "unchanged"
    BELOW_THRESHOLDS = "below-thresholds"
    WAITING = "waiting"
    FAILED = "failed"


class Assessed(Struct, frozen=True):
    """One policy and table, and what is decided."""

    work: Work
    decision: Decision
    why: str
    due_us: int = 0
    next_us: int | None = None
    """When it is looked at again; `None` when that depends on something else than time."""
    task_id: str = ""
    """Of the task under way."""
    numbers: dict[str, int | float] = {}
    upkeep: Upkeep | None = None
    table: ManagedTable | None = None
    """As it was when it was decided to run."""
    is_looked: bool = False
    """Whether files were read for it, so that it need not be looked at again before it is due again."""


class Assessment(Struct, frozen=True):
    """What is decided for all tables with policies."""

    entries: Sequence[Assessed]
    """In the order of the tables."""
    next_key: bytes | None = None
    """Where the tables begin that were too many for this time."""


async def assess(
    catalog: OpenCatalog,
    caller: Caller,
    *,
    start: bytes = b"",
    below: Namespace = (),
    most: int = MOST_TABLES,
) -> Assessment:
    """What is to be done now, for tables below a namespace, from a key of `names` on: see `survey`."""
    now_us = catalog.shared.persistence.clock.now_us()
    known = await with_ends(catalog, await load_known(catalog))
    state = await catalog.read()
    found = await survey(catalog, state, start=start, below=below, most=most)
    cheap: list[Assessed] = []
    for work in found.works:
        cheap.append(_decide(catalog, work, known, now_us))
        if len(cheap) % _AT_ONCE == 0:
            await asyncio.sleep(0)  # Others have requests.
    chosen = await _choose(catalog, caller, state, known, cheap)
    return Assessment([chosen.get(number, each) for number, each in enumerate(cheap)], found.next_key)


def _decide(catalog: OpenCatalog, work: Work, known: Known, now_us: int) -> Assessed:
    """From what is in memory. `RUN` means no more than that nothing is in the way so far."""
    rule, table = work.rule, work.table
    upkeep = known.get((table.id, rule.task_type))
    made = Assessed(work, Decision.RUN, "", upkeep=upkeep)
    refused = _refuse(catalog, work)
    if refused is not None:
        return replace(made, decision=refused[0], why=refused[1])
    under_way = next((run for run in upkeep.runs if run.is_under_way), None) if upkeep else None
    if under_way is not None:
        return replace(made, decision=Decision.RUNNING, why="a task is under way", task_id=under_way.task_id)
    due_us = _due_us(work, upkeep)
    made = replace(made, due_us=due_us)
    if now_us < due_us:
        looked = upkeep.looked if upkeep else None
        why = (
            "it is not due yet"
            if looked is None
            else f"it is not due yet; when last looked at: {looked.text}"
        )
        return replace(made, decision=Decision.NOT_DUE, why=why, next_us=rule.window.next_open_us(due_us))
    if not rule.window.is_open(now_us):
        return replace(
            made,
            decision=Decision.OUTSIDE_WINDOW,
            why=f"tasks begin within {rule.window}",
            next_us=rule.window.next_open_us(now_us),
        )
    last = upkeep.last if upkeep else None
    if (
        rule.task_type in _WHEN_CHANGED
        and last is not None
        and last.snapshot_after is not None
        and last.snapshot_after == table.snapshot_id
    ):
        return replace(made, decision=Decision.UNCHANGED, why="the table has not changed since the last task")
    return made


def _refuse(catalog: OpenCatalog, work: Work) -> tuple[Decision, str] | None:
    executor, rule = catalog.shared.executor, work.rule
    if rule.problem:
        return Decision.MALFORMED, rule.problem
    if not rule.is_enabled:
        return Decision.DISABLED, "the policy says enable: false"
    if catalog.is_facade:
        return Decision.EXTERNAL, "another catalog owns the tables of this one"
    if work.table.is_restricted:
        return Decision.RESTRICTED, "a policy restricts what is read of the table; order tasks for it by hand"
    if not catalog.shared.delegation.maintenance.enabled:
        return Decision.OFF, "delegation.maintenance.enabled is false"
    if executor is None or not executor.is_delegated:
        return Decision.NO_SERVICE, "it needs a delegation service: set delegation.endpoint"
    return None


def _due_us(work: Work, upkeep: Upkeep | None) -> int:
    if upkeep is None or (upkeep.last is None and upkeep.looked is None):
        return work.first_due_us
    last_us = 0 if upkeep.last is None else upkeep.last.ordered_us
    looked_us = 0 if upkeep.looked is None else upkeep.looked.at_us
    return work.rule.schedule.next_after_us(max(last_us, looked_us))


async def _choose(
    catalog: OpenCatalog, caller: Caller, state: State, known: Known, cheap: Sequence[Assessed]
) -> dict[int, Assessed]:
    """Of those that nothing is in the way of, which run: by number."""
    under_way = [each.table_id for each in known.values() if any(run.is_under_way for run in each.runs)]
    busy: set[ObjId] = set(under_way)
    places = catalog.shared.delegation.maintenance.concurrent - len(under_way)
    reads = MOST_READ
    chosen: dict[int, Assessed] = {}
    waiting = [number for number, each in enumerate(cheap) if each.decision is Decision.RUN]
    for number in sorted(waiting, key=lambda number: _rank(cheap[number])):
        each = cheap[number]
        if places <= 0:
            why = "as many tasks of the catalog as may be are under way"
            chosen[number] = replace(each, decision=Decision.WAITING, why=why)
        elif reads <= 0:
            chosen[number] = replace(each, decision=Decision.WAITING, why="others are looked at first")
        elif each.work.table.id in busy:
            # Two tasks that rewrite one table only get into each other's way.
            why = "another task of the table is under way"
            chosen[number] = replace(each, decision=Decision.WAITING, why=why)
        else:
            reads -= 1
            chosen[number] = decided = await _look(catalog, caller, state, each)
            if decided.decision is Decision.RUN:
                places -= 1
                busy.add(each.work.table.id)
    return chosen


def _rank(each: Assessed) -> tuple[int, ObjId, str]:
    return each.due_us, each.work.table.id, each.work.rule.task_type


async def _look(catalog: OpenCatalog, caller: Caller, state: State, each: Assessed) -> Assessed:
    surveyed = each.work.table
    try:
        table = await load_surveyed(catalog, caller, state, surveyed)
        weighed = await weigh(catalog, caller, each.work.rule, surveyed, table)
    except CynosureError as error:
        # Storage that does not answer now may in a minute; what is damaged stays so for longer.
        is_passing = isinstance(error, Unavailable)
        return replace(each, decision=Decision.FAILED, why=str(error), is_looked=not is_passing)
    decision = Decision.RUN if weighed.is_worth else Decision.BELOW_THRESHOLDS
    return replace(
        each, decision=decision, why=weighed.text, numbers=weighed.numbers, table=table, is_looked=True
    )
