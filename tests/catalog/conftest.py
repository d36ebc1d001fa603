from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path / "files") as opened:
        yield opened


@pytest.fixture
async def catalog(directory: Directory, tmp_path: Path) -> OpenCatalog:
    opened = await make_catalog(directory, tmp_path / "files")
    await create_namespace(opened, ROOT, ("ns",), {})
    return opened
