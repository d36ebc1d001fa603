"""Which files of a table are deleted, in which order: planned in this process.

A maintainer must not break: what lies in the table's places is the truth about what there is; references
only say in which order. With a manifest that cannot be read, nobody knows which files it names, so nothing
but what others name is deleted.
"""

from collections.abc import Sequence
from contextlib import aclosing

from cynosure.common.delegated.record import TaskProgress
from cynosure.delegation.catalog_access import TableFacts
from cynosure.delegation.jobs.live_files.expanding import MOST_NAMED, Expanding, Trouble
from cynosure.delegation.jobs.live_files.listing import list_places
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role, read_references
from cynosure.delegation.jobs.live_files.scratch import Row, Scratch
from cynosure.delegation.jobs.port import JobContext
from cynosure.delegation.jobs.purge.instructions import PurgeInstructions
from cynosure.delegation.jobs.purge.plan import STAGES, Batch, Plan, PlanFolder, describe
from cynosure.storage.fileio import FileInfo, FileIO


class TooManyHere(Exception):
    """There are more files than are to be planned in this process."""


class Planning:
    """Makes plans for one table."""

    def __init__(
        self,
        context: JobContext,
        facts: TableFacts,
        files: FileIO,
        places: Places,
        folder: PlanFolder,
        instructions: PurgeInstructions,
        generation: str,
        batch_files: int,
    ) -> None:
        self._context = context
        self._facts = facts
        self._files = files
        self._places = places
        self._folder = folder
        self._instructions = instructions
        self._generation = generation
        self._batch_files = batch_files

    async def make(self, number: int, *, most: int | None) -> Plan:
        """The plan of a round. Batches are written, the marker is not.

        The first round has roles; later ones are what somebody has added since. `TooManyHere` beyond `most`
        files.
        """
        with Scratch(self._places) as scratch:
            listed = await self._list(scratch, most, is_first=number == 0)
            trouble = Trouble()
            if number == 0 and listed:
                trouble = await self._expand(scratch)
            roles = (Role.CONTENT,) if trouble.corrupt_count else STAGES
            outside_count, outside = await scratch.read_outside(MOST_NAMED)
            batches: list[Batch] = []
            async with aclosing(scratch.read_all(roles, size=self._batch_files)) as pages:
                async for rows in pages:
                    name = f"{self._generation}-{number:d}-{len(batches):05d}"
                    batches.append(await self._keep(name, rows))
            return Plan(self._generation, tuple(batches), trouble, outside_count, tuple(outside))

    async def _keep(self, name: str, rows: Sequence[Row]) -> Batch:
        if self._instructions.is_dry_run:
            return describe(name, rows)
        return await self._folder.write_batch(name, rows)

    async def _list(self, scratch: Scratch, most: int | None, *, is_first: bool) -> int:
        count = 0
        async with aclosing(list_places(self._files, self._places, self._folder.location)) as pages:
            async for page in pages:
                kept = [each for each in page if not self._instructions.keeps(each)]
                if not is_first:
                    kept = [each for each in kept if not await self._is_marker(each)]
                await scratch.add_listed(kept)
                count += len(kept)
                if most is not None and count > most:
                    raise TooManyHere
                await self._context.report(TaskProgress("listing", count))
        return count

    async def _is_marker(self, found: FileInfo) -> bool:
        """Whether something is the marker of a directory (`x/`): it is listed as `x`, and there is no `x`."""
        return not found.size_bytes and not await self._files.exists(found.location)

    async def _expand(self, scratch: Scratch) -> Trouble:
        expanding = Expanding(self._files, self._places, with_deleted=True)
        references = read_references(self._facts.metadata, self._facts.metadata_location)
        count = 0
        async with aclosing(expanding.run(references)) as pages:
            async for found in pages:
                await scratch.add_named(found)
                count += len(found)
                await self._context.report(TaskProgress("reading manifests", count))
        return expanding.trouble
