"""Tables that change under appends: their format version, their place, or which table has the name."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from cynosure.catalog.appending.draft import TableDraft, Written
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.planning.request import ScanRequest
from cynosure.catalog.resolve import require_table_ref
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.testing.small_catalog import ROOT
from tests.catalog.appending.test_append_files import append, planned
from tests.catalog.appending.test_rebase import REBASE, commit, see
from tests.catalog.planning.scans import read_tasks
from tests.catalog.tables import T, change, make
from tests.catalog.world import NS, Lake

pytestmark = pytest.mark.anyio


def upgrade(version: int) -> dict[str, Any]:
    return {"action": "upgrade-format-version", "format-version": version}


def without_number(body: dict[str, Any]) -> dict[str, Any]:
    """A commit as clients of version 1 send it."""
    del body["updates"][0]["snapshot"]["sequence-number"]
    return body


async def first_row_ids(catalog: OpenCatalog) -> list[Any]:
    told = await plan_scan(catalog, ROOT, T, ScanRequest())
    assert told.tasks is not None
    return [each["data-file"].get("first-row-id") for each in read_tasks(told.tasks)]


@pytest.mark.parametrize("least", ["99", "2"])
async def test_files_of_all_versions_stay_and_rows_have_ids_of_their_own(lake: Lake, least: str):
    catalog = lake.catalog
    await drop_table(catalog, ROOT, T)
    merging = {"commit.manifest.min-count-to-merge": least}
    await make(catalog, properties={**REBASE, **merging, "format-version": "1"})
    await append(catalog, "a")
    late = await see(catalog)
    await commit(catalog, without_number(late.append("b")))
    await commit(catalog, without_number(late.append("c", merges=True)))

    await change(catalog, upgrade(2))
    with pytest.raises(RequirementFailed, match="another format version"):
        await commit(catalog, without_number(late.append("never")))
    await asyncio.gather(*(append(catalog, name) for name in "def"))
    late = await see(catalog)
    await commit(catalog, late.append("g"))

    await change(catalog, upgrade(3))
    with pytest.raises(RequirementFailed, match="another format version"):
        await commit(catalog, late.append("never"))
    await asyncio.gather(*(append(catalog, name) for name in "hij"))
    late = await see(catalog)
    await commit(catalog, late.append("k"))
    await commit(catalog, late.append("l", merges=True))

    assert await planned(catalog) == list("abcdefghijkl")
    firsts = await first_row_ids(catalog)
    assert len(firsts) == 12
    assert all(later - earlier >= 10 for earlier, later in pairwise(sorted(firsts)))


async def load(catalog: OpenCatalog, table: Identifier) -> ManagedTable:
    view = await catalog.read()
    return await load_table_at(view, (await require_table_ref(view, table)).id, catalog.shared.tables)


async def test_what_was_written_for_one_table_is_not_used_for_another_of_the_name(lake: Lake):
    """An attempt is made again on a newer state, in which the table may be elsewhere, or another one."""
    other = Identifier(NS, "other")
    await make(lake.catalog, other)
    file = ContentFile(
        path="file:///f", format="parquet", spec_id=0, partition=(), record_count=1, file_size_bytes=1
    )
    entries = [Entry(Status.ADDED, 7, None, None, file)]
    written = Written()
    made = []
    for table in (T, T, other):
        draft = TableDraft(lake.catalog, await load(lake.catalog, table), written, now_ms=0)
        made.append((draft.metadata.location, draft.make_manifest(0, entries, 7, key="same")))

    assert made[0][1] is made[1][1]
    assert all(listed.path.startswith(f"{location}/") for location, listed in made)
