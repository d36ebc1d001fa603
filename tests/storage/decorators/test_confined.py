import pytest

from cynosure.common.clock import SystemClock
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.decorators.confined import ConfinedFileIO
from cynosure.storage.errors import StorageRefused
from cynosure.testing.fileio_kit import FileIOKit, Place

from .memory_place import BASE, memory_place

pytestmark = pytest.mark.anyio


class TestConfinedFileIO(FileIOKit):
    @pytest.fixture
    def place(self) -> Place:
        return memory_place(lambda files: ConfinedFileIO(files, [BASE]))


async def test_what_the_storage_would_reach_is_refused_outside_of_the_places():
    inner = MemoryFileIO([BASE], SystemClock())
    own, foreign = BASE.child("own", "file"), BASE.child("other", "file")
    await inner.write(own, b"1")
    await inner.write(foreign, b"2")
    files = ConfinedFileIO(inner, [BASE.child("own")])

    with pytest.raises(StorageRefused):
        await files.delete_many([own, foreign])
    with pytest.raises(StorageRefused):
        await files.read(foreign)
    with pytest.raises(StorageRefused):
        files.list(BASE)

    assert await inner.read(own) == b"1"
    assert await inner.read(foreign) == b"2"
    assert [each.location async for each in files.list(BASE.child("own"))] == [own]
