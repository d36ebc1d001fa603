"""The coordinated tasks of a store: collect garbage, sweep what no list names.

One instance of all servers runs each; a run that dies is taken over where it stood.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from cynosure.common.telemetry.logs import Log
from cynosure.persistence.gc.collect import GcProgress, GcReport
from cynosure.persistence.tasks import Task, TaskRun

if TYPE_CHECKING:
    from cynosure.persistence.lifecycle import Persistence

GC = "store.gc"
SWEEP = "store.sweep-unlisted"
_log = Log(__name__)

Watch = Callable[[GcProgress], None]


def maintenance_tasks(persistence: "Persistence") -> list[Task]:
    """Tasks for the background loop of a server."""
    every_s = persistence.settings.gc.interval.total_seconds()
    return [gc_task(persistence, first_after_s=every_s), sweep_task(persistence)]


def gc_task(persistence: "Persistence", *, first_after_s: float = 0.0, watch: Watch | None = None) -> Task:
    """Garbage collection as a coordinated task. `watch` is told how far this run is."""

    async def run(task_run: TaskRun) -> str:
        resume = msgspec.msgpack.decode(task_run.progress, type=GcProgress) if task_run.progress else None

        async def report(progress: GcProgress) -> None:
            task_run.check()
            if watch is not None:
                watch(progress)
            if progress.doomed is not None:
                await task_run.save(msgspec.msgpack.encode(progress))

        result = await persistence.collector().run(resume=resume, report=report)
        _log.event("gc.finished", scanned=result.scanned, marked=result.marked, deleted=result.deleted)
        return describe(result)

    every_s = persistence.settings.gc.interval.total_seconds()
    return Task(name=GC, every_s=every_s, run=run, first_after_s=first_after_s)


def sweep_task(persistence: "Persistence") -> Task:
    """The repairer of half-created realms and catalogs (`scopes.py`)."""

    async def run(task_run: TaskRun) -> str:
        task_run.check()
        swept = await persistence.sweep_unlisted()
        return f"deleted {len(swept)} references"

    every_s = persistence.settings.gc.grace.total_seconds()
    return Task(name=SWEEP, every_s=every_s, run=run, first_after_s=every_s)


def describe(report: GcReport) -> str:
    """One line about a collection."""
    verb = "would delete" if report.is_dry_run else "deleted"
    count = report.doomed if report.is_dry_run else report.deleted
    return f"looked at {report.scanned} rows, {verb} {count}"
