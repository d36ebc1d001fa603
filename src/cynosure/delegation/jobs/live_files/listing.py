"""What lies in the places of a table.

A maintainer must not break: files that a job of ours has put there for itself are not of the table.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from cynosure.delegation.jobs.live_files.places import Places
from cynosure.storage.decorators.listing import open_listing
from cynosure.storage.fileio import FileInfo, FileIO
from cynosure.storage.location import Location

_PAGE: Final = 1_000


async def list_places(
    files: FileIO, places: Places, without: Location | None
) -> AsyncGenerator[list[FileInfo], None]:
    """All files in the places, some at a time, but for those below `without`."""
    page: list[FileInfo] = []
    for place in places.all:
        async with aclosing(open_listing(files, place)) as found:
            async for each in found:
                if without is not None and each.location.is_within(without):
                    continue
                page.append(each)
                if len(page) >= _PAGE:
                    yield page
                    page = []
    if page:
        yield page
