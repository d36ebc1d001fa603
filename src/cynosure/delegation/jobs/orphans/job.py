"""The removal of orphans.

A maintainer must not break: the order of steps. Files are listed first, and what is alive is read afterwards
and again before each batch, so a file that becomes alive meanwhile is kept.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.live_files.expanding import MOST_NAMED
from cynosure.delegation.jobs.live_files.listing import list_places
from cynosure.delegation.jobs.live_files.patient import PatientFileIO
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role
from cynosure.delegation.jobs.live_files.scratch import Row, Scratch
from cynosure.delegation.jobs.on_table import open_expected
from cynosure.delegation.jobs.orphans.instructions import OrphanInstructions, read_instructions
from cynosure.delegation.jobs.orphans.liveness import Liveness, refuse_unreadable
from cynosure.delegation.jobs.port import JobContext, JobFailed
from cynosure.delegation.jobs.purge.deleting import Deleting
from cynosure.delegation.jobs.purge.job import find_cluster
from cynosure.delegation.jobs.purge.plan import BATCH_FILES, Batch, Plan, PlanFolder, describe, find_folder
from cynosure.storage.location import is_allowed

LEAST_AGE_S: Final = 3_600.0
"""Files younger than this are never touched, whatever is asked for."""


class OrphanRemovalJob:
    """ORPHAN_FILE_REMOVAL."""

    task_type: Final = TaskType.ORPHAN_FILE_REMOVAL

    def __init__(
        self,
        *,
        least_age_s: float = LEAST_AGE_S,
        batch_files: int = BATCH_FILES,
        clock: Clock | None = None,
    ) -> None:
        """Other values than these are for tests: no order can change them."""
        self._clock = clock or SystemClock()
        self._least_age_s = least_age_s
        self._batch_files = batch_files

    def check(self, order: TaskOrder) -> None:
        """Refuse instructions that cannot be followed."""
        self._read(order, self._clock.now_us())

    async def run(self, context: JobContext) -> ExecutionResult:
        """Remove orphans, or tell which there are."""
        wanted = self._read(context.order, context.clock.now_us())
        table = await open_expected(context)
        places = choose_places(table, wanted)
        await context.begin()
        return await _Removal(context, table, places, wanted, self._batch_files).run()

    def _read(self, order: TaskOrder, now_us: int) -> OrphanInstructions:
        return read_instructions(order.properties, least_age_s=self._least_age_s, now_us=now_us)


def choose_places(table: TableAccess, wanted: OrphanInstructions) -> Places:
    """Where to look: in all places of the table, or in some."""
    for each in wanted.locations:
        if not is_allowed(each, table.facts.places):
            raise JobFailed(
                "A location is not the table's",
                code="LOCATION_OUTSIDE",
                status=409,
                fix="Name locations inside the table's own.",
                location=each.text,
            )
    return Places(wanted.locations or table.facts.places)


class _Removal:
    """One attempt."""

    def __init__(
        self,
        context: JobContext,
        table: TableAccess,
        places: Places,
        wanted: OrphanInstructions,
        batch_files: int,
    ) -> None:
        self._context = context
        self._table = table
        self._places = places
        self._wanted = wanted
        self._batch_files = batch_files
        where = find_folder(
            Places(table.facts.places), table.facts.location, f".cynosure-orphans-{context.task_id}"
        )
        self._files = PatientFileIO(table.files, context.clock, context.lease.check)
        self._folder = PlanFolder(self._files, places, where)
        self._generation = hashlib.sha256(context.lease.token.encode()).hexdigest()[:12]
        self._before_us = wanted.find_limit_us(context.clock.now_us())
        self._turn = asyncio.Lock()
        """Batches are deleted side by side; liveness is asked for one at a time."""
        self._kept_live = 0
        self._is_on_spark = False

    async def run(self) -> ExecutionResult:
        with Scratch(self._places) as scratch:
            liveness = Liveness(self._context, scratch)
            plan = None if self._wanted.is_dry_run else await self._folder.load(0)
            if plan is None:
                plan = await self._plan(scratch, liveness)
            details: dict[str, Any] = {
                "dry_run": self._wanted.is_dry_run,
                "files_found": plan.files,
                "bytes_found": plan.bytes,
                "orphans": list(plan.outside),
                "on_spark": self._is_on_spark,
            }
            if self._wanted.is_dry_run:
                await self._folder.forget()
                return ExecutionResult(details=details)
            await self._context.mark_begun()
            await self._delete(plan, scratch, liveness)
        done = await self._context.receipts()
        self._context.lease.check()
        await self._folder.forget()
        return ExecutionResult(done.files, done.bytes, details | {"kept_live": self._kept_live})

    async def _plan(self, scratch: Scratch, liveness: Liveness) -> Plan:
        spark = find_cluster(self._context)
        most = None if spark is None else self._context.settings.service.spark_threshold_files
        if await self._list(scratch, most):
            await liveness.refresh(self._places)
            plan = await self._write(scratch)
        else:
            plan = await self._plan_on_spark(liveness)
        if self._wanted.is_dry_run or not plan.files:
            return plan
        self._context.lease.check()
        return await self._folder.publish(0, plan)

    async def _list(self, scratch: Scratch, most: int | None) -> bool:
        """Whether there were few enough files."""
        count = 0
        pages = list_places(self._files, self._places, self._folder.location)
        async with aclosing(pages):
            async for page in pages:
                count += len(page)
                if most is not None and count > most:
                    return False
                await scratch.add_listed([each for each in page if each.modified_us < self._before_us])
                await self._context.report(TaskProgress("listing", count))
        return True

    async def _write(self, scratch: Scratch) -> Plan:
        batches: list[Batch] = []
        named: list[str] = []
        unnamed = scratch.read_unnamed(before_us=self._before_us, size=self._batch_files)
        async with aclosing(unnamed):
            async for rows in unnamed:
                name = f"{self._generation}-0-{len(batches):05d}"
                left = MOST_NAMED - len(named)
                named += [self._places.locate((row[0], row[1])).text for row in rows[:left]]
                if self._wanted.is_dry_run:
                    batches.append(describe(name, rows))
                else:
                    batches.append(await self._folder.write_batch(name, rows))
        return Plan(self._generation, tuple(batches), outside_count=len(named), outside=tuple(named))

    async def _plan_on_spark(self, liveness: Liveness) -> Plan:
        spark = find_cluster(self._context)
        assert spark is not None  # noqa: S101 - there is no limit without it
        self._is_on_spark = True
        dropped = await self._context.catalog.list_overlapping_dropped(self._context.order, self._places.all)
        tables = [
            {
                "places": [place.text for place in each.facts.places],
                "properties": None if each is self._table else (await each.client_files()).properties,
                "metadata": each.facts.metadata,
                "metadata_location": each.facts.metadata_location,
            }
            for each in (self._table, *dropped)
        ]
        told = await spark.run(
            "orphans-list",
            {
                "places": [place.text for place in self._places.all],
                "folder": self._folder.location.text,
                "tables": tables,
                "before_us": self._before_us,
                "generation": self._generation,
                "batch_files": self._batch_files,
                "is_dry_run": self._wanted.is_dry_run,
            },
            self._context,
        )
        plan = msgspec.convert(told, Plan)
        refuse_unreadable(plan.trouble)
        for each in (self._table, *dropped):
            liveness.skip(each)
        return plan

    async def _delete(self, plan: Plan, scratch: Scratch, liveness: Liveness) -> None:
        receipts = await self._context.receipts()
        pending = [each for each in plan.batches if each.name not in receipts.by_batch]

        async def choose(rows: Sequence[Row]) -> list[Row]:
            async with self._turn:
                await liveness.refresh(self._places)
                dead = await scratch.find_unnamed([row for row in rows if row[3] == Role.LEFTOVER])
                self._kept_live += len(rows) - len(dead)
                return dead

        deleting = Deleting(
            self._context,
            self._table.files,
            self._places,
            self._folder,
            done=receipts.files,
            choose=choose,
        )
        await deleting.run(pending)
