"""Files of a storage that is too busy now and then, for work that takes long.

The storage's own client tries a request a few times, within its time. Of thousands of requests to a storage
that refuses every third, some fail even so; none of them may cost the whole attempt.

A maintainer must not break: only what can be done again is done again; and who works under a lease changes
nothing, not even again, without a look at it (`check`) right before.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Final, TypeVar

from cynosure.common.clock import Clock
from cynosure.delegation.failures import JobPostponed
from cynosure.storage.decorators.listing import open_listing
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO
from cynosure.storage.location import Location

TRIES: Final = 6
_FIRST_PAUSE_S: Final = 0.25

T = TypeVar("T")


async def patiently(
    clock: Clock, work: Callable[[], Awaitable[T]], on_failure: Callable[[], None] = lambda: None
) -> T:
    """Do something that can be done again, several times if need be, each time after a longer pause.

    A storage that refuses to the end is `JobPostponed`: keys and rights can be set right.
    """
    attempt = 0
    while True:
        try:
            return await work()
        except (StorageUnavailable, StorageRefused) as error:
            attempt += 1
            if attempt == TRIES:
                if isinstance(error, StorageUnavailable):
                    raise
                # A store's answer has a code of its own.
                details = {f"storage_{name}": value for name, value in error.details.items()}
                raise JobPostponed(error.message, code="STORAGE_REFUSED", fix=error.fix, **details) from error
        on_failure()
        await clock.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1))


class PatientFileIO:
    """Files that are asked for again. A refusal comes as `JobPostponed`."""

    def __init__(self, files: FileIO, clock: Clock, check: Callable[[], None] = lambda: None) -> None:
        self.inner = files
        self._clock = clock
        self._check = check

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:  # noqa: D102
        return await patiently(self._clock, lambda: self.inner.read(location, limit_bytes=limit_bytes))

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:  # noqa: D102
        async def write() -> None:
            self._check()
            await self.inner.write(location, data, overwrite=overwrite)

        await patiently(self._clock, write)

    async def delete(self, location: Location) -> None:  # noqa: D102
        await self.delete_many((location,))

    async def delete_many(self, locations: Iterable[Location]) -> None:  # noqa: D102
        chosen = tuple(locations)

        async def delete() -> None:
            self._check()
            await self.inner.delete_many(chosen)

        await patiently(self._clock, delete)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:  # noqa: D102
        async def begin() -> tuple[AsyncGenerator[FileInfo, None], FileInfo | None]:
            listing = open_listing(self.inner, prefix)
            return listing, await anext(listing, None)

        # One that has begun goes on by itself where it was (`ObjectFiles.list`).
        listing, found = await patiently(self._clock, begin)
        async with aclosing(listing):
            while found is not None:
                yield found
                found = await anext(listing, None)

    async def exists(self, location: Location) -> bool:  # noqa: D102
        return await patiently(self._clock, lambda: self.inner.exists(location))
