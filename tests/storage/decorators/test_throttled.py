import asyncio
from collections.abc import AsyncIterator

import pytest

from cynosure.common.clock import SystemClock
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.decorators import ThrottledFileIO
from cynosure.storage.errors import FileMissing, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place

from .memory_place import BASE, SlowFiles, memory_place

pytestmark = pytest.mark.anyio


class TestThrottledFileIO(FileIOKit):
    @pytest.fixture
    def place(self) -> Place:
        return memory_place(lambda files: ThrottledFileIO(files, most=1, wait_s=60))


async def test_no_more_than_so_many_are_under_way():
    slow = SlowFiles()
    files = ThrottledFileIO(slow, most=3, wait_s=60)
    tasks = [asyncio.create_task(files.exists(BASE.child("file"))) for _ in range(10)]
    for _ in range(20):
        await asyncio.sleep(0)

    assert slow.under_way == 3
    slow.gate.set()
    await asyncio.gather(*tasks)

    assert slow.most_under_way == 3


async def test_whoever_waits_too_long_is_told_that_the_storage_is_not_available():
    slow = SlowFiles()
    files = ThrottledFileIO(slow, most=1, wait_s=0.01)
    first = asyncio.create_task(files.exists(BASE.child("file")))
    await asyncio.sleep(0)

    with pytest.raises(StorageUnavailable):
        await files.read(BASE.child("file"))

    slow.gate.set()
    assert not await first
    with pytest.raises(FileMissing):
        await files.read(BASE.child("file"))


async def test_a_turn_is_given_back_after_a_failure_and_by_one_who_gave_up():
    slow = SlowFiles()
    files = ThrottledFileIO(slow, most=1, wait_s=60)
    impatient = asyncio.create_task(files.exists(BASE.child("file")))
    await asyncio.sleep(0)
    impatient.cancel()
    slow.gate.set()

    for _ in range(3):
        with pytest.raises(FileMissing):
            await files.read(BASE.child("file"))

    assert not await files.exists(BASE.child("file"))


async def test_what_is_listed_can_be_deleted_meanwhile(memory: MemoryFileIO):
    files = ThrottledFileIO(memory, most=1, wait_s=60)
    for number in range(3):
        await files.write(BASE.child(str(number)), b"x")

    async def each() -> AsyncIterator[Location]:
        async for found in files.list(BASE):
            yield found.location

    async for location in each():
        await files.delete(location)

    assert [found async for found in files.list(BASE)] == []


@pytest.fixture
def memory() -> MemoryFileIO:
    return MemoryFileIO([BASE], SystemClock())
