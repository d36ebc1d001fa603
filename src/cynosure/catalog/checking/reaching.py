"""What the server itself does with files: write, read, list, create once, delete."""

from contextlib import aclosing
from typing import Any, cast

from cynosure.catalog.checking.probe import CONTENT, OTHER_CONTENT, Probe
from cynosure.catalog.checking.steps import Finding
from cynosure.common.errors import AlreadyExists
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location


class Reaching:
    """The files of one probe, as the server reaches them."""

    def __init__(self, files: FileIO, probe: Probe) -> None:
        self._files = files
        self._probe = probe

    async def write(self) -> None:
        """A new file can be written."""
        await self._files.write(self._probe.file, CONTENT)

    async def read(self) -> None:
        """What is read is what was written."""
        if await self._files.read(self._probe.file) != CONTENT:
            raise Finding(
                "A file holds something else than was written", fix="Check what is before the store."
            )

    async def list(self) -> None:
        """A file that was written is listed."""
        if not await is_listed(self._files, self._probe.directory, self._probe.file):
            raise Finding(
                "A file that was written is not listed",
                fix="Use a store whose listings are up to date; sweeping and purging rely on them.",
            )

    async def create_once(self) -> None:
        """Of two writers that create a file, the second is refused and changes nothing."""
        try:
            await self._files.write(self._probe.file, OTHER_CONTENT)
        except AlreadyExists:
            if await self._files.read(self._probe.file) == CONTENT:
                return
        raise Finding(
            "This store lets a second writer replace a file that only one may create",
            fix="Use a store that honours If-None-Match; else one commit may replace another one's file.",
        )

    async def delete(self) -> None:
        """A deleted file is gone."""
        await self._files.delete(self._probe.file)
        if await self._files.exists(self._probe.file):
            raise Finding(
                "A file that was deleted is still there",
                fix="Check the rights of the key, and locks of the store.",
            )

    async def look(self) -> None:
        """The location can be listed; nothing is written there."""
        await is_listed(self._files, self._probe.directory, None)


async def is_listed(files: FileIO, directory: Location, wanted: Location | None) -> bool:
    """Whether a listing has this file; without one, whether it has any."""
    # Every implementation is a generator, which the protocol does not say.
    async with aclosing(cast("Any", files.list(directory))) as found:
        async for each in found:
            if wanted is None or each.location == wanted:
                return True
    return False
