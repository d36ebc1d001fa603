"""Drops with purge by the executor that works in the catalog's own process: rows of the table that it has."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.purge_errors import PurgeFailed
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.delegation.executors.local import LocalTaskExecutor
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.tables import T, change, decoded, make, properties

pytestmark = pytest.mark.anyio


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path) as opened:
        executor = LocalTaskExecutor(DelegationSettings(), opened, random.Random(1))
        opened.shared.use_executor(executor)
        yield opened
        await executor.close(5)


@pytest.fixture
async def catalog(directory: Directory, tmp_path: Path) -> OpenCatalog:
    opened = await make_catalog(directory, tmp_path)
    await create_namespace(opened, ROOT, ("ns",), {})
    return opened


def files_of(location: str) -> set[str]:
    return {str(each) for each in Path(location.removeprefix("file://")).rglob("*") if each.is_file()}


async def test_a_purged_table_leaves_no_file_and_the_one_made_anew_keeps_its_own(catalog: OpenCatalog):
    old = decoded(await make(catalog))["location"]
    neighbour = decoded(await make(catalog, Identifier(("ns",), "neighbour")))["location"]
    await change(catalog, properties(k="v"))
    Path(old.removeprefix("file://"), "left-over").write_bytes(b"x")
    kept = files_of(neighbour)

    await drop_table(catalog, ROOT, T, is_purge_requested=True)
    new = decoded(await make(catalog))["location"]

    assert files_of(old) == set()
    assert files_of(neighbour) == kept != set()
    assert files_of(new)
    assert (await list_tombstones(catalog, ROOT, size=5)).entries == []
    await drop_table(catalog, ROOT, T, is_purge_requested=True)
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


async def test_row_2_a_table_that_cannot_be_opened_is_put_back_with_all_of_its_files(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
):
    made = await make(catalog)
    kept = files_of(decoded(made)["location"])

    def refuse(*_: object) -> None:
        raise NoSuchTable("ns.t")

    with monkeypatch.context() as broken:
        broken.setattr("cynosure.catalog.operations.begin_purging.require_tombstone", refuse)
        with pytest.raises(PurgeFailed):
            await drop_table(catalog, ROOT, T, is_purge_requested=True)

    assert (await load_table(catalog, ROOT, T)).load_body() == made.load_body()
    assert files_of(decoded(made)["location"]) == kept
    await drop_table(catalog, ROOT, T, is_purge_requested=True)
    assert files_of(decoded(made)["location"]) == set()
