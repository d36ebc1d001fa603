"""Stray metadata files go, all others stay (I29)."""

from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.files.export import name_file, parse_file_name
from cynosure.catalog.files.sweep import sweep_strays
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio

NOW = timedelta(seconds=-5)
"""As if the commits of the test were long over."""


def folder_of(location: str) -> Path:
    return Path(location.removeprefix("file://")).parent


def plant(catalog: OpenCatalog, folder: Path, number: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    state_id = catalog.shared.persistence.ids.next()
    path = folder / name_file(catalog, number, state_id, is_packed=False)
    path.write_text("{}")
    return path


async def test_files_of_commits_that_never_were_go_and_all_others_stay(catalog: OpenCatalog):
    await make(catalog, properties={"write.metadata.previous-versions-max": "1"})
    for number in range(4):
        last = await change(catalog, properties(k=str(number)))
    folder = folder_of(last.metadata_location)
    committed = set(folder.iterdir())
    foreign = folder / "00003-0a1b2c3d-0000-4000-8000-000000000000.metadata.json"
    foreign.write_text("{}")
    stray, later = plant(catalog, folder, 3), plant(catalog, folder, 9)

    swept = await sweep_strays(catalog, ROOT, grace=NOW)

    assert not stray.exists()
    assert {*folder.iterdir()} == committed | {foreign, later}
    assert (swept.tables, swept.files, swept.strays) == (1, 7, 1)


async def test_a_thorough_sweep_also_finds_tables_that_were_never_created_and_newer_files(
    catalog: OpenCatalog,
):
    created = await make(catalog)
    base = Path(catalog.base.text.removeprefix("file://"))
    newer = plant(catalog, folder_of(created.metadata_location), 9)
    never = plant(catalog, base / "ns" / "never-1" / "metadata", 0)

    dry = await sweep_strays(catalog, ROOT, grace=NOW, is_thorough=True, is_dry_run=True)
    assert newer.exists()
    assert never.exists()
    wet = await sweep_strays(catalog, ROOT, grace=NOW, is_thorough=True)

    assert dry.strays == wet.strays == 2
    assert not newer.exists()
    assert not never.exists()
    assert Path(created.metadata_location.removeprefix("file://")).exists()


async def test_young_files_are_left_alone(catalog: OpenCatalog):
    created = await make(catalog)
    stray = plant(catalog, folder_of(created.metadata_location), 0)
    assert (await sweep_strays(catalog, ROOT)).strays == 0
    assert stray.exists()


async def test_files_of_a_dropped_table_stay(catalog: OpenCatalog):
    created = await make(catalog)
    await change(catalog, properties(k="v"))
    await drop_table(catalog, ROOT, T)
    assert (await sweep_strays(catalog, ROOT, grace=NOW, is_thorough=True)).strays == 0
    assert len(list(folder_of(created.metadata_location).iterdir())) == 2


async def test_a_file_of_another_catalog_is_not_ours(
    catalog: OpenCatalog, directory: Directory, tmp_path: Path
):
    other = await make_catalog(directory, tmp_path / "files", "other")
    created = await make(catalog)
    name = created.metadata_location.rpartition("/")[2]
    assert parse_file_name(catalog, name) is not None
    assert parse_file_name(other, name) is None
    assert decoded(created)["location"].startswith(catalog.base.text)
