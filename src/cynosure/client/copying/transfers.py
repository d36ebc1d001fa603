"""Single files on their way from one store to another, each through a temporary file.

A maintainer must not break: what is there with the right size is not written again. Files of a table never
change, and neither of the stores shows one that is half written.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from io import BytesIO
from typing import IO, Final, TypeVar

from cynosure.client.appending.stores import Files
from cynosure.client.copying.reading import Reading
from cynosure.common.errors import BadInput, Unavailable

T = TypeVar("T")

_AT_ONCE: Final = 8
_IN_MEMORY_BYTES: Final = 4 * 2**20
_MOST_BYTES: Final = 512 * 2**20
"""Of a file that is read whole: a manifest. Writers cut them at a few megabytes."""

OnFile = Callable[[int], None]
"""Told the size of each file that was copied."""


class Transfers:
    """Files of one table."""

    def __init__(self, reading: Reading, files: Files, on_file: OnFile) -> None:
        self._reading = reading
        self._files = files
        self._on_file = on_file
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self.copied = 0
        self.found = 0
        """Files that were there already."""
        self.copied_bytes = 0

    async def copy(self, source: str, target: str, size_bytes: int) -> None:
        """Have a file there, byte for byte."""
        async with self._limit:
            if await self._files.has(target, size_bytes):
                self.found += 1
                return
            with open_temporary() as content:
                await self._read(source, content)
                await self._write(target, content)

    async def rewrite(self, source: str, target: str, change: Callable[[IO[bytes], IO[bytes]], T]) -> T:
        """Have what `change` makes of a file there: it gets its content, and where the new one goes."""
        async with self._limit:
            with open_temporary() as content, open_temporary() as changed:
                await self._read(source, content)
                content.seek(0)
                result = await asyncio.to_thread(change, content, changed)
                size_bytes = changed.seek(0, 2)
                if await self._files.has(target, size_bytes):
                    self.found += 1
                else:
                    await self._write(target, changed)
                return result

    async def load(self, source: str) -> bytes:
        """The whole content of a file."""
        async with self._limit:
            with open_temporary() as content:
                if await self._read(source, content) > _MOST_BYTES:
                    raise BadInput(
                        "A manifest is larger than this client reads",
                        field="manifests",
                        fix="Rewrite the table's manifests with an engine.",
                        path=source,
                    )
                content.seek(0)
                return content.read()

    async def save(self, target: str, data: bytes) -> None:
        """Have a file with this content there."""
        async with self._limit:
            await self._write(target, BytesIO(data))

    async def _read(self, source: str, into: IO[bytes]) -> int:
        try:
            return await self._reading.read(source, into)
        except OSError as error:
            raise Unavailable(
                "There is no room for a temporary file",
                fix="Make room, or set TMPDIR to a directory that has some.",
                reason=error.strerror or type(error).__name__,
            ) from error

    async def _write(self, target: str, content: IO[bytes]) -> None:
        size_bytes = content.seek(0, 2)
        content.seek(0)
        await self._files.write(target, content)
        self.copied += 1
        self.copied_bytes += size_bytes
        self._on_file(size_bytes)


def open_temporary() -> IO[bytes]:
    """A file that is gone when it is closed; a small one is in memory."""
    return tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]], most: int) -> None:
    """Do the work for all, so many at once. The first error ends it, when all the others have ended."""
    tasks: set[asyncio.Future[None]] = set()
    try:
        for item in items:
            if len(tasks) >= most:
                tasks = await _wait(tasks)
            tasks.add(asyncio.ensure_future(work(item)))
        while tasks:
            tasks = await _wait(tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _wait(tasks: "set[asyncio.Future[None]]") -> "set[asyncio.Future[None]]":
    ended, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        task.result()
    return left
