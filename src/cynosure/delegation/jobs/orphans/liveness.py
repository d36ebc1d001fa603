"""Which files are alive.

A maintainer must not break: when a part of the tree cannot be read, nobody knows what it names, so nothing
can be said to be dead (`JobFailed`).
"""

from contextlib import aclosing
from typing import Final

from msgspec import structs

from cynosure.common.delegated.record import TaskProgress
from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.live_files.expanding import Expanding, Trouble
from cynosure.delegation.jobs.live_files.patient import PatientFileIO
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import read_references
from cynosure.delegation.jobs.live_files.scratch import Scratch
from cynosure.delegation.jobs.on_table import open_expected
from cynosure.delegation.jobs.port import JobContext, JobFailed, JobPostponed

_UNREADABLE: Final = (
    ("corrupt_count", "CORRUPT_MANIFEST", "Repair the manifests, or roll the table back."),
    ("missing_count", "MISSING_MANIFEST", "Restore the manifests, or roll the table back."),
    ("encrypted_count", "ENCRYPTED_MANIFEST", "Remove orphans with an engine that has the key."),
    ("unreachable_count", "OUTSIDE_MANIFEST", "Rewrite the manifests into the table's location."),
)


def refuse_unreadable(trouble: Trouble) -> None:
    """`JobFailed` unless all of the tree was read."""
    for name, code, fix in _UNREADABLE:
        if count := getattr(trouble, name):
            paths = [*trouble.corrupt, *trouble.missing, *trouble.encrypted, *trouble.unreachable][:10]
            raise JobFailed(
                "Not all manifests of the table can be read, so no file can be said to be dead",
                code=code,
                fix=fix,
                count=count,
                paths=paths,
            )


class Liveness:
    """The files that are alive, in a scratch that a job keeps while it works."""

    def __init__(self, context: JobContext, scratch: Scratch) -> None:
        self._context = context
        self._scratch = scratch
        self._walks: dict[str, Expanding] = {}
        """Of each table, so that nothing is read twice."""
        self._lists: set[str] = set()
        self._known: set[tuple[str, str]] = set()
        """Versions of tables that have been read: the place of the metadata file."""
        self._count = 0

    async def refresh(self, places: Places) -> None:
        """Read what has become alive since the last time.

        Of the table as it is now, and of tables that were dropped, can be restored and have files here.
        """
        table = await open_expected(self._context)
        await self._read(table)
        for each in await self._context.catalog.list_overlapping_dropped(self._context.order, places.all):
            await self._read(each)

    def skip(self, table: TableAccess) -> None:
        """This version of the table has been read elsewhere."""
        facts = table.facts
        self._known.add((facts.entity_id, facts.metadata_location))
        self._lists.update(read_references(facts.metadata, facts.metadata_location).lists)

    async def _refuse_changed(self, version: tuple[str, str]) -> None:
        """`JobPostponed` if the table is another one by now: what is missing was needed by the old one."""
        now = (await open_expected(self._context)).facts
        if now.entity_id == version[0] and now.metadata_location != version[1]:
            raise JobPostponed("The table was changed while its manifests were read", code="TABLE_CHANGED")

    async def _read(self, table: TableAccess) -> None:
        facts = table.facts
        version = (facts.entity_id, facts.metadata_location)
        if version in self._known:
            return
        walk = self._walks.get(facts.entity_id)
        if walk is None:
            files = PatientFileIO(table.files, self._context.clock, self._context.lease.check)
            walk = Expanding(files, Places(facts.places), with_deleted=False)
            self._walks[facts.entity_id] = walk
        references = read_references(facts.metadata, facts.metadata_location)
        new = tuple(each for each in references.lists if each not in self._lists)
        async with aclosing(walk.run(structs.replace(references, lists=new))) as pages:
            async for found in pages:
                await self._scratch.add_named(found)
                self._count += len(found)
                await self._context.report(TaskProgress("reading manifests", self._count))
        if walk.trouble.missing_count:
            await self._refuse_changed(version)
        refuse_unreadable(walk.trouble)
        self._lists.update(new)
        self._known.add(version)
