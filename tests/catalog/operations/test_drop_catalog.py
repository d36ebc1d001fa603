"""Dropping a catalog: two references, one order; whoever dies or races in between, no write is lost."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cynosure.catalog.closing import close
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogClosed, CatalogNotEmpty, NamespaceExists, NoSuchCatalog
from cynosure.catalog.names import CLOSED
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_catalog import drop_catalog, reopen_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import Conflict, CynosureError
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.references import CATALOG_REFERENCES, DEFAULT_REALM, catalog_reference
from cynosure.persistence.spi import CatalogId, Reference
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog
from cynosure.testing.small_store import RuledBackend

pytestmark = pytest.mark.anyio

LONG_AGO_US = 1_000_000


async def test_a_dropped_catalog_is_gone_and_its_name_and_location_are_free(
    directory: Directory, tmp_path: Path
) -> None:
    first = await make_catalog(directory, tmp_path / "files")

    await drop_catalog(directory, ROOT, "lake")

    with pytest.raises(NoSuchCatalog):
        await directory.open(DEFAULT_REALM, "lake")
    with pytest.raises(NoSuchCatalog):
        await drop_catalog(directory, ROOT, "lake")
    second = await make_catalog(directory, tmp_path / "files")
    assert second.entity.id != first.entity.id
    # Whoever still holds the dropped one cannot write to it any more.
    with pytest.raises(CatalogClosed):
        await create_namespace(first, ROOT, ("ns",), {})


async def test_a_catalog_that_holds_something_is_not_dropped_and_goes_on(
    directory: Directory, tmp_path: Path
) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    await create_namespace(catalog, ROOT, ("ns",), {})

    with pytest.raises(CatalogNotEmpty):
        await drop_catalog(directory, ROOT, "lake")
    await create_namespace(catalog, ROOT, ("more",), {})

    for name in ("ns", "more"):
        await drop_namespace(catalog, ROOT, (name,))
    await drop_catalog(directory, ROOT, "lake")
    assert await list_catalogs(directory, ROOT) == []


async def test_the_references_of_a_dropped_catalog_are_swept_and_those_of_others_are_not(
    directory: Directory, tmp_path: Path
) -> None:
    persistence = directory.shared.persistence
    kept = await make_catalog(directory, tmp_path / "files", "kept")
    gone = CatalogId("77")
    keys = [catalog_reference(DEFAULT_REALM, gone, name) for name in CATALOG_REFERENCES]
    for key in keys:
        await persistence.backend.insert_ref(Reference(key, NO_COMMIT, 0, (), LONG_AGO_US))

    assert sorted(await persistence.sweep_unlisted()) == sorted(keys)
    await kept.read()


# --- a crash between the steps ---------------------------------------------------------------------


async def test_a_half_dropped_catalog_refuses_writes_and_is_dropped_again(
    directory: Directory, tmp_path: Path
) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    await close(directory.shared, ROOT, catalog.entity.id, "lake")  # and the process died

    with pytest.raises(CatalogClosed):
        await create_namespace(catalog, ROOT, ("ns",), {})
    assert [entity.name for entity in await list_catalogs(directory, ROOT)] == ["lake"]

    await drop_catalog(directory, ROOT, "lake")
    assert await list_catalogs(directory, ROOT) == []


async def test_a_half_dropped_catalog_can_be_opened_again(directory: Directory, tmp_path: Path) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    await reopen_catalog(directory, ROOT, "lake")
    assert (await directory.open(DEFAULT_REALM, "lake")).entity.version == 1, "it was open"
    await close(directory.shared, ROOT, catalog.entity.id, "lake")

    await reopen_catalog(directory, ROOT, "lake")

    await create_namespace(catalog, ROOT, ("ns",), {})
    assert await (await catalog.read()).find("names", CLOSED) is None
    with pytest.raises(CatalogNotEmpty):
        await drop_catalog(directory, ROOT, "lake")


async def test_a_half_created_catalog_is_swept_or_completed(directory: Directory, tmp_path: Path) -> None:
    persistence = directory.shared.persistence
    catalog = await make_catalog(directory, tmp_path / "files")
    main = catalog_reference(DEFAULT_REALM, catalog.entity.id, "main")
    (ref,) = await persistence.backend.fetch_refs([main])
    assert ref is not None
    assert await persistence.backend.delete_ref(ref)  # a repairer, while the creator died before adopting

    assert await persistence.mend() == [main]

    await create_namespace(catalog, ROOT, ("ns",), {})


async def test_a_catalog_changed_while_it_is_dropped_stays(directory: Directory, tmp_path: Path) -> None:
    """The drop looked at another version than the one it would unlist."""
    catalog = await make_catalog(directory, tmp_path / "files")
    backend = directory.shared.persistence.backend
    is_done = False
    original = backend.swap_ref

    async def change_before_unlisting(expected: Reference, updated: Reference, rows=()) -> bool:
        nonlocal is_done
        if expected.key.name == "main" and not is_done:
            is_done = True
            await update_catalog(directory, ROOT, "lake", CatalogUpdate(set_properties={"a": "1"}))
        return await original(expected, updated, rows)

    backend.swap_ref = change_before_unlisting  # type: ignore[method-assign]
    with pytest.raises(Conflict, match="was changed"):
        await drop_catalog(directory, ROOT, "lake")
    await reopen_catalog(directory, ROOT, "lake")
    await create_namespace(catalog, ROOT, ("ns",), {})


# --- races -----------------------------------------------------------------------------------------


class Stage:
    """Several processes on one store, whose swaps happen one by one, in an order the test draws."""

    def __init__(self, backend: RuledBackend, directories: list[Directory], rng: random.Random) -> None:
        self.directories = directories
        self._rng = rng
        self._waiting: list[asyncio.Future[None]] = []
        self._late: list[asyncio.Future[None]] = []
        """Swaps of a process that was stopped for a while: they happen when nothing else has for long."""
        backend.rule = self._rule

    async def _rule(
        self, expected: Reference, updated: Reference, apply: Callable[[], Awaitable[bool]]
    ) -> bool:
        turn = asyncio.get_running_loop().create_future()
        (self._late if self._rng.random() < 0.3 else self._waiting).append(turn)
        await turn
        return await apply()

    async def play(self, *actors: Awaitable[object]) -> list[object]:
        """Run them all; what each returned or raised."""
        tasks = [asyncio.ensure_future(actor) for actor in actors]
        idle = 0
        while not all(task.done() for task in tasks):
            for _ in range(self._rng.randrange(12)):
                await asyncio.sleep(0)
            idle += 1
            chosen = self._waiting or (self._late if idle > 40 else [])
            if chosen:
                chosen.pop(self._rng.randrange(len(chosen))).set_result(None)
                idle = 0
        return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Callable[[int], Awaitable[Stage]]]:
    async with AsyncExitStack() as stack:

        async def make(seed: int) -> Stage:
            backend = RuledBackend()
            directories: list[Directory] = []
            for _ in range(3):
                opened = await stack.enter_async_context(open_persistence_on(backend, initialise=True))
                directories.append(await stack.enter_async_context(directory_on(opened, tmp_path)))
            return Stage(backend, directories, random.Random(seed))

        yield make


@pytest.mark.parametrize("seed", range(60))
async def test_no_acknowledged_write_is_in_a_catalog_that_is_gone(
    stage: Callable[[int], Awaitable[Stage]], tmp_path: Path, seed: int
) -> None:
    """Drops, openings and writes of three processes in any order."""
    played = await stage(seed)
    first, second, third = played.directories
    location = f"file://{tmp_path}/lake"
    wanted = NewCatalog(name="lake", base_location=location, storage=FileStorage((location,)))
    await played.play(create_catalog(first, ROOT, wanted))
    catalogs = [await each.open(DEFAULT_REALM, "lake") for each in played.directories]
    rng = random.Random(seed)
    if rng.random() < 0.5:
        await played.play(close(first.shared, ROOT, catalogs[0].entity.id, "lake"))

    async def write(at: int) -> str:
        for _ in range(30):
            try:
                await create_namespace(catalogs[at], ROOT, (f"ns{at}",), {})
            except CatalogClosed:
                await asyncio.sleep(0)
            except NamespaceExists:
                break
            else:
                return "written"
        return "refused"

    outcomes = await played.play(
        drop_catalog(first, ROOT, "lake"),
        reopen_catalog(second, ROOT, "lake"),
        drop_catalog(third, ROOT, "lake"),
        write(1),
        reopen_catalog(third, ROOT, "lake"),
        write(2),
    )

    unexpected = [each for each in outcomes if isinstance(each, BaseException)]
    assert all(isinstance(each, CynosureError) for each in unexpected), unexpected
    is_listed = bool(await list_catalogs(second, ROOT))
    assert is_listed or "written" not in outcomes, outcomes
    # Nobody creates it again: who was told that it is dropped was told the truth.
    assert not is_listed or None not in (outcomes[0], outcomes[2])
