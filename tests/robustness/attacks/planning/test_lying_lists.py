"""A list that counts fewer files than its manifests have makes no answer too large, and hides no file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.planning import planner
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.planning.scans import make_scanned, names, plan, read_tasks
from tests.catalog.tables import T

pytestmark = pytest.mark.anyio


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    settings = CatalogSettings(planning=PlanningSettings(page_files=2), manifest_reads=3)
    async with open_directory_in(tmp_path, catalog_settings=settings) as directory:
        opened = await make_catalog(directory, tmp_path)
        await create_namespace(opened, ROOT, T.namespace, {})
        yield opened


async def test_every_file_is_told_once_and_no_answer_is_much_larger_than_a_page(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "_SLICE", 3)
    scanned = await make_scanned(catalog)
    for number in range(9):
        await scanned.commit([scanned.file(f"f{number}-{at:02d}") for at in range(25)])
    scanned.manifests = [replace(each, added_files=0, existing_files=1) for each in scanned.manifests]
    await scanned.commit([scanned.file("last")])

    planned = await plan(scanned)

    assert planned.tasks is not None
    answers = [planned.tasks]
    left = list(planned.tasks.plan_tasks)
    while left:
        answers.append(await fetch_scan_tasks(catalog, ROOT, T, left.pop(0)))
        left += answers[-1].plan_tasks
    found = [name for each in answers for name in names(read_tasks(each))]
    assert len(found) == len(set(found)) == 9 * 25 + 1
    assert max(len(each.files) for each in answers) < 4 * 2 + 3
