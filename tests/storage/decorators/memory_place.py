"""Files in memory for what is put around them."""

import asyncio
from collections.abc import Callable

from cynosure.common.clock import SystemClock
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import Place

BASE = Location.parse("s3://bkt/allowed")


def memory_place(decorate: Callable[[FileIO], FileIO]) -> Place:
    files = MemoryFileIO([BASE], SystemClock())
    return Place(BASE, lambda: decorate(files))


class SlowFiles(MemoryFileIO):
    """Answers only when the gate is open."""

    def __init__(self) -> None:
        super().__init__([BASE], SystemClock())
        self.gate = asyncio.Event()
        self.under_way = self.most_under_way = 0

    async def exists(self, location: Location) -> bool:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
        finally:
            self.under_way -= 1
        return await super().exists(location)
