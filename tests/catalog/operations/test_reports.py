import asyncio
import dataclasses

import msgspec
import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.list_reports import list_reports
from cynosure.catalog.operations.report_metrics import Report, report_metrics
from cynosure.catalog.settings import CatalogSettings
from cynosure.testing.small_catalog import ROOT, SCHEMA

pytestmark = pytest.mark.anyio

T = Identifier(("ns",), "t")


def report(number: int) -> Report:
    return Report("scan-report", b'{"report-type":"scan-report","number":%d}' % number, number)


async def kept(catalog: OpenCatalog, table: Identifier = T) -> list[int | None]:
    page = await list_reports(catalog, ROOT, table, Paging())
    return [each.snapshot_id for each in page.reports]


def keeping(catalog: OpenCatalog, reports_kept: int) -> OpenCatalog:
    shared = catalog.shared
    settings = msgspec.structs.replace(shared.settings, reports_kept=reports_kept)
    fewer = dataclasses.replace(shared, settings=settings)
    return OpenCatalog(catalog.realm, catalog.entity, fewer, catalog.storage)


@pytest.fixture
async def table(catalog: OpenCatalog) -> OpenCatalog:
    await create_table(catalog, ROOT, CreateTable(T.namespace, T.name, SCHEMA))
    return catalog


async def test_the_oldest_reports_make_room(table: OpenCatalog) -> None:
    few = keeping(table, 3)

    for number in range(5):
        await report_metrics(few, ROOT, T, report(number))

    assert await kept(few) == [2, 3, 4]


async def test_a_lower_limit_is_reached_with_the_next_reports(table: OpenCatalog) -> None:
    assert CatalogSettings().reports_kept >= 6
    for number in range(6):
        await report_metrics(table, ROOT, T, report(number))

    few = keeping(table, 2)
    for number in range(6, 9):
        await report_metrics(few, ROOT, T, report(number))

    assert await kept(few) == [7, 8]


async def test_no_report_is_kept_where_none_is_wanted(table: OpenCatalog) -> None:
    none = keeping(table, 0)

    await report_metrics(none, ROOT, T, report(1))

    assert await kept(none) == []
    with pytest.raises(NoSuchTable):
        await report_metrics(none, ROOT, Identifier(("ns",), "x"), report(1))


async def test_reports_that_come_at_once_are_all_kept(table: OpenCatalog) -> None:
    await asyncio.gather(*(report_metrics(table, ROOT, T, report(number)) for number in range(10)))

    assert sorted(await kept(table)) == list(range(10))  # type: ignore[type-var]


async def test_reports_of_tables_stay_apart(table: OpenCatalog) -> None:
    other = Identifier(("ns",), "u")
    await create_table(table, ROOT, CreateTable(other.namespace, other.name, SCHEMA))
    few = keeping(table, 1)

    await report_metrics(few, ROOT, T, report(1))
    await report_metrics(few, ROOT, other, report(2))

    assert (await kept(few), await kept(few, other)) == ([1], [2])


async def test_reports_do_not_touch_the_state_of_tables(table: OpenCatalog) -> None:
    before = (await table.read()).commit_id

    await report_metrics(table, ROOT, T, report(1))

    assert (await table.read()).commit_id == before
