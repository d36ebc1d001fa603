import asyncio

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists, TooLarge
from cynosure.common.telemetry.metrics import render
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.decorators import MeteredFileIO
from cynosure.storage.errors import FileMissing, StorageRefused
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place, collect

from .memory_place import BASE, SlowFiles, memory_place

pytestmark = pytest.mark.anyio


class TestMeteredFileIO(FileIOKit):
    @pytest.fixture
    def place(self) -> Place:
        return memory_place(lambda files: MeteredFileIO(files, "memory", SystemClock()))


def counted(operation: str, outcome: str) -> float:
    labels = f'operation="{operation}",outcome="{outcome}",storage="memory"'
    name = f"cynosure_storage_operations_total{{{labels}}} "
    return next((float(line[len(name) :]) for line in lines() if line.startswith(name)), 0.0)


def lines() -> list[str]:
    return render().decode().splitlines()


async def test_operations_bytes_and_times_are_counted(metrics: None):
    files = MeteredFileIO(MemoryFileIO([BASE], SystemClock()), "memory", SystemClock())

    await files.write(BASE.child("file"), b"12345")
    await files.read(BASE.child("file"))
    await files.read(BASE.child("file"))
    await files.exists(BASE.child("file"))
    await collect(files, BASE)
    await files.delete(BASE.child("file"))
    await files.delete_many([BASE.child("file")])

    assert counted("read", "ok") == 2
    for operation in ("write", "exists", "list", "delete", "delete_many"):
        assert counted(operation, "ok") == 1
    assert 'cynosure_storage_read_bytes_total{storage="memory"} 10.0' in lines()
    assert 'cynosure_storage_written_bytes_total{storage="memory"} 5.0' in lines()
    assert 'cynosure_storage_operation_seconds_count{operation="read",storage="memory"} 2.0' in lines()


async def test_failures_are_counted_by_what_they_are(metrics: None):
    files = MeteredFileIO(MemoryFileIO([BASE], SystemClock()), "memory", SystemClock())
    await files.write(BASE.child("file"), b"12345")

    with pytest.raises(FileMissing):
        await files.read(BASE.child("none"))
    with pytest.raises(TooLarge):
        await files.read(BASE.child("file"), limit_bytes=1)
    with pytest.raises(AlreadyExists):
        await files.write(BASE.child("file"), b"other")
    with pytest.raises(StorageRefused):
        await collect(files, Location.parse("s3://other/place"))

    assert counted("read", "missing") == 1
    assert counted("read", "too large") == 1
    assert counted("write", "taken") == 1
    assert counted("list", "refused") == 1
    assert 'cynosure_storage_written_bytes_total{storage="memory"} 5.0' in lines()


async def test_what_was_given_up_is_not_counted(metrics: None):
    slow = SlowFiles()
    files = MeteredFileIO(slow, "memory", SystemClock())
    task = asyncio.create_task(files.exists(BASE.child("file")))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert not any("operations_total{" in line for line in lines())
