"""Dropping a catalog: two references, one order; whoever dies or races in between, no write is lost."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cynosure.catalog.closing import close
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogClosed, CatalogNotEmpty, NoSuchCatalog
from cynosure.catalog.names import CLOSED
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_catalog import drop_catalog, reopen_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.errors import Conflict, CynosureError
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.references import CATALOG_REFERENCES, DEFAULT_REALM, catalog_reference
from cynosure.persistence.spi import CatalogId, Reference, Row
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog

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
    assert (await list_catalogs(directory, ROOT)).catalogs == []


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
    assert [entity.name for entity in (await list_catalogs(directory, ROOT)).catalogs] == ["lake"]

    await drop_catalog(directory, ROOT, "lake")
    assert (await list_catalogs(directory, ROOT)).catalogs == []


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


class GatedBackend(MemoryBackend):
    """One process' way to the shared store. While it is gated, each swap waits until it is let through."""

    is_gated = False

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self._turns: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        if self.is_gated and expected.key.name in ("main", "grants", "catalogs"):
            turn = asyncio.get_running_loop().create_future()
            self._turns.put_nowait(turn)
            await turn
        return await super().swap_ref(expected, updated, rows)

    async def next_swap(self) -> asyncio.Future[None]:
        return await self._turns.get()


class Actor:
    """Something a process does, one swap at a time."""

    def __init__(self, backend: GatedBackend, work: Callable[[], Awaitable[object]]) -> None:
        self._backend = backend
        self._work = work
        self._task: asyncio.Future[object] | None = None
        self._turn: asyncio.Future[None] | None = None

    @property
    def is_done(self) -> bool:
        return self._task is not None and self._task.done()

    async def step(self) -> None:
        """Begin, or let one swap through; then go on until the next swap or the end."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())
        elif self._turn is not None:
            self._turn.set_result(None)
        self._turn = None
        waiting = asyncio.ensure_future(self._backend.next_swap())
        await asyncio.wait([self._task, waiting], return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            self._turn = waiting.result()
        else:
            waiting.cancel()

    async def outcome(self) -> object:
        assert self._task is not None
        return (await asyncio.gather(self._task, return_exceptions=True))[0]


DROP, REOPEN, WRITE = range(3)


class Stage:
    """Three processes on one store: one drops, one opens again, one writes."""

    def __init__(self, directories: list[Directory], backends: list[GatedBackend], folder: Path) -> None:
        self._directories = directories
        self._backends = backends
        self._folder = folder

    async def play(self, name: str, orders: Iterable[int], *, is_closed: bool) -> str:
        """Let them act in this order, and judge what came of it."""
        directories = self._directories
        catalog = await make_catalog(directories[0], self._folder, name)
        if is_closed:
            await close(directories[0].shared, ROOT, catalog.entity.id, name)
        writable = await directories[2].open(DEFAULT_REALM, name)
        actors = [
            Actor(self._backends[0], lambda: drop_catalog(directories[0], ROOT, name)),
            Actor(self._backends[1], lambda: reopen_catalog(directories[1], ROOT, name)),
            Actor(self._backends[2], lambda: create_namespace(writable, ROOT, ("ns",), {})),
        ]
        played: list[int] = []
        for backend in self._backends:
            backend.is_gated = True
        for at in orders:
            if not actors[at].is_done:
                played.append(at)
                await actors[at].step()
            if all(actor.is_done for actor in actors):
                break
        for backend in self._backends:
            backend.is_gated = False
        dropped, opened, written = [await actor.outcome() for actor in actors]

        for outcome in (dropped, opened, written):
            assert not isinstance(outcome, BaseException) or isinstance(outcome, CynosureError), repr(outcome)
        is_listed = name in [entity.name for entity in (await list_catalogs(directories[2], ROOT)).catalogs]
        is_written = not isinstance(written, BaseException)
        assert is_listed or not is_written, f"lost: {played}"
        # Nobody creates it again: who was told that it is dropped was told the truth.
        assert is_listed == (dropped is not None), f"{dropped!r}: {played}"
        return "written" if is_written else "closed" if is_listed else "gone"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        backends = [GatedBackend(store) for _ in range(3)]
        directories: list[Directory] = []
        for backend in backends:
            opened = await stack.enter_async_context(open_persistence_on(backend, initialise=True))
            directories.append(await stack.enter_async_context(directory_on(opened, tmp_path)))
        yield Stage(directories, backends, tmp_path)


async def test_no_acknowledged_write_is_in_a_catalog_that_is_gone(stage: Stage, scale: int) -> None:
    """Their swaps in any order."""
    rng = random.Random(random.getrandbits(64))
    seen = Counter[str]()
    for number in range(scale):
        orders = iter(lambda: rng.randrange(3), -1)
        seen[await stage.play(f"c{number}", orders, is_closed=rng.random() < 0.5)] += 1

    # All ends are reached, or the orders drawn here prove nothing.
    assert set(seen) == {"gone", "written", "closed"}, seen


async def test_an_opening_that_began_before_a_drop_does_not_undo_its_closing(stage: Stage) -> None:
    """It looked at the mark of an earlier drop, and is late."""
    orders = [REOPEN, REOPEN, DROP, DROP, REOPEN, REOPEN, WRITE, WRITE, WRITE, *[DROP, REOPEN, WRITE] * 5]

    assert await stage.play("lake", orders, is_closed=True) == "gone"


@pytest.fixture
def scale() -> int:
    return 3_000 if os.environ.get("CYNOSURE_SOAK") else 150
