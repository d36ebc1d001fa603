"""`cynosure catalogs …` without a server, and the same through a running one; what `up` begins with."""

import json
import random
from pathlib import Path

import httpx
import pytest

from cynosure.client.operator import find_operator
from cynosure.common.clock import SystemClock
from cynosure.common.errors import NotFound
from cynosure.common.progress import ignore_progress
from cynosure.server.catalog_commands import ReopenParams
from cynosure.testing.admin import MANAGEMENT
from tests.names import unique

pytestmark = pytest.mark.anyio


async def names_in(http: httpx.AsyncClient) -> list[str]:
    listed = (await http.get(f"{MANAGEMENT}/catalogs")).raise_for_status()
    return sorted(each["name"] for each in listed.json()["catalogs"])


async def test_catalogs_are_the_same_through_the_server_and_without_it(serve, run_cli, tmp_path) -> None:
    """I22. And what else is in the data directory is left alone."""
    data = tmp_path / "data"
    (data / "warehouse" / "old").mkdir(parents=True)
    (data / "warehouse" / "old" / "part.parquet").write_bytes(b"PAR1")
    (data / "notes.txt").write_text("mine")

    async def cynosure(*arguments: str) -> str:
        done = await run_cli("catalogs", *arguments, "--data", str(data))
        assert done.returncode == 0, done.stderr
        return done.stdout

    before = json.loads(await cynosure("create", "before", "--property", "owner=me", "--json"))
    served = await serve()
    async with served.as_root() as http:
        assert await names_in(http) == ["before"], "and `serve` has made none"
    await cynosure("create", "after")
    through = await cynosure("list", "--json")
    await served.process.stop()
    without = await cynosure("list", "--json")

    assert json.loads(without) == json.loads(through)
    assert sorted(each["name"] for each in json.loads(without)) == ["after", "before"]
    assert before["properties"]["default-base-location"] == f"file://{data}/warehouse/before"
    assert before["properties"]["owner"] == "me"
    assert (data / "notes.txt").read_text() == "mine"
    assert (data / "warehouse" / "old" / "part.parquet").read_bytes() == b"PAR1"


async def test_a_name_with_a_slash_is_one_segment_of_the_path(running) -> None:
    root = "/api/catalog/v1"
    async with running.as_root() as http:
        for name, path in (("a/b ü", "a%2Fb%20%C3%BC"), ("config", "config")):
            await running.create_catalog(name)
            config = await http.get(f"{root}/config", params={"warehouse": name})
            # Clients put the prefix into paths as it is given.
            assert config.json()["overrides"]["prefix"] == path
            made = await http.post(f"{root}/{path}/namespaces", json={"namespace": ["ns"], "properties": {}})
            assert made.status_code == 200, made.text
            listed = await http.get(f"{root}/{path}/namespaces")
            assert listed.json()["namespaces"] == [["ns"]]


async def test_what_is_refused_through_the_socket_keeps_its_meaning(running) -> None:
    async with find_operator(running.data / "operator.sock", SystemClock(), random.Random(1)) as operator:
        assert operator is not None
        with pytest.raises(NotFound, match="lakes"):
            await operator.run("catalogs.reopen", ReopenParams("lakes"), ignore_progress)


async def test_a_dropped_catalog_is_gone_for_clients_at_once(running) -> None:
    name = unique("brief")
    await running.create_catalog(name)
    async with running.as_root() as http:
        there = await http.get(f"/api/catalog/v1/{name}/namespaces")
        dropped = await http.delete(f"{MANAGEMENT}/catalogs/{name}")
        gone = await http.get(f"/api/catalog/v1/{name}/namespaces")

    assert (there.status_code, dropped.status_code, gone.status_code) == (200, 204, 404)


async def test_looking_at_catalogs_creates_no_store(run_cli, tmp_path: Path) -> None:
    """I2."""
    looked = await run_cli("catalogs", "list", "--data", "nothing")

    assert looked.returncode == 1
    assert "no store here" in looked.stderr
    assert not (tmp_path / "nothing").exists()


async def test_up_begins_with_one_catalog_however_many_workers(serve) -> None:
    up = await serve("--workers", "2", command=("up",))

    async with up.as_root() as http:
        assert await names_in(http) == ["main"]
    assert f"{up.url}/api/catalog (warehouse: main)" in up.process.log()


async def test_up_creates_nothing_beside_what_is_there(serve, run_cli, tmp_path: Path) -> None:
    made = await run_cli("catalogs", "create", "sales", "--data", "data")
    assert made.returncode == 0, made.stderr

    up = await serve(command=("up",))

    assert "(warehouse: sales)" in up.process.log()
    async with up.as_root() as http:
        assert await names_in(http) == ["sales"]
