"""A service with one catalog, and random tables registered in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.testing.small_api import open_client
from cynosure.testing.small_catalog import make_catalog, open_directory_in
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.metadata import metadata_of


class Lake:
    """A catalog that tables are registered in."""

    def __init__(self, client: httpx.AsyncClient, folder: Path) -> None:
        self.client = client
        self._folder = folder

    def make_table(self, seed: int, *, is_plain: bool) -> RandomTable:
        # PyIceberg remembers manifest lists by path, for all tables of the process.
        return RandomTable(seed, f"file://{self._folder}/lake/t{seed}", is_plain=is_plain)

    async def register(self, table: RandomTable) -> bytes:
        """Puts the table's files in place and registers it as `t`; the metadata file that is exported."""
        path = f"{table.location}/metadata/v1.metadata.json"
        table.files[path] = metadata_of(table)
        for location, data in table.files.items():
            file = Path(urlsplit(location).path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        answer = await self.client.post(
            "namespaces/a/register", json={"name": "t", "metadata-location": path}
        )
        assert answer.status_code == 200, answer.text
        return Path(urlsplit(answer.json()["metadata-location"]).path).read_bytes()


@asynccontextmanager
async def open_lake(folder: Path) -> AsyncIterator[Lake]:
    # Pages so small that most plans go through plan tasks.
    settings = CatalogSettings(planning=PlanningSettings(page_files=2))
    async with open_directory_in(folder, catalog_settings=settings) as directory:
        await make_catalog(directory, folder, "lake")
        async with open_client(directory) as client:
            (await client.post("namespaces", json={"namespace": ["a"]})).raise_for_status()
            yield Lake(client, folder)


@pytest.fixture
async def lake(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as lake:
        yield lake
