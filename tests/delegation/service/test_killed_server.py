"""A catalog server that purges by itself, with several workers, killed in the middle."""

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from cynosure.testing.catalog_server import start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.small_catalog import SCHEMA

pytestmark = pytest.mark.anyio
_FILES = 2_500
_QUICK = {
    "CYNOSURE_DELEGATION__MODE": "async",
    "CYNOSURE_DELEGATION__OUTBOX_INTERVAL": "500ms",
    "CYNOSURE_DELEGATION__SERVICE__POLLING": "100ms",
    "CYNOSURE_DELEGATION__TASK__LEASE__LOST_TIMEOUT": "2s",
}


async def create(http: httpx.AsyncClient, below: str, name: str) -> Path:
    schema = httpx.Response(200, content=bytes(SCHEMA)).json()
    made = await http.post(f"{below}/tables", json={"name": name, "schema": schema})
    assert made.status_code == 200, made.text
    return Path(unquote(urlsplit(made.json()["metadata"]["location"]).path))


def count_files(folder: Path) -> int:
    try:
        return len(list(folder.iterdir()))
    except FileNotFoundError:
        # Whoever looks late finds that even the folder was removed.
        return 0


async def test_a_purge_is_finished_by_the_server_that_comes_after_the_one_that_was_killed(
    tmp_path: Path,
) -> None:
    with Processes(tmp_path) as processes:
        server = await start_catalog_server(processes, tmp_path, "--workers", "2", env=_QUICK)
        lake = await server.create_catalog()
        async with server.client() as http:
            base = f"{lake.url}/namespaces"
            await http.post(base, json={"namespace": ["ns"]})
            folder = await create(http, f"{base}/ns", "t")
            beside = await create(http, f"{base}/ns", "beside")
            (folder / "data").mkdir()
            for number in range(_FILES):
                (folder / "data" / f"{number:05}.parquet").write_bytes(b"x")

            dropped = await http.delete(f"{base}/ns/tables/t", params={"purgeRequested": "true"})
            assert dropped.status_code == 204, dropped.text
            async with asyncio.timeout(60):
                while count_files(folder / "data") == _FILES:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.001)
            server.process.kill9()
        kept = sorted(path.name for path in beside.rglob("*"))

        await server.process.restart()

        async with server.client() as http:
            again = await create(http, f"{base}/ns", "t")
            own = f"/api/catalog/cynosure/v1/{lake.name}/tombstones"
            async with asyncio.timeout(60):
                while (await http.get(own)).json()["tombstones"]:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)

    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert sorted(path.name for path in beside.rglob("*")) == kept
    assert list(again.rglob("*.metadata.json"))
