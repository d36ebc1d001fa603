import logging

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.decorators import AuditedFileIO
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place

from .memory_place import BASE, memory_place

pytestmark = pytest.mark.anyio


class TestAuditedFileIO(FileIOKit):
    @pytest.fixture
    def place(self) -> Place:
        return memory_place(AuditedFileIO)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.getMessage(), each.cynosure_fields["location"]) for each in caplog.records]


async def test_every_change_leaves_a_line_and_reading_leaves_none(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    files = AuditedFileIO(MemoryFileIO([BASE], SystemClock()))

    await files.write(BASE.child("a"), b"contents")
    await files.write(BASE.child("a"), b"others", overwrite=True)
    await files.read(BASE.child("a"))
    await files.exists(BASE.child("a"))
    await files.delete(BASE.child("a"))
    await files.delete_many(BASE.child(name) for name in "bc")

    assert told(caplog) == [
        ("file.written", "s3://bkt/allowed/a"),
        ("file.written", "s3://bkt/allowed/a"),
        ("file.deleted", "s3://bkt/allowed/a"),
        ("file.deleted", "s3://bkt/allowed/b"),
        ("file.deleted", "s3://bkt/allowed/c"),
    ]
    assert caplog.records[0].cynosure_fields["size_bytes"] == 8
    assert "contents" not in caplog.text


async def test_what_failed_leaves_a_line_too(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    files = AuditedFileIO(MemoryFileIO([BASE], SystemClock()))
    await files.write(BASE.child("a"), b"x")
    caplog.clear()

    with pytest.raises(AlreadyExists):
        await files.write(BASE.child("a"), b"y")
    with pytest.raises(StorageRefused):
        await files.delete_many([BASE.child("a"), Location.parse("s3://other/b")])

    assert told(caplog) == [
        ("file.write_failed", "s3://bkt/allowed/a"),
        ("file.delete_failed", "s3://bkt/allowed/a"),
        ("file.delete_failed", "s3://other/b"),
    ]
