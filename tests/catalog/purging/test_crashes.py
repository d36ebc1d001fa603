"""A purge whose catalog dies or loses answers of its database, and two servers at once (I91, I92).

Every change of the catalog on the way of a purge is hit in turn. Afterwards a second server looks after what
the first one left. Then the table is there with all of its files, or neither it nor any of them.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.purging.outbox import look_after_purges
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import Reference
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog
from cynosure.testing.small_purger import purge_now
from cynosure.testing.small_realm import SharedBackend
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio


@dataclass
class Two:
    """Two servers on one store, and a service that purges for both, through the second one."""

    folder: Path
    backend: SharedBackend
    directories: list[Directory]
    executor: ScriptedExecutor
    location: Path = field(default=Path())

    async def open(self, number: int) -> OpenCatalog:
        return await self.directories[number].open(DEFAULT_REALM, "lake")

    def files(self) -> set[Path]:
        return {each for each in self.location.rglob("*") if each.is_file()}

    async def judge(self, before: set[Path], told: BaseException | None) -> str:
        """See to what was left, by the second server, and say what became of the table."""
        catalog = await self.open(1)
        for _ in range(3):
            await look_after_purges(catalog, ROOT)
        assert (await list_tombstones(catalog, ROOT, size=5)).entries == []
        assert await find_disagreements(await catalog.read()) == []
        try:
            await load_table(catalog, ROOT, T)
        except NoSuchTable:
            assert self.files() == set()
            return "gone"
        assert self.files() == before
        assert told is not None, "it was told to be gone"
        return "back"


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    async with AsyncExitStack() as stack:
        backend, directories = SharedBackend(), []
        for _ in range(2):
            opened = await stack.enter_async_context(open_persistence_on(backend, initialise=True))
            directories.append(await stack.enter_async_context(directory_on(opened, tmp_path)))
        executor = ScriptedExecutor(directories[1].shared.persistence.clock)
        for each in directories:
            each.shared.use_executor(executor)
        await make_catalog(directories[0], tmp_path)
        made = Two(tmp_path, backend, directories, executor)
        await create_namespace(await made.open(0), ROOT, ("ns",), {})
        yield made
        backend.writes_left = backend.rule = None


async def act(two: Two) -> BaseException | None:
    try:
        await drop_table(await two.open(0), ROOT, T, is_purge_requested=True)
    except CynosureError as error:
        return error
    return None


async def run(two: Two, hit: Callable[[], None], *, fails: bool) -> tuple[str, BaseException | None]:
    """One table, purged while something is hit."""

    async def work(order: TaskOrder) -> TaskStatus:
        if fails:
            return TaskStatus.FAILURE
        # The second server lives, whatever the first one may still write.
        left, two.backend.writes_left = two.backend.writes_left, None
        await purge_now(two.directories[1], order)
        two.backend.writes_left = left
        return TaskStatus.SUCCESS

    two.executor.work = work
    created = decoded(await make(await two.open(0)))
    two.location = Path(created["location"].removeprefix("file://"))
    before = two.files()
    assert before
    hit()
    told = await act(two)
    two.backend.writes_left = two.backend.rule = None
    end = await two.judge(before, told)
    if end == "back":
        await drop_table(await two.open(1), ROOT, T)
    return end, told


@pytest.mark.parametrize("fails", [False, True], ids=["purged", "lifted"])
@pytest.mark.parametrize("is_applied", [False, True], ids=["request lost", "answer lost"])
async def test_a_database_that_loses_a_request_or_an_answer(two: Two, is_applied: bool, fails: bool):
    ends = []
    for number in range(5):
        seen = 0

        async def lose(
            expected: Reference,
            updated: Reference,
            apply: Callable[[], Awaitable[bool]],
            number: int = number,
        ) -> bool:
            nonlocal seen
            if expected.key.name != "main":
                return await apply()
            seen += 1
            if seen - 1 != number:
                return await apply()
            if is_applied:
                await apply()
            raise OutcomeUnknown("No answer")

        def hit(rule=lose) -> None:
            two.backend.rule = rule

        ends.append((await run(two, hit, fails=fails))[0])

    # What the first answer says is that nothing was purged, or that all was; a lost one changes neither.
    assert ends == (["back"] if fails else ["gone"]) * 5


@pytest.mark.parametrize("fails", [False, True], ids=["purged", "lifted"])
async def test_a_server_that_dies_before_any_of_its_writes(two: Two, fails: bool):
    ends = []
    for number in range(4):

        def hit(left: int = number) -> None:
            two.backend.writes_left = left

        ends.append((await run(two, hit, fails=fails))[0])

    # Before the tombstone nothing has happened; from then on it ends as if nobody had died.
    assert ends[0] == "back"
    assert set(ends[1:]) == ({"back"} if fails else {"gone"})


async def test_two_servers_look_after_the_same_purge_at_once(two: Two):
    catalogs = [await two.open(0), await two.open(1)]
    two.executor.work = None
    for _ in range(3):
        created = decoded(await make(catalogs[0]))
        two.location = Path(created["location"].removeprefix("file://"))
        before = two.files()
        drop = asyncio.create_task(act(two))
        orders = len(two.executor.orders)
        await two.executor.until(lambda orders=orders: len(two.executor.orders) > orders)
        order = two.executor.orders[-1]
        await purge_now(two.directories[1], order)
        await two.executor.end(order.task_id)
        await asyncio.gather(*(look_after_purges(each, ROOT) for each in catalogs))

        assert await asyncio.wait_for(drop, 10) is None
        assert await two.judge(before, None) == "gone"
