"""Large purges: planned and deleted on Spark's executors. Both functions run in the driver's process.

A maintainer must not break: the driver's memory does not depend on how many files there are, only on how many
batches; executors delete under a lease that the driver has just been told of, and stop before it ends.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import Damaged
from cynosure.delegation.jobs.live_files.expanding import MOST_NAMED, Trouble
from cynosure.delegation.jobs.live_files.on_spark import (
    NOT_LISTED,
    NOT_NAMED,
    OUTSIDE,
    TROUBLES,
    Known,
    Reach,
    expand_files,
    join_rows,
    list_files,
)
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role, read_references
from cynosure.delegation.jobs.live_files.scratch import Row
from cynosure.delegation.jobs.live_files.side_by_side import side_by_side
from cynosure.delegation.jobs.port import JobPostponed
from cynosure.delegation.jobs.purge.deleting import by_stage
from cynosure.delegation.jobs.purge.instructions import PurgeInstructions
from cynosure.delegation.jobs.purge.plan import Batch, Plan, PlanFolder, describe
from cynosure.delegation.spark.link import DriverLink
from cynosure.delegation.store.port import Receipt
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.fileio import FileInfo, FileIO
from cynosure.storage.location import Location

_BATCH_S: Final = 10.0
"""What must be left of a lease to begin a batch."""
_WIDTH: Final = 4
"""Batches that one executor has under way."""
_WAVE: Final = 4
"""Times the slots of the cluster: batches between two questions for lease and credentials."""
_IDLE_WAVES: Final = 5
"""After so many in which nothing was done, somebody else may try later."""


def plan(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Write the batches of a round; the plan, whose marker the worker writes."""
    reach = make_reach(link, parameters)
    link.progress(TaskProgress("planning on Spark", 0))
    references = read_references(parameters["metadata"], parameters["metadata_location"])
    context = link.spark.sparkContext
    rows = join_rows(
        context, [list_files(context, reach), expand_files(context, reach, references, with_deleted=True)]
    )
    writing = Writing(
        reach,
        f"{parameters['generation']}-{parameters['round']:d}",
        parameters["batch_files"],
        PurgeInstructions(deletes_markers=parameters["deletes_markers"]),
    )
    # Few rows, whatever the table: batches and counts.
    written = rows.mapPartitionsWithIndex(partial(write_batches, writing)).collect()
    made = collect_plan(parameters["generation"], written)
    if made.trouble.corrupt_count:
        # What nobody can read stays, and so does all that may lead to it.
        kept = tuple(each for each in made.batches if each.last_role == Role.CONTENT)
        made = structs.replace(made, batches=kept)
    found: dict[str, Any] = msgspec.to_builtins(made)
    return found


def delete(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete batches, stage by stage; receipts go to the worker after every wave."""
    pending = msgspec.convert(parameters["batches"], list[Batch])
    done: int = parameters["done"]
    total = done + sum(each.files for each in pending)
    slots = link.spark.sparkContext.defaultParallelism
    damaged = 0
    for group in by_stage(pending):
        rest = [each.name for each in group]
        idle = 0
        while rest:
            wave = rest[: slots * _WAVE]
            results = _delete_wave(link, parameters, wave, slots)
            receipts = [each.receipt for each in results if each.receipt is not None]
            if receipts:
                link.receipts(receipts)
            done += sum(each.files for each in receipts)
            damaged += sum(each.is_damaged for each in results)
            link.progress(TaskProgress("deleting on Spark", done, total))
            finished = {each.name for each in results if each.receipt is not None or each.is_damaged}
            rest = [each for each in rest if each not in finished]
            idle = 0 if finished else idle + 1
            if idle:
                _pause(idle, [each.error for each in results if each.error])
    return {"damaged": damaged}


def _pause(idle: int, errors: Sequence[str]) -> None:
    if idle >= _IDLE_WAVES:
        raise StorageUnavailable(
            "The storage does not answer or fails", reason=errors[0] if errors else "the lease is too short"
        )
    time.sleep(min(2.0**idle, 30.0))


def make_reach(link: DriverLink, parameters: dict[str, Any]) -> Reach:
    """How executors reach the files from now on, for a while."""
    return Reach(tuple(parameters["places"]), parameters["folder"], link.credentials().properties)


class _Deleted(Struct, frozen=True):
    """What became of a batch."""

    name: str
    receipt: Receipt | None = None
    is_damaged: bool = False
    error: str = ""


def _delete_wave(
    link: DriverLink, parameters: dict[str, Any], names: Sequence[str], slots: int
) -> list[_Deleted]:
    reach = make_reach(link, parameters)
    until_us = link.lease(needs_s=_BATCH_S)
    # Of a lease that is short anyway, a part: else nothing would ever be begun.
    spare_us = round(min(_BATCH_S * 1_000_000, max(until_us - link.now_us(), 0) / 4))
    wave = link.spark.sparkContext.parallelize(names, min(len(names), slots))
    return wave.mapPartitions(partial(_delete_batches, reach, until_us - spare_us)).collect()


# On executors.


class Writing(Struct, frozen=True):
    """How batches are written."""

    reach: Reach
    prefix: str
    batch_files: int
    instructions: PurgeInstructions
    before_us: int | None = None
    """Only files that nothing names and that were last written before; else all."""


def write_batches(writing: Writing, partition: int, rows: Iterable[Known]) -> Iterator[Any]:
    """Batches of the files that are there, each of one stage; and counts of troubles, with some of them."""
    from pyspark import TaskContext  # noqa: PLC0415 - only here is one

    task = TaskContext.get()
    # Of this try alone: another one that is still under way must not change what this one has written.
    attempt = 0 if task is None else task.taskAttemptId()
    files, places = writing.reach.open()
    folder = PlanFolder(files, places, Location.parse(writing.reach.without))
    waiting: dict[int, list[Row]] = {int(role): [] for role in Role}
    troubles: dict[int, tuple[int, list[str]]] = {}
    count = dead = 0
    some_dead: list[str] = []
    with asyncio.Runner() as runner:

        def write(stage: int) -> Batch:
            nonlocal count
            name = f"{writing.prefix}-{partition:d}-{attempt % 10**10:d}-{count:d}"
            count += 1
            rows, waiting[stage] = waiting[stage], []
            if writing.instructions.is_dry_run:
                return describe(name, rows)
            return runner.run(folder.write_batch(name, rows))

        for (place, path), (size, modified_us, role) in rows:
            if place < 0:
                number, some = troubles.get(place, (0, []))
                troubles[place] = (number + 1, [*some, path] if len(some) < MOST_NAMED else some)
                continue
            if size == NOT_LISTED or _is_kept(writing, places, (place, path), size, modified_us):
                continue
            if writing.before_us is not None:
                if role != NOT_NAMED or modified_us >= writing.before_us:
                    continue
                dead += 1
                if len(some_dead) < MOST_NAMED:
                    some_dead.append(places.locate((place, path)).text)
            stage = int(Role.LEFTOVER) if role == NOT_NAMED else role
            waiting[stage].append((place, path, size, stage))
            if len(waiting[stage]) >= writing.batch_files:
                yield "batch", write(stage)
        for stage, left in waiting.items():
            if left:
                yield "batch", write(stage)
    if writing.before_us is None:
        yield from ((TROUBLES[kind], found) for kind, found in troubles.items())
        return
    yield from ((TROUBLES[kind], found) for kind, found in troubles.items() if kind != OUTSIDE)
    yield TROUBLES[OUTSIDE], (dead, some_dead)


def _is_kept(writing: Writing, places: Places, named: tuple[int, str], size: int, modified_us: int) -> bool:
    # Almost never looked at: only markers, which are empty, may be kept.
    if writing.instructions.deletes_markers or size:
        return False
    return writing.instructions.keeps(FileInfo(places.locate(named), size, modified_us))


def collect_plan(generation: str, written: Iterable[tuple[str, Any]]) -> Plan:
    """The plan of what executors have written."""
    batches: list[Batch] = []
    counts: dict[str, int] = dict.fromkeys(TROUBLES.values(), 0)
    some: dict[str, list[str]] = {name: [] for name in TROUBLES.values()}
    for kind, found in written:
        if kind == "batch":
            batches.append(found)
        else:
            counts[kind] += found[0]
            some[kind] = sorted((*some[kind], *found[1]))[:MOST_NAMED]
    batches.sort(key=lambda each: (each.first_role, each.name))
    trouble = Trouble(
        missing=some["missing"],
        missing_count=counts["missing"],
        corrupt=some["corrupt"],
        corrupt_count=counts["corrupt"],
        encrypted=some["encrypted"],
        encrypted_count=counts["encrypted"],
        unreachable=some["unreachable"],
        unreachable_count=counts["unreachable"],
    )
    return Plan(generation, tuple(batches), trouble, counts["outside"], tuple(some["outside"]))


def _delete_batches(reach: Reach, until_us: int, names: Iterable[str]) -> Iterator[_Deleted]:
    clock = SystemClock()

    def check() -> None:
        if clock.now_us() > until_us:
            raise _OutOfTime

    files, places = reach.open(check)
    folder = PlanFolder(files, places, Location.parse(reach.without))
    delete = partial(_delete_batch, files, places, folder)
    with asyncio.Runner() as runner:
        results = side_by_side(delete, names, width=_WIDTH)
        while (done := runner.run(_next(results))) is not None:
            yield done


async def _next(results: Any) -> _Deleted | None:
    done: _Deleted | None = await anext(results, None)
    return done


async def _delete_batch(files: FileIO, places: Places, folder: PlanFolder, name: str) -> _Deleted:
    try:
        rows = await folder.read_batch(name)
    except Damaged:
        return _Deleted(name, is_damaged=True)
    except StorageUnavailable as error:
        return _Deleted(name, error=str(error.details.get("reason", error.message)))

    try:
        for _, some in groupby(rows, key=lambda row: row[3]):
            await files.delete_many([places.locate((place, path)) for place, path, _, _ in some])
    except _OutOfTime:
        return _Deleted(name)
    except (StorageUnavailable, JobPostponed) as error:
        return _Deleted(name, error=str(error.details.get("reason", error.message)))
    size = sum(each for _, _, each, _ in rows)
    return _Deleted(name, Receipt(name, len(rows), size, SystemClock().now_us()))


class _OutOfTime(Exception):
    """Too little is left of the lease."""
