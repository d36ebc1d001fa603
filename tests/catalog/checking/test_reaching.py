"""Stores that answer well and do something else are found out."""

import random

import pytest

from cynosure.catalog.checking.probe import make_probe
from cynosure.catalog.checking.reaching import Reaching
from cynosure.catalog.checking.steps import Finding
from cynosure.common.clock import SystemClock
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.fileio import FileInfo
from cynosure.storage.location import Location

pytestmark = pytest.mark.anyio

PLACE = Location.parse("s3://bucket/lake")


class LastWriterWins(MemoryFileIO):
    """A store that ignores `If-None-Match`."""

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        await super().write(location, data, overwrite=True)


class Forgetful(MemoryFileIO):
    """A store that says yes and keeps what it had."""

    async def delete(self, location: Location) -> None:
        """Nothing."""

    async def list(self, prefix: Location):  # type: ignore[no-untyped-def, override]
        for nothing in list[FileInfo]():
            yield nothing


def reach(kind: type[MemoryFileIO]) -> Reaching:
    return Reaching(kind((PLACE,), SystemClock()), make_probe(PLACE, random.Random(1)))


async def test_a_store_that_does_what_it_says_passes() -> None:
    reaching = reach(MemoryFileIO)

    for step in (reaching.write, reaching.read, reaching.list, reaching.create_once, reaching.delete):
        await step()


async def test_a_store_that_lets_the_last_writer_win_is_found_out() -> None:
    reaching = reach(LastWriterWins)
    await reaching.write()

    with pytest.raises(Finding, match="second writer"):
        await reaching.create_once()


async def test_a_store_that_lists_or_deletes_nothing_is_found_out() -> None:
    reaching = reach(Forgetful)
    await reaching.write()

    with pytest.raises(Finding, match="not listed"):
        await reaching.list()
    with pytest.raises(Finding, match="still there"):
        await reaching.delete()
