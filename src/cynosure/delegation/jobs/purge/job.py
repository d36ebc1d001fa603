"""The purge of a table.

A maintainer must not break: the order of the steps in `run`. What is opened is compared with the order before
anything else; the catalog is asked for *purging* before the first file goes, and refuses it for a table that
was restored meanwhile; and the plan's own files go when a listing has shown that there is nothing else.
"""

import hashlib
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec

from cynosure.catalog.purge_errors import LocationShared
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, Conflict, CynosureError, Forbidden, NotAuthenticated, NotFound
from cynosure.delegation.catalog_access import TableAccess, TableFacts
from cynosure.delegation.jobs.live_files.patient import PatientFileIO, patiently
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.port import JobContext, JobFailed, JobPostponed, SparkRunner
from cynosure.delegation.jobs.purge.deleting import Deleting
from cynosure.delegation.jobs.purge.instructions import PurgeInstructions, read_instructions
from cynosure.delegation.jobs.purge.plan import BATCH_FILES, Batch, Plan, PlanFolder, find_folder
from cynosure.delegation.jobs.purge.planning import Planning, TooManyHere
from cynosure.delegation.store.port import Receipt
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.unnamed import find_unnamed

_MOST_ROUNDS: Final = 3
"""How often what was added meanwhile is deleted too, before the attempt waits for its writer to end."""

T = TypeVar("T")


class PurgeJob:
    """TABLE_PURGE."""

    def __init__(self, *, batch_files: int = BATCH_FILES) -> None:
        self._batch_files = batch_files

    @property
    def task_type(self) -> TaskType:  # noqa: D102
        return TaskType.TABLE_PURGE

    def check(self, order: TaskOrder) -> None:  # noqa: D102
        read_instructions(order.properties)

    async def run(self, context: JobContext) -> ExecutionResult:  # noqa: D102
        instructions = read_instructions(context.order.properties)
        opening = context.catalog.open_table if instructions.is_dry_run else context.catalog.open_tombstone
        what = "table" if instructions.is_dry_run else "tombstone"
        table = await open_for(opening(context.order), what=what)
        compare(context.order, table.facts)
        await context.begin()
        purge = _Purge(context, table, instructions, self._batch_files)
        return await (purge.tell() if instructions.is_dry_run else purge.run())


class _Purge:
    """One attempt."""

    def __init__(
        self, context: JobContext, table: TableAccess, instructions: PurgeInstructions, batch_files: int
    ) -> None:
        self._context = context
        self._table = table
        self._instructions = instructions
        self._places = Places(table.facts.places)
        where = find_folder(self._places, table.facts.location, f".cynosure-purge-{context.task_id}")
        files = PatientFileIO(table.files, context.clock, context.lease.check)
        self._folder = PlanFolder(files, self._places, where)
        self._generation = hashlib.sha256(context.lease.token.encode()).hexdigest()[:12]
        self._batch_files = batch_files
        self._planning = Planning(
            context,
            table.facts,
            files,
            self._places,
            self._folder,
            instructions,
            self._generation,
            batch_files,
        )
        self._spark = find_cluster(context)
        self._is_on_spark = False

    async def tell(self) -> ExecutionResult:
        """What a purge would delete."""
        plan = await self._planning.make(0, most=None)
        details: dict[str, Any] = {"dry_run": True, "files_found": plan.files, "bytes_found": plan.bytes}
        return ExecutionResult(details=details | plan.list_trouble())

    async def run(self) -> ExecutionResult:
        """Delete everything."""
        first = await self._load_plan(0)
        await self._ask_for_purging()
        await self._context.mark_begun()
        await self._delete(first)
        if first.trouble.corrupt_count:
            await self._give_up(first)
        await self._delete_unnamed()
        number = 1
        while (plan := await self._load_plan(number)).files:
            await self._delete(plan)
            if number >= _MOST_ROUNDS and self._made > _MOST_ROUNDS:
                raise JobPostponed(
                    "Files are still added to the table that is purged",
                    code="WRITERS_ACTIVE",
                    fix="Stop its writers; their credentials end by themselves.",
                )
            number += 1
        # Order: the plan goes when a listing has shown that nothing else is left.
        self._context.lease.check()
        await self._folder.forget()
        if self._instructions.deletes_markers:
            await self._delete_unnamed()  # the directories that the plan was in
        done = await self._context.receipts()
        details: dict[str, Any] = {"rounds": number, "on_spark": self._is_on_spark} | first.list_trouble()
        return ExecutionResult(done.files, done.bytes, details)

    _made = 0
    """Plans that this attempt has made."""

    async def _load_plan(self, number: int) -> Plan:
        """The plan of a round: one that is there, or a new one."""
        if (found := await self._folder.load(number)) is not None:
            return found
        self._made += 1
        threshold = self._context.settings.service.spark_threshold_files
        try:
            plan = await self._planning.make(number, most=None if self._spark is None else threshold)
        except TooManyHere:
            plan = await self._plan_on_spark(number)
        if not plan.files:
            return plan  # nothing to come back to
        self._context.lease.check()
        return await self._folder.publish(number, plan)

    async def _plan_on_spark(self, number: int) -> Plan:
        assert self._spark is not None  # noqa: S101 - there is no limit without it
        self._is_on_spark = True
        facts = self._table.facts
        told = await self._spark.run(
            "purge-plan",
            self._parameters()
            | {
                "round": number,
                "generation": self._generation,
                "batch_files": self._batch_files,
                "deletes_markers": self._instructions.deletes_markers,
                "metadata": facts.metadata if number == 0 else {},
                "metadata_location": facts.metadata_location,
            },
            self._context,
        )
        return msgspec.convert(told, Plan)

    async def _ask_for_purging(self) -> None:
        try:
            await self._context.catalog.begin_purging(self._context.order)
        except (NotFound, Conflict) as error:
            await self._folder.forget()
            raise _failed(error, _find_code(error), 409) from error

    async def _delete(self, plan: Plan) -> None:
        receipts = await self._context.receipts()
        pending = [each for each in plan.batches if each.name not in receipts.by_batch]
        if not pending:
            return
        spark = self._spark
        if spark is not None and plan.files > self._context.settings.service.spark_threshold_files:
            self._is_on_spark = True
            batches: list[Any] = msgspec.to_builtins(pending)
            await spark.run(
                "purge-delete",
                self._parameters() | {"batches": batches, "done": receipts.files},
                self._context,
            )
            return
        await self._delete_here(pending, receipts.files)

    async def _delete_here(self, pending: list[Batch], done: int) -> None:
        deleting = Deleting(self._context, self._table.files, self._places, self._folder, done=done)
        await deleting.run(pending)

    def _parameters(self) -> dict[str, Any]:
        return {
            "places": [place.text for place in self._places.all],
            "folder": self._folder.location.text,
        }

    async def _delete_unnamed(self) -> None:
        """What no listing tells: markers of directories, and files whose names clients read differently."""
        storage = find_unnamed(self._table.files)
        if storage is None:
            return
        for number, place in enumerate(self._places.all):

            async def delete(number: int = number, place: Location = place) -> None:
                self._context.lease.check()
                removed = await storage.delete_unnamed(place, with_markers=self._instructions.deletes_markers)
                if removed.files:
                    now_us = self._context.clock.now_us()
                    batch = f"{self._generation}-unnamed-{number}"
                    await self._context.put_receipts([Receipt(batch, removed.files, removed.bytes, now_us)])

            await patiently(self._context.clock, delete)

    async def _give_up(self, plan: Plan) -> None:
        """Not everything can be purged: what is left stays, for somebody to repair or to look at."""
        # Planned again by the next attempt, which an operator asks for.
        await self._folder.forget()
        done = await self._context.receipts()
        raise JobFailed(
            "Manifests of the table cannot be read: what they name is kept, and so is the metadata",
            code="CORRUPT_MANIFEST",
            fix="Repair or delete the manifests, then retry the task.",
            files_deleted=done.files,
            bytes_deleted=done.bytes,
            result=plan.list_trouble(),
        )


def find_cluster(context: JobContext) -> SparkRunner | None:
    """Spark, if there is one that runs our own functions: Spark Connect does not."""
    return None if context.settings.service.spark.remote is not None else context.spark


async def open_for(opening: Awaitable[T], *, what: str) -> T:
    """A table of the catalog; `JobFailed` when it does not let us have it."""
    try:
        return await opening
    except (NotFound, Conflict) as error:
        raise _failed(error, f"{what.upper()}_GONE", 409) from error
    except (NotAuthenticated, Forbidden, StorageRefused) as error:
        raise _failed(error, "CREDENTIAL_VENDING_FAILED", 502) from error


def _failed(error: CynosureError, code: str, status: int) -> JobFailed:
    # What came over HTTP has a status among its details.
    details = {name: value for name, value in error.details.items() if name not in ("code", "status")}
    return JobFailed(error.message, code=code, status=status, fix=error.fix, **details)


def _find_code(error: CynosureError) -> str:
    """Why the catalog refuses a purge: it says so itself, or over HTTP by the type of its answer."""
    if isinstance(error, LocationShared) or error.details.get("type") == "LocationSharedException":
        return LocationShared.code
    return "PURGE_REFUSED"


def compare(order: TaskOrder, facts: TableFacts) -> None:
    """`JobFailed` unless the table is the one that the order means, and its files are ours to touch."""
    expected = order.expected
    for name, ordered, found in (
        ("table_entity_id", order.table.table_entity_id, facts.entity_id),
        ("table-uuid", expected.table_uuid and expected.table_uuid.lower(), facts.table_uuid.lower()),
        ("location", expected.location and _normal(expected.location), _normal(facts.location)),
    ):
        if ordered is not None and ordered != found:
            raise JobFailed(
                "The table is not the one that was ordered",
                code="TABLE_MISMATCH",
                status=409,
                fix="Order the task again for the table as it is.",
                field=name,
                ordered=ordered,
                found=found,
            )
    if facts.is_federated:
        raise JobFailed(
            "The table belongs to another catalog, which alone may delete its files",
            code="FEDERATED_TABLE",
            status=409,
            fix="Purge it where it belongs.",
        )


def _normal(location: str) -> str:
    try:
        return "/".join(Location.parse(location).key())
    except BadInput:
        return location
