"""Namespaces and catalogs that are dropped with all they hold: what goes, what stops it, how it goes on."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from cynosure.catalog import errors
from cynosure.catalog.cascading.contents import Kind, walk_contents
from cynosure.catalog.cascading.drop_catalog import drop_catalog_cascade
from cynosure.catalog.cascading.drop_namespace import drop_namespace_cascade
from cynosure.catalog.cascading.emptying import Emptying
from cynosure.catalog.cascading.explain import plan_namespace_cascade
from cynosure.catalog.cascading.plan import CascadePlan, load_tombstones_below
from cynosure.catalog.directory import Directory
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.purge_errors import PurgeIncomplete
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.settings import DelegationSettings, PurgeMode
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import NotFound
from cynosure.persistence.spi import ObjId
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_access import P, People, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from cynosure.testing.small_keys import with_key
from tests.catalog.policies.made import COMPACTION, ENABLED
from tests.catalog.purging.running_out import put_forward, wait_until_waited_for
from tests.catalog.tables import make
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio

TIMEOUT_S = 60.0
A: Namespace = ("a",)
AB: Namespace = ("a", "b")
OTHER: Namespace = ("other",)
T = Identifier(A, "t")
DEEP = Identifier(AB, "deep")
KEPT = Identifier(OTHER, "kept")


class Opened:
    """A catalog with namespaces, and an executor that a test moves."""

    def __init__(self, directory: Directory, catalog: OpenCatalog, executor: ScriptedExecutor) -> None:
        self.directory = directory
        self.catalog = catalog
        self.executor = executor
        self.people = People(directory)

    async def names(self) -> set[str]:
        """All that is in the catalog."""
        return {str(each) async for each in walk_contents(await self.catalog.read(), (), *Kind)}

    async def purge(self, order: TaskOrder) -> TaskStatus:
        """What a worker does, without any files."""
        await begin_purging(self.catalog, ROOT, ObjId(int(order.table.table_entity_id)), order.task_id)
        return TaskStatus.SUCCESS


def open_with(folder: Path, *, mode: PurgeMode = "sync", url: str = "memory:"):
    settings = DelegationSettings(mode=mode, sync_timeout=timedelta(seconds=TIMEOUT_S))
    return open_directory_in(folder / "files", url=url, delegation=settings)


async def fill(directory: Directory, folder: Path) -> Opened:
    executor = ScriptedExecutor(directory.shared.persistence.clock)
    directory.shared.use_executor(executor)
    catalog = await make_catalog(directory, folder / "files")
    for namespace in (A, AB, ("a", "c"), OTHER):
        await create_namespace(catalog, ROOT, namespace, {})
    for table in (T, DEEP, KEPT):
        await make(catalog, table)
    await create_view(catalog, ROOT, CreateView(Identifier(A, "v"), SCHEMA, VERSION))
    generic = CreateGenericTable(Identifier(AB, "g"), "delta", f"{catalog.base.text}/generic")
    await create_generic_table(catalog, ROOT, generic)
    await create_policy(catalog, ROOT, CreatePolicy(Identifier(AB, "p"), COMPACTION, ENABLED))
    return Opened(directory, catalog, executor)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    async with open_with(tmp_path) as directory:
        yield await fill(directory, tmp_path)


def is_retried(opened: Opened, task_id: str) -> bool:
    return opened.executor.status_of(task_id) is TaskStatus.RETRY_SCHEDULED


async def attach(catalog: OpenCatalog, to: AttachTo) -> None:
    await attach_policy(catalog, ROOT, Identifier(AB, "p"), to, {})


LEFT = {"namespace other", "table other.kept"}


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_all_below_a_namespace_goes_and_nothing_else(tmp_path: Path, store: str) -> None:
    url = "memory:" if store == "memory" else f"sqlite:{tmp_path / 'store.db'}"
    async with open_with(tmp_path, url=url) as directory:
        opened = await fill(directory, tmp_path)
        plan = await plan_namespace_cascade(opened.catalog, ROOT, A, is_purging=False)

        await drop_namespace_cascade(opened.catalog, ROOT, A)

        assert plan == CascadePlan(namespaces=2, tables=2, generic_tables=1, views=1, policies=1)
        assert await opened.names() == LEFT
        assert opened.executor.orders == []


async def test_what_went_is_restored_one_by_one(opened: Opened) -> None:
    await drop_namespace_cascade(opened.catalog, ROOT, A)

    dropped = (await list_dropped(opened.catalog, ROOT, size=100)).entries
    for drop_id, _ in reversed(dropped):
        await restore_dropped(opened.catalog, ROOT, drop_id)

    assert await opened.names() >= {"namespace a", "namespace a.b", "table a.t", "table a.b.deep", "view a.v"}


async def test_a_catalog_goes_with_everything(opened: Opened) -> None:
    await drop_catalog_cascade(opened.directory, ROOT, "lake")

    with pytest.raises(errors.NoSuchCatalog):
        await opened.directory.open(ROOT.realm, "lake")


async def test_a_namespace_that_is_not_there_is_said_not_to_be(opened: Opened) -> None:
    with pytest.raises(errors.NoSuchNamespace):
        await drop_namespace_cascade(opened.catalog, ROOT, ("nowhere",))


async def test_the_rights_are_those_of_each_drop_and_nothing_goes_without_one_of_them(opened: Opened) -> None:
    needed = (P.NAMESPACE_DROP, P.TABLE_DROP, P.VIEW_DROP, P.POLICY_DROP)
    before = await opened.names()
    for number, missing in enumerate(needed):
        rights = [each for each in needed if each is not missing]
        who = await opened.people.add(f"p{number}", opened.catalog, *on_catalog(*rights))

        with pytest.raises((errors.CascadeDenied, errors.AccessDenied)) as refused:
            await drop_namespace_cascade(opened.catalog, who, A)

        assert missing.name in str(refused.value)
        assert await opened.names() == before, "nothing is half dropped"
    who = await opened.people.add("ann", opened.catalog, *on_catalog(*needed))
    with pytest.raises(errors.CascadeDenied, match="TABLE_WRITE_DATA"):
        await drop_namespace_cascade(opened.catalog, who, A, is_purging=True)
    await drop_namespace_cascade(opened.catalog, who, A)
    assert await opened.names() == LEFT


async def test_who_is_restricted_on_a_table_does_not_drop_it_with_others(opened: Opened) -> None:
    rights = on_catalog(P.NAMESPACE_DROP, P.TABLE_DROP, P.VIEW_DROP, P.POLICY_DROP)
    who = await opened.people.add("ann", opened.catalog, *rights)
    content = '{"enable": true, "filter": "id > 100"}'
    few = Identifier(OTHER, "few")
    await create_policy(opened.catalog, ROOT, CreatePolicy(few, "cynosure.row-filter", content))
    await attach_policy(opened.catalog, ROOT, few, AttachTo("table-like", ("a", "t")), {})
    before = await opened.names()

    with pytest.raises(errors.CascadeDenied, match=r"table a\.t"):
        await drop_namespace_cascade(opened.catalog, who, A)

    assert await opened.names() == before


async def test_everything_in_the_way_is_named_at_once(opened: Opened) -> None:
    rights = on_catalog(P.NAMESPACE_DROP, P.POLICY_DROP, P.VIEW_DROP)
    who = await opened.people.add("ann", opened.catalog, *rights, *on_table(T, P.TABLE_DROP))

    plan = await plan_namespace_cascade(opened.catalog, who, A, is_purging=False)
    with pytest.raises(errors.CascadeDenied) as refused:
        await drop_namespace_cascade(opened.catalog, who, A)

    assert {(each.kind, each.path) for each in plan.in_the_way} == {
        ("table", ("a", "b", "deep")),
        ("generic table", ("a", "b", "g")),
    }
    assert "a.b.deep" in str(refused.value)
    assert "a.b.g" in str(refused.value)


async def test_a_policy_that_something_outside_needs_is_in_the_way(opened: Opened) -> None:
    await attach(opened.catalog, AttachTo("table-like", ("other", "kept")))
    before = await opened.names()

    with pytest.raises(errors.CascadeBlocked, match=r"policy a\.b\.p .*other\.kept"):
        await drop_namespace_cascade(opened.catalog, ROOT, A)

    assert await opened.names() == before


async def test_a_policy_that_is_only_needed_below_goes_too(opened: Opened) -> None:
    await attach(opened.catalog, AttachTo("table-like", ("a", "t")))
    await attach(opened.catalog, AttachTo("namespace", A))

    await drop_namespace_cascade(opened.catalog, ROOT, A)

    assert await opened.names() == LEFT


async def test_of_a_whole_catalog_no_attachment_is_in_the_way(opened: Opened) -> None:
    await attach(opened.catalog, AttachTo("catalog"))

    await drop_catalog_cascade(opened.directory, ROOT, "lake")

    with pytest.raises(NotFound):
        await opened.directory.open(ROOT.realm, "lake")


async def test_a_repeated_request_under_its_key_is_done_once(opened: Opened) -> None:
    await drop_namespace_cascade(opened.catalog, with_key(ROOT), A)
    await create_namespace(opened.catalog, ROOT, A, {})

    await drop_namespace_cascade(opened.catalog, with_key(ROOT, is_repeat=True), A)

    assert "namespace a" in await opened.names(), "the one that was made later"


async def test_a_dropped_catalog_is_dropped_again_under_its_key(opened: Opened) -> None:
    await drop_catalog_cascade(opened.directory, with_key(ROOT), "lake")

    await drop_catalog_cascade(opened.directory, with_key(ROOT, is_repeat=True), "lake")


# --- with the files of tables -------------------------------------------------------------------------------


async def test_purges_run_at_the_same_time_and_are_waited_for(opened: Opened) -> None:
    dropping = asyncio.create_task(drop_namespace_cascade(opened.catalog, ROOT, A, is_purging=True))
    await opened.executor.until(lambda: len(opened.executor.orders) == 2)
    assert not dropping.done()
    under_way = await opened.names()

    for order in list(opened.executor.orders):
        await opened.executor.end(order.task_id, await opened.purge(order), is_begun=True)
    await asyncio.wait_for(dropping, 30)

    assert {order.table.table_name for order in opened.executor.orders} == {"t", "deep"}
    assert {"namespace a", "namespace a.b"} <= under_way, "they stay until the last file is gone"
    assert await opened.names() == LEFT


async def run_out_of_time(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, cascade: Coroutine[None, None, None], purges: int
) -> errors.CascadeUnderWay:
    """How a cascade ends whose time is over while it waits for so many purges."""
    monkeypatch.setattr("cynosure.catalog.purging.purge._LONGEST_WAIT_S", 0.05)
    dropping = asyncio.create_task(cascade)
    await wait_until_waited_for(opened.executor, monkeypatch, purges)
    put_forward(opened.directory.shared.persistence.clock, monkeypatch, TIMEOUT_S)
    with pytest.raises(errors.CascadeUnderWay) as over:
        await asyncio.wait_for(dropping, 30)
    return over.value


async def test_the_time_is_over_with_the_tasks_named_and_a_repeat_goes_on(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    cascade = drop_namespace_cascade(opened.catalog, with_key(ROOT), A, is_purging=True)
    over = await run_out_of_time(opened, monkeypatch, cascade, purges=2)
    orders = {order.task_id: order for order in opened.executor.orders}
    plan = await plan_namespace_cascade(opened.catalog, ROOT, A, is_purging=True)
    for order in orders.values():
        await opened.executor.end(order.task_id, await opened.purge(order), is_begun=True)
    await drop_namespace_cascade(opened.catalog, with_key(ROOT, is_repeat=True), A, is_purging=True)

    assert len(orders) == 2
    assert all(task_id in over.fix for task_id in orders)
    assert (plan.tables, plan.purges_under_way) == (0, 2)
    assert await opened.names() == LEFT


async def test_a_purge_that_failed_half_way_is_tried_again_by_a_repeat(opened: Opened) -> None:
    async def fail(order: TaskOrder) -> None:
        await opened.purge(order)

    opened.executor.work = fail
    dropping = asyncio.create_task(drop_namespace_cascade(opened.catalog, ROOT, A, is_purging=True))
    await opened.executor.until(lambda: len(opened.executor.orders) == 2)
    tasks = [order.task_id for order in opened.executor.orders]
    for task_id in tasks:
        await opened.executor.end(task_id, TaskStatus.FAILURE, is_begun=True, error_code="STORAGE")
    with pytest.raises(PurgeIncomplete):
        await dropping

    again = asyncio.create_task(drop_namespace_cascade(opened.catalog, ROOT, A, is_purging=True))
    for task_id in tasks:
        await opened.executor.until(partial(is_retried, opened, task_id))
        await opened.executor.end(task_id)
    await asyncio.wait_for(again, 30)

    assert await opened.names() == LEFT


async def test_in_async_mode_the_namespace_goes_while_files_are_deleted(tmp_path: Path) -> None:
    async with open_with(tmp_path, mode="async") as directory:
        opened = await fill(directory, tmp_path)

        await drop_namespace_cascade(opened.catalog, ROOT, A, is_purging=True)

        assert await opened.names() == LEFT
        assert len(await load_tombstones_below(await opened.catalog.read(), A)) == 2


async def test_a_catalog_waits_for_its_purges_in_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_with(tmp_path, mode="fire-and-forget") as directory:
        opened = await fill(directory, tmp_path)
        cascade = drop_catalog_cascade(directory, ROOT, "lake", is_purging=True)
        await run_out_of_time(opened, monkeypatch, cascade, purges=3)
        assert (await directory.open(ROOT.realm, "lake")).entity.name == "lake"

        orders = {order.task_id: order for order in opened.executor.orders}
        for order in orders.values():
            await opened.executor.end(order.task_id, await opened.purge(order), is_begun=True)
        await drop_catalog_cascade(directory, ROOT, "lake", is_purging=True)

        assert len(orders) == 3
        with pytest.raises(errors.NoSuchCatalog):
            await directory.open(ROOT.realm, "lake")


async def test_what_is_created_meanwhile_stays_and_is_in_the_way(opened: Opened) -> None:
    dropping = asyncio.create_task(drop_namespace_cascade(opened.catalog, ROOT, A, is_purging=True))
    await opened.executor.until(lambda: len(opened.executor.orders) == 2)
    await make(opened.catalog, Identifier(A, "late"))
    for order in list(opened.executor.orders):
        await opened.executor.end(order.task_id, await opened.purge(order), is_begun=True)

    with pytest.raises(errors.CascadeBlocked, match=r"a\.late") as blocked:
        await asyncio.wait_for(dropping, 30)

    assert blocked.value.details["dropped"]["table"] == 2
    assert await opened.names() == {*LEFT, "namespace a", "table a.late"}


async def test_a_table_that_took_a_name_meanwhile_is_not_purged(opened: Opened) -> None:
    """It is another one, and nobody asked for its files to go."""
    emptying = Emptying(opened.catalog, ROOT, A, is_purging=True, is_waiting=True)
    weighed = await emptying.weigh()
    await drop_table(opened.catalog, ROOT, T)
    await make(opened.catalog, T, location=f"{opened.catalog.base.text}/elsewhere")
    opened.executor.work = opened.purge

    with pytest.raises(errors.CascadeBlocked, match=r"a\.t"):
        await emptying.run(weighed)

    assert [order.table.table_name for order in opened.executor.orders] == ["deep"]
    assert "table a.t" in await opened.names()
