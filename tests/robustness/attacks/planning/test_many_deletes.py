"""One small manifest, named again and again, is very many files: a plan of it ends before memory does."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.table_statistics import table_statistics
from cynosure.catalog.settings import CatalogSettings
from cynosure.common.errors import BadInput
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.appending.test_append_files import file, planned
from tests.catalog.planning.scans import Scanned, make_scanned, plan
from tests.catalog.tables import T, change, properties

pytestmark = pytest.mark.anyio


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    settings = CatalogSettings(manifests_bytes=300_000, manifest_reads=2)
    async with open_directory_in(tmp_path, catalog_settings=settings) as directory:
        opened = await make_catalog(directory, tmp_path)
        await create_namespace(opened, ROOT, T.namespace, {})
        yield opened


@pytest.fixture
async def scanned(catalog: OpenCatalog) -> Scanned:
    return await make_scanned(catalog)


async def test_deletes_are_counted_while_they_are_read(scanned: Scanned) -> None:
    await scanned.commit([scanned.file("f")])
    await scanned.commit(deletes=[scanned.delete_file(f"d{at}") for at in range(50)], operation="delete")
    assert (await plan(scanned)).tasks is not None
    line = scanned.manifests[-1]
    scanned.manifests += [replace(line, added_files=1 + at % 50) for at in range(200)]
    await scanned.commit([scanned.file("g")])

    with pytest.raises(BadInput, match="delete files"):
        await plan(scanned)
    with pytest.raises(BadInput, match="delete files"):
        await table_statistics(scanned.catalog, ROOT, T)


async def test_manifests_that_are_too_large_together_are_not_merged(
    scanned: Scanned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanned.catalog.shared.manifests, "limit_bytes", 5_000)
    for number in range(6):
        await scanned.commit([scanned.file(f"f{number}-{at:03d}") for at in range(300)])
    merging = {"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": str(2**40)}
    await change(scanned.catalog, properties(**merging))

    await append_files(scanned.catalog, ROOT, T, Addition(data_files=[file(scanned.location, "last")]))

    assert (await table_statistics(scanned.catalog, ROOT, T)).manifests.data == 7
    found = await planned(scanned.catalog)
    assert len(found) == len(set(found)) == 1_801
