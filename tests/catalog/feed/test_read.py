"""The change feed tells every change once, in order (I31)."""

import asyncio
from pathlib import Path

import pytest

from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.feed.read import FeedChange, read_changes
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.persistence.history.chain import Chain
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_access import P, People, on_catalog
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog, open_directory_in
from tests.catalog.tables import T, change, make, properties, updates

pytestmark = pytest.mark.anyio


async def follow(catalog: OpenCatalog, start: str, limit: int) -> tuple[list[FeedChange], str]:
    found: list[FeedChange] = []
    while True:
        page = await read_changes(catalog, ROOT, start=start, limit=limit)
        found += page.changes
        start = page.cursor
        if not page.has_more:
            return found, start


async def test_every_change_is_told_in_order_with_who_and_what(catalog: OpenCatalog):
    start = (await read_changes(catalog, ROOT)).cursor
    await make(catalog)
    await change(catalog, properties(k="v"))
    await rename_table(catalog, ROOT, T, Identifier(("ns",), "u"))
    await drop_table(catalog, ROOT, Identifier(("ns",), "u"))

    changes, _ = await follow(catalog, start, 100)

    assert [each.kind for each in changes] == [
        "table-created",
        "table-updated",
        "table-renamed",
        "table-dropped",
    ]
    assert [each.name for each in changes] == ["t", "t", "u", "u"]
    assert {each.entity_id for each in changes} == {changes[0].entity_id}
    assert [each.sequence for each in changes] == sorted({each.sequence for each in changes})
    assert {(each.principal, each.namespace) for each in changes} == {("root", ("ns",))}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
async def test_pages_of_any_size_tell_each_change_once(catalog: OpenCatalog, limit: int):
    tables = [Identifier(("ns",), f"t{number}") for number in range(5)]
    await asyncio.gather(*(make(catalog, table) for table in tables))
    for round_ in range(4):
        changes = [TableChange(table, [], updates(properties(k=str(round_)))) for table in tables]
        await commit_transaction(catalog, ROOT, changes)

    told, cursor = await follow(catalog, "oldest", limit)

    assert [each.kind for each in told] == ["namespace-created"] + 5 * ["table-created"] + 20 * [
        "table-updated"
    ]
    assert (await read_changes(catalog, ROOT, start=cursor)).changes == []


async def test_a_cursor_is_good_on_another_server(catalog: OpenCatalog, tmp_path: Path):
    await make(catalog)
    first = await read_changes(catalog, ROOT, start="oldest", limit=1)
    async with directory_on(catalog.shared.persistence, tmp_path / "files") as other:
        elsewhere = await other.open(catalog.realm, "lake")
        page = await read_changes(elsewhere, ROOT, start=first.cursor)
    assert [each.kind for each in page.changes] == ["table-created"]


async def test_a_reader_far_behind_gets_everything(catalog: OpenCatalog):
    await make(catalog)
    start = (await read_changes(catalog, ROOT)).cursor
    for number in range(70):
        await change(catalog, properties(k=str(number)))
    told, _ = await follow(catalog, start, 9)
    assert len(told) == 70


async def test_a_waiting_reader_is_told_at_once(catalog: OpenCatalog):
    start = (await read_changes(catalog, ROOT)).cursor
    waiting = asyncio.create_task(read_changes(catalog, ROOT, start=start, wait_s=30))
    await asyncio.sleep(0)
    await make(catalog)
    page = await asyncio.wait_for(waiting, 20)
    assert [each.kind for each in page.changes] == ["table-created"]


async def test_nobody_waits_for_a_change_in_a_process_that_ends(catalog: OpenCatalog):
    start = (await read_changes(catalog, ROOT)).cursor
    waiting = asyncio.create_task(read_changes(catalog, ROOT, start=start, wait_s=60))
    await asyncio.sleep(0)
    catalog.shared.watching.stop()
    page = await asyncio.wait_for(waiting, 20)
    assert page.changes == []


async def test_who_loses_the_right_while_waiting_is_told_nothing(directory: Directory, catalog: OpenCatalog):
    people = People(directory)
    ann = await people.add("ann", catalog, *on_catalog(P.CATALOG_MANAGE_METADATA))
    start = (await read_changes(catalog, ann)).cursor
    waiting = asyncio.create_task(read_changes(catalog, ann, start=start, wait_s=30))
    await asyncio.sleep(0)
    await people.revoke("ann", catalog, *on_catalog(P.CATALOG_MANAGE_METADATA))
    await make(catalog)
    with pytest.raises(AccessDenied):
        await asyncio.wait_for(waiting, 20)


async def test_nothing_new_answers_with_nothing_and_the_same_place(catalog: OpenCatalog):
    start = (await read_changes(catalog, ROOT)).cursor
    page = await read_changes(catalog, ROOT, start=start, wait_s=0.01)
    assert page.changes == []
    assert not page.has_more
    await make(catalog)
    assert len((await read_changes(catalog, ROOT, start=page.cursor)).changes) == 1


@pytest.mark.parametrize("options", [{"start": "x"}, {"limit": 0}, {"limit": 1001}, {"wait_s": 61}])
async def test_bad_input_is_refused(catalog: OpenCatalog, options: dict):
    with pytest.raises(BadInput):
        await read_changes(catalog, ROOT, **options)


async def test_a_cursor_of_another_catalog_is_refused(catalog: OpenCatalog, directory, tmp_path: Path):
    other = await make_catalog(directory, tmp_path / "files", "other")
    cursor = (await read_changes(other, ROOT)).cursor
    with pytest.raises(BadInput):
        await read_changes(catalog, ROOT, start=cursor)


async def test_the_chain_forgets_what_the_current_head_does_not_lead_to(catalog: OpenCatalog):
    await make(catalog)
    for number in range(20):
        await change(catalog, properties(k=str(number)))
    past = await catalog.committer.read()
    chain = Chain(catalog.store)
    for number in range(20):
        await change(catalog, properties(k=f"later {number}"))
    now = await catalog.committer.read()
    await chain.extend(now, 1)
    newest = now.state.commit.record.sequence
    assert chain.find(newest) == now.ref.head

    await chain.extend(past, 1)

    assert chain.find(newest) is None
    assert chain.find(past.state.commit.record.sequence) == past.ref.head
    assert chain.find(1) is not None


async def test_a_cursor_survives_a_restart(tmp_path: Path):
    url = f"sqlite:{tmp_path / 'store.db'}"
    async with open_directory_in(tmp_path / "files", url=url) as directory:
        catalog = await make_catalog(directory, tmp_path / "files")
        await create_namespace(catalog, ROOT, ("ns",), {})
        cursor = (await read_changes(catalog, ROOT)).cursor
        await make(catalog)
    async with open_directory_in(tmp_path / "files", url=url) as directory:
        catalog = await directory.open(DEFAULT_REALM, "lake")
        page = await read_changes(catalog, ROOT, start=cursor)
    assert [each.kind for each in page.changes] == ["table-created"]
