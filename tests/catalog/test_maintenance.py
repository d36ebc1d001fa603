from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.maintenance import catalog_tasks
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.files.test_sweep import folder_of, plant
from tests.catalog.tables import T, change, make, properties

pytestmark = pytest.mark.anyio


async def test_tasks_serve_all_catalogs_also_when_one_is_in_trouble(tmp_path: Path):
    clock = ManualClock()
    async with open_directory_in(tmp_path, clock=clock) as directory:
        first, second = await populated(directory, tmp_path, "a"), await populated(directory, tmp_path, "b")
        stray = plant(second, folder_of((await change(second, properties(k="v"))).metadata_location), 0)
        await drop_table(first, ROOT, T)
        broken = await make_catalog(directory, tmp_path, "aa")
        persistence = directory.shared.persistence
        await persistence.backend.delete_ref(await persistence.heads.load(broken.committer.key))
        await clock.advance(7 * 86_400 + 1)

        records = [await persistence.tasks.run_now(task) for task in catalog_tasks(directory)]

        assert {
            task.name: record.text for task, record in zip(catalog_tasks(directory), records, strict=True)
        } == {
            "catalog.forget-dropped": "1 done, 1 catalogs failed",
            "catalog.forget-staged": "0 done, 1 catalogs failed",
            "catalog.release-locations": "0 done, 0 catalogs failed",
            "catalog.sweep-metadata": "1 done, 1 catalogs failed",
            "catalog.sweep-grants": "0 done, 1 catalogs failed",
            "catalog.look-after-purges": "0 done, 1 catalogs failed",
        }
        assert (await list_dropped(first, ROOT, size=5)).entries == []
        assert await (await first.read()).scan("dropped", limit=5) == []
        assert not stray.exists()


async def populated(directory: Directory, folder: Path, name: str) -> OpenCatalog:
    catalog = await make_catalog(directory, folder, name)
    await create_namespace(catalog, ROOT, ("ns",), {})
    await make(catalog)
    return catalog
