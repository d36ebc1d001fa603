"""Plans that outlive their first answer: elsewhere, after restarts, cancelled; whose they are (I87)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchPlan, NoSuchPlanTask
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.cancel_plan import cancel_plan
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.fetch_plan import fetch_plan
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.planning.viewer import Viewer
from cynosure.catalog.recent_plans import PlanKey
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.common.errors import Unavailable
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_access import P, People, on_catalog
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog, open_directory_in
from tests.catalog.planning.scans import Scanned, make_engine, make_scanned, names, plan, read_all, read_tasks
from tests.catalog.tables import T

pytestmark = pytest.mark.anyio

FEW = CatalogSettings(planning=PlanningSettings(page_files=2))
AT_ONCE = CatalogSettings(planning=PlanningSettings(page_files=2, wait=timedelta(0), concurrent=2))


class Place:
    """Servers of one store."""

    def __init__(self, directory: Directory, folder: Path, clock: ManualClock) -> None:
        self.directory = directory
        self.folder = folder
        self.clock = clock

    @asynccontextmanager
    async def another(self, settings: CatalogSettings = FEW) -> AsyncIterator[OpenCatalog]:
        """The catalog as another server sees it, which has planned nothing."""
        persistence = self.directory.shared.persistence
        async with directory_on(persistence, self.folder, settings) as other:
            yield await other.open(DEFAULT_REALM, "lake")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = ManualClock()
    async with open_directory_in(tmp_path, catalog_settings=FEW, clock=clock) as directory:
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, ("ns",), {})
        yield Place(directory, tmp_path, clock)


@pytest.fixture
async def scanned(place: Place) -> Scanned:
    made = await make_scanned(await place.directory.open(DEFAULT_REALM, "lake"))
    await made.commit(*[[made.file(f"{at}-{each}") for each in range(2)] for at in range(3)])
    return made


def on(catalog: OpenCatalog, scanned: Scanned) -> Scanned:
    """The same table on another server."""
    return Scanned(catalog, scanned.table, scanned.location, scanned.spec)


async def task_of(scanned: Scanned, caller: Caller = ROOT) -> str:
    planned = await plan(scanned, caller)
    assert planned.tasks is not None
    return planned.tasks.plan_tasks[0]


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await look():  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.001)


async def test_every_server_answers_the_tasks_of_a_plan_for_the_version_that_was_planned(
    place: Place, scanned: Scanned
) -> None:
    planned = await plan(scanned)
    await scanned.commit([scanned.file("later")])

    async with place.another() as catalog:
        found = await read_all(on(catalog, scanned), planned)

    assert names(found) == [f"{at}-{each}" for at in range(3) for each in range(2)]


async def test_a_plan_that_was_told_completely_leaves_nothing_behind(place: Place, scanned: Scanned) -> None:
    before = await place.directory.shared.persistence.backend.scan(after=None, limit=10_000)

    planned = await plan(scanned, min_rows_requested=1)

    assert await place.directory.shared.persistence.backend.scan(after=None, limit=10_000) == before
    await cancel_plan(scanned.catalog, ROOT, T, planned.plan_id)
    with pytest.raises(NoSuchPlan):
        await fetch_plan(scanned.catalog, ROOT, T, planned.plan_id)


async def test_a_cancelled_plan_is_unknown_to_every_server(place: Place, scanned: Scanned) -> None:
    planned = await plan(scanned)
    assert planned.tasks is not None
    async with place.another() as catalog:
        assert (await fetch_plan(catalog, ROOT, T, planned.plan_id)).tasks is not None
        await fetch_scan_tasks(catalog, ROOT, T, planned.tasks.plan_tasks[0])

        await cancel_plan(scanned.catalog, ROOT, T, planned.plan_id)

        for server in (catalog, scanned.catalog):
            assert (await fetch_plan(server, ROOT, T, planned.plan_id)).is_cancelled
            with pytest.raises(NoSuchPlanTask):
                await fetch_scan_tasks(server, ROOT, T, planned.tasks.plan_tasks[0])
            with pytest.raises(NoSuchPlan):
                await cancel_plan(server, ROOT, T, planned.plan_id)


async def test_what_was_never_given_is_no_plan_and_no_task(scanned: Scanned) -> None:
    planned = await plan(scanned)
    assert planned.tasks is not None
    task = planned.tasks.plan_tasks[0]
    forged = ["", "x", task[:-1], f"{task[:-2]}AA", planned.plan_id, "ü" * 20_000]

    for each in forged:
        with pytest.raises(NoSuchPlanTask):
            await fetch_scan_tasks(scanned.catalog, ROOT, T, each)
    for each in (*forged[:4], task):
        with pytest.raises(NoSuchPlan):
            await fetch_plan(scanned.catalog, ROOT, T, each)
        with pytest.raises(NoSuchPlan):
            await cancel_plan(scanned.catalog, ROOT, T, each)


async def test_plans_end_with_their_time(place: Place, scanned: Scanned) -> None:
    planned = await plan(scanned)
    assert planned.tasks is not None

    await place.clock.advance(3_601)

    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(scanned.catalog, ROOT, T, planned.tasks.plan_tasks[0])
    with pytest.raises(NoSuchPlan):
        await fetch_plan(scanned.catalog, ROOT, T, planned.plan_id)


async def test_a_plan_goes_with_its_table_and_not_with_its_name(scanned: Scanned) -> None:
    task = await task_of(scanned)
    moved = Identifier(("ns",), "moved")

    await rename_table(scanned.catalog, ROOT, T, moved)
    await make_scanned(scanned.catalog, T)

    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(scanned.catalog, ROOT, T, task)
    assert len(read_tasks(await fetch_scan_tasks(scanned.catalog, ROOT, moved, task))) == 2
    await drop_table(scanned.catalog, ROOT, moved)
    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(scanned.catalog, ROOT, T, task)


async def test_a_plan_is_for_one_principal_and_who_acts_for_it(place: Place, scanned: Scanned) -> None:
    people = People(place.directory)
    await people.root()
    rights = on_catalog(P.TABLE_READ_DATA)
    ann = await people.add("ann", scanned.catalog, *rights)
    bob = await people.add("bob", scanned.catalog, *rights)
    acting = await make_engine(people, ann)
    planned = await plan(scanned, ann)
    assert planned.tasks is not None
    task = planned.tasks.plan_tasks[0]

    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(scanned.catalog, bob, T, task)
    with pytest.raises(NoSuchPlan):
        await cancel_plan(scanned.catalog, bob, T, planned.plan_id)
    with pytest.raises(NoSuchPlanTask):
        await fetch_scan_tasks(scanned.catalog, acting, T, task)
    assert len((await fetch_scan_tasks(scanned.catalog, ann, T, task)).files) == 2

    await people.revoke("ann", scanned.catalog, *rights)
    with pytest.raises(AccessDenied):
        await fetch_scan_tasks(scanned.catalog, ann, T, task)
    with pytest.raises(AccessDenied):
        await fetch_plan(scanned.catalog, ann, T, planned.plan_id)


async def test_files_that_are_gone_by_now_end_the_plan(place: Place, scanned: Scanned) -> None:
    task = await task_of(scanned)
    for each in scanned.manifests:
        scanned.local(each.path).unlink()

    async with place.another() as catalog:
        with pytest.raises(NoSuchPlanTask) as caught:
            await fetch_scan_tasks(catalog, ROOT, T, task)

    assert caught.value.fix == "Plan the scan again."


async def test_a_plan_that_takes_long_is_made_in_the_background_and_by_whichever_server_is_asked(
    place: Place, scanned: Scanned
) -> None:
    async with place.another(AT_ONCE) as catalog, place.another() as other:
        slow = on(catalog, scanned)
        planned = await plan(slow)
        assert planned.tasks is None

        elsewhere = await fetch_plan(other, ROOT, T, planned.plan_id)

        async def is_there() -> bool:
            return (await fetch_plan(catalog, ROOT, T, planned.plan_id)).tasks is not None

        await eventually(is_there)
        here = await fetch_plan(catalog, ROOT, T, planned.plan_id)
        assert elsewhere.tasks is not None
        assert here.tasks is not None
        assert here.tasks.files == elsewhere.tasks.files
        assert len(await read_all(slow, here)) == 6


async def test_what_fails_in_the_background_is_told_to_who_asks(place: Place, scanned: Scanned) -> None:
    for each in scanned.manifests:
        scanned.local(each.path).write_bytes(b"x" * each.length)
    async with place.another(AT_ONCE) as catalog:
        planned = await plan(on(catalog, scanned))

        async def has_failed() -> bool:
            return (await fetch_plan(catalog, ROOT, T, planned.plan_id)).error is not None

        await eventually(has_failed)


async def test_no_more_plans_are_under_way_than_may_be(place: Place, scanned: Scanned) -> None:
    async with place.another(AT_ONCE) as catalog:
        held = asyncio.Event()
        slow = on(catalog, scanned)
        waiting = [asyncio.ensure_future(held.wait()) for _ in range(2)]
        for at, each in enumerate(waiting, 1):
            catalog.shared.plans.keep_running(PlanKey(ObjId(at), Viewer()), each)

        with pytest.raises(Unavailable):
            await plan(slow)

        held.set()
        await asyncio.gather(*waiting)
        assert (await plan(slow)).tasks is None
        assert (await plan(slow)).tasks is None


async def test_a_server_that_ends_ends_its_plans(place: Place, scanned: Scanned) -> None:
    async with place.another(AT_ONCE) as catalog:
        never = asyncio.ensure_future(asyncio.Event().wait())
        catalog.shared.plans.keep_running(PlanKey(ObjId(1), Viewer()), never)

    assert never.cancelled() or never.cancelling()


async def test_plans_that_nobody_asks_for_any_more_are_collected(place: Place, scanned: Scanned) -> None:
    planned = await plan(scanned)
    cancelled = await plan(scanned)
    await cancel_plan(scanned.catalog, ROOT, T, cancelled.plan_id)
    persistence = place.directory.shared.persistence

    async def list_stored() -> list[str]:
        heads = await persistence.backend.scan(after=None, limit=10_000)
        return sorted(head.key.type for head in heads if head.key.type.startswith("scan-plan"))

    await place.clock.advance(3_000)
    await persistence.collector().run()
    assert await list_stored() == ["scan-plan", "scan-plan", "scan-plan-end"]
    assert (await fetch_plan(scanned.catalog, ROOT, T, planned.plan_id)).tasks is not None

    await place.clock.advance(4 * 3_600)
    await persistence.collector().run()
    assert await list_stored() == []
