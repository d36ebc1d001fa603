"""What was dropped comes back within its window (I30)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused, NoSuchDropped, NoSuchNamespace, TableExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.operations.report_metrics import Report, report_metrics
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.reports import reports_committer
from cynosure.common.errors import Expired
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio

WEEK_S = timedelta(days=7).total_seconds()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def directory(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path, clock=clock) as opened:
        yield opened


@pytest.fixture
async def catalog(directory: Directory, tmp_path: Path) -> OpenCatalog:
    opened = await make_catalog(directory, tmp_path)
    await create_namespace(opened, ROOT, ("ns",), {})
    return opened


async def only_dropped(catalog: OpenCatalog):
    ((drop_id, entity),) = (await list_dropped(catalog, ROOT, size=10)).entries
    return drop_id, entity


async def test_a_dropped_table_is_listed_and_restored_as_it_was(catalog: OpenCatalog):
    await make(catalog)
    last = await change(catalog, properties(k="v"))
    ids = await (await catalog.read()).scan("ids", limit=10)
    await drop_table(catalog, ROOT, T)

    drop_id, entity = await only_dropped(catalog)
    assert (entity.kind, entity.path, entity.principal) == ("table", ("ns", "t"), "root")
    restored = await restore_dropped(catalog, ROOT, drop_id)

    assert restored.path == ("ns", "t")
    assert (await load_table(catalog, ROOT, T)).load_body() == last.load_body()
    assert await (await catalog.read()).scan("ids", limit=10) == ids
    assert (await list_dropped(catalog, ROOT, size=10)).entries == []
    assert decoded(await change(catalog, properties(k="w")))["properties"]["k"] == "w"
    with pytest.raises(NoSuchDropped):
        await restore_dropped(catalog, ROOT, drop_id)


async def test_a_taken_name_needs_another_one(catalog: OpenCatalog):
    first = await make(catalog)
    await drop_table(catalog, ROOT, T)
    await make(catalog)
    drop_id, _ = await only_dropped(catalog)

    with pytest.raises(TableExists):
        await restore_dropped(catalog, ROOT, drop_id)
    await restore_dropped(catalog, ROOT, drop_id, path=("ns", "again"))

    again = await load_table(catalog, ROOT, Identifier(("ns",), "again"))
    assert decoded(again)["table-uuid"] == decoded(first)["table-uuid"]


async def test_a_taken_location_or_a_missing_namespace_refuses(catalog: OpenCatalog):
    first = await make(catalog)
    await drop_table(catalog, ROOT, T)
    await make(catalog, Identifier(("ns",), "heir"), location=decoded(first)["location"])
    drop_id, _ = await only_dropped(catalog)
    with pytest.raises(LocationRefused):
        await restore_dropped(catalog, ROOT, drop_id)
    with pytest.raises(NoSuchNamespace):
        await restore_dropped(catalog, ROOT, drop_id, path=("gone", "t"))
    assert (await only_dropped(catalog))[0] == drop_id


async def test_a_namespace_and_then_what_was_in_it(catalog: OpenCatalog):
    await make(catalog)
    await drop_table(catalog, ROOT, T)
    await drop_namespace(catalog, ROOT, ("ns",))
    (table_drop, _), (namespace_drop, entity) = (await list_dropped(catalog, ROOT, size=10)).entries
    assert entity.kind == "namespace"

    with pytest.raises(NoSuchNamespace):
        await restore_dropped(catalog, ROOT, table_drop)
    await restore_dropped(catalog, ROOT, namespace_drop)
    await restore_dropped(catalog, ROOT, table_drop)
    await load_table(catalog, ROOT, T)


async def test_a_view_comes_back_too(catalog: OpenCatalog):
    name = Identifier(("ns",), "v")
    version = {
        "version-id": 1,
        "timestamp-ms": 1_750_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        "default-namespace": ["ns"],
    }
    wanted = CreateView(name, SCHEMA, Raw(msgspec.json.encode(version)))
    created = await create_view(catalog, ROOT, wanted)
    await drop_view(catalog, ROOT, name)
    drop_id, entity = await only_dropped(catalog)
    assert entity.kind == "view"

    await make(catalog, name)
    with pytest.raises(TableExists):
        await restore_dropped(catalog, ROOT, drop_id)
    await restore_dropped(catalog, ROOT, drop_id, path=("ns", "again"))

    assert await load_view(catalog, ROOT, Identifier(("ns",), "again")) == created


async def test_after_the_window_nothing_is_listed_restored_or_kept(catalog: OpenCatalog, clock: ManualClock):
    await make(catalog)
    await drop_table(catalog, ROOT, T)
    drop_id, _ = await only_dropped(catalog)
    await clock.advance(WEEK_S - 1)
    assert await forget_dropped(catalog, ROOT) == 0
    await clock.advance(2)

    assert (await list_dropped(catalog, ROOT, size=10)).entries == []
    with pytest.raises(Expired):
        await restore_dropped(catalog, ROOT, drop_id)
    assert await forget_dropped(catalog, ROOT) == 1
    with pytest.raises(NoSuchDropped):
        await restore_dropped(catalog, ROOT, drop_id)


async def test_reports_of_a_table_go_with_it_for_good_and_not_before(
    catalog: OpenCatalog, clock: ManualClock
):
    await make(catalog)
    for _ in range(3):
        await report_metrics(catalog, ROOT, T, Report("scan-report", b'{"report-type":"scan-report"}'))
    await drop_table(catalog, ROOT, T)
    await forget_dropped(catalog, ROOT)
    reports = (await reports_committer(catalog).read()).state
    assert len(await reports.scan("reports", limit=10)) == 3

    await clock.advance(WEEK_S + 1)
    assert await forget_dropped(catalog, ROOT) == 1

    assert await (await reports_committer(catalog).read()).state.scan("reports", limit=10) == []


async def test_the_list_is_paged(catalog: OpenCatalog):
    for number in range(5):
        table = Identifier(("ns",), f"t{number}")
        await make(catalog, table)
        await drop_table(catalog, ROOT, table)
    names, token = [], None
    while True:
        page = await list_dropped(catalog, ROOT, size=2, token=token)
        names += [entity.path[-1] for _, entity in page.entries]
        token = page.next_token
        if token is None:
            break
    assert names == [f"t{number}" for number in range(5)]
