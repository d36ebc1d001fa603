"""Appends that share a commit, on a database or a storage that fails: nobody is told what is not so."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Reference
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog
from cynosure.testing.small_keys import with_key
from cynosure.testing.small_store import RuledBackend
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio
NAMES = [f"f{number:02d}" for number in range(10)]
PATIENT = PersistenceSettings()
IMPATIENT = PersistenceSettings(commit_deadline=timedelta(seconds=5))


class Shop(NamedTuple):
    catalog: OpenCatalog
    backend: RuledBackend


@pytest.fixture(params=[PATIENT], ids=["patient"])
async def shop(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    """A table, on a database whose answers the test decides."""
    backend = RuledBackend()
    async with (
        open_persistence_on(backend, request.param, initialise=True) as persistence,
        directory_on(persistence, tmp_path) as directory,
    ):
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, T.namespace, {})
        await make(catalog)
        yield Shop(catalog, backend)


async def append_all(catalog: OpenCatalog, *, is_repeat: bool = False) -> list[Any]:
    location = await where(catalog)
    callers = [with_key(ROOT, name, payload=name, is_repeat=is_repeat) for name in NAMES]
    return await asyncio.gather(
        *(
            append_files(catalog, caller, T, Addition(data_files=[file(location, name)]))
            for caller, name in zip(callers, NAMES, strict=True)
        ),
        return_exceptions=True,
    )


async def missing_files(catalog: OpenCatalog) -> list[str]:
    """What the table names and nobody finds."""
    answer = await load_table(catalog, ROOT, T)
    named = [str(answer.metadata_location), *(each["manifest-list"] for each in decoded(answer)["snapshots"])]
    return [each for each in named if not Path(each.removeprefix("file://")).exists()]


@pytest.mark.parametrize("shop", [IMPATIENT], ids=["impatient"], indirect=True)
@pytest.mark.parametrize("is_applied", [True, False])
async def test_when_the_answer_is_lost_nobody_is_told_that_it_failed(shop: Shop, is_applied: bool):
    """The first goes alone; the answer to the commit of the nine others is lost."""
    swaps = 0

    async def lose(expected: Reference, updated: Reference, apply: Any) -> bool:
        nonlocal swaps
        swaps += 1
        if swaps == 1:
            return bool(await apply())
        if swaps == 2:
            if is_applied:
                await apply()
            raise OutcomeUnknown("The answer was lost")
        raise Unavailable("The database does not answer")

    shop.backend.rule = lose
    first = await append_all(shop.catalog)
    shop.backend.rule = None

    assert [type(each) for each in first] == [Appended] + [OutcomeUnknown] * 9
    assert await missing_files(shop.catalog) == []
    before = await planned(shop.catalog)
    assert before == (NAMES if is_applied else NAMES[:1])

    again = await append_all(shop.catalog, is_repeat=True)

    assert [type(each) for each in again] == [Appended] * 10
    assert again[0] == first[0]
    assert await planned(shop.catalog) == NAMES
    assert await missing_files(shop.catalog) == []


class Failing:
    """The files of a catalog whose store fails from some write on."""

    def __init__(self, files: Any, at: int) -> None:
        self._files = files
        self._left = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def write(self, location: Location, data: bytes) -> None:
        self._left -= 1
        if self._left <= 0:
            raise StorageUnavailable("The store does not answer", location=location.text)
        await self._files.write(location, data)


@pytest.mark.parametrize("at", range(1, 7))
async def test_when_files_cannot_be_written_any_more_nothing_half_is_committed(
    shop: Shop, at: int, monkeypatch: pytest.MonkeyPatch
):
    failing = Failing(shop.catalog.storage.files, at)
    with monkeypatch.context() as patched:
        patched.setattr(OpenCatalog, "files", property(lambda _: failing))
        first = await append_all(shop.catalog)

    done = [name for name, each in zip(NAMES, first, strict=True) if isinstance(each, Appended)]
    assert all(isinstance(each, Appended | StorageUnavailable) for each in first)
    assert len(done) < 10
    assert await planned(shop.catalog) == done
    assert await missing_files(shop.catalog) == []

    again = await append_all(shop.catalog, is_repeat=True)

    assert [type(each) for each in again] == [Appended] * 10
    assert await planned(shop.catalog) == NAMES
