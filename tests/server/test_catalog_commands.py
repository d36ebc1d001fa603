"""`cynosure catalogs …` without a server, and the same through a running one; what `up` begins with."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.client.operator import find_operator
from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists, CynosureError, NotFound
from cynosure.common.progress import ignore_progress
from cynosure.server.catalog_commands import CatalogInfo, CreateParams, ListParams, NameParams
from cynosure.server.settings import load_settings
from cynosure.server.wiring import open_ground

pytestmark = pytest.mark.anyio


async def ask(data: Path, command: str, params: Any, result: Any = CatalogInfo) -> Any:
    """What the server of a data directory answers to a command."""
    async with find_operator(data / "operator.sock", SystemClock(), random.Random(1)) as operator:
        assert operator is not None
        return msgspec.json.decode(await operator.run(command, params, ignore_progress), type=result)


async def run_here(data: Path, command: str, params: Any) -> Any:
    """The same without a server."""
    settings = load_settings(environment={}, overrides={"server.data_dir": str(data)})
    async with open_ground(settings, SystemClock()) as ground:
        return await ground.commands.get(command).run(params, ignore_progress)


async def names_in(data: Path) -> list[str]:
    return [each.name for each in await ask(data, "catalogs.list", ListParams(), list[CatalogInfo])]


async def test_catalogs_are_the_same_through_the_server_and_without_it(serve, run_cli, tmp_path) -> None:
    """I22. And what else is in the data directory is left alone."""
    data = tmp_path / "data"
    (data / "warehouse" / "old").mkdir(parents=True)
    (data / "warehouse" / "old" / "part.parquet").write_bytes(b"PAR1")
    (data / "notes.txt").write_text("mine")

    before = await run_here(data, "catalogs.create", CreateParams("before", properties={"owner": "me"}))
    served = await serve()
    assert await names_in(data) == ["before"], "and `serve` has made none"
    through = await run_cli("catalogs", "create", "after", "--data", str(data), "--json")
    listed = await run_cli("catalogs", "list", "--data", str(data))
    await served.process.stop()
    found = await run_here(data, "catalogs.list", ListParams())

    assert through.returncode == listed.returncode == 0, through.stderr + listed.stderr
    assert found == [msgspec.convert(json.loads(through.stdout), CatalogInfo), before]
    assert before.location == f"file://{data}/warehouse/before"
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["CATALOG", "after", "before"]
    assert (data / "notes.txt").read_text() == "mine"
    assert (data / "warehouse" / "old" / "part.parquet").read_bytes() == b"PAR1"


async def test_a_name_with_a_slash_is_one_segment_of_the_path(running, http) -> None:
    root = f"{running.url}/api/catalog/v1"
    for name, path in (("a/b ü", "a%2Fb%20%C3%BC"), ("config", "config")):
        await ask(running.data, "catalogs.create", CreateParams(name))
        config = await http.get(f"{root}/config", params={"warehouse": name})
        # Clients put the prefix into paths as it is given.
        assert config.json()["overrides"]["prefix"] == path
        made = await http.post(f"{root}/{path}/namespaces", json={"namespace": ["ns"], "properties": {}})
        assert made.status_code == 200, made.text
        listed = await http.get(f"{root}/{path}/namespaces")
        assert listed.json()["namespaces"] == [["ns"]]


async def test_what_is_refused_through_the_socket_keeps_its_meaning(running, http) -> None:
    await ask(running.data, "catalogs.create", CreateParams("lake"))
    await http.post(f"{running.url}/api/catalog/v1/lake/namespaces", json={"namespace": ["ns"]})

    with pytest.raises(CynosureError, match="not empty") as not_empty:
        await ask(running.data, "catalogs.drop", NameParams("lake"))
    with pytest.raises(AlreadyExists, match="lake"):
        await ask(running.data, "catalogs.create", CreateParams("lake"))
    with pytest.raises(NotFound, match="lakes"):
        await ask(running.data, "catalogs.show", NameParams("lakes"))
    assert not_empty.value.fix


async def test_a_dropped_catalog_is_gone_for_clients_at_once(running, http) -> None:
    await ask(running.data, "catalogs.create", CreateParams("brief"))
    there = await http.get(f"{running.url}/api/catalog/v1/brief/namespaces")
    await ask(running.data, "catalogs.drop", NameParams("brief"))
    gone = await http.get(f"{running.url}/api/catalog/v1/brief/namespaces")

    assert (there.status_code, gone.status_code) == (200, 404)


async def test_looking_at_catalogs_creates_no_store(tmp_path: Path) -> None:
    """I2."""
    with pytest.raises(NotFound, match="no store here"):
        await run_here(tmp_path / "nothing", "catalogs.list", ListParams())

    assert not (tmp_path / "nothing").exists()


async def test_up_begins_with_one_catalog_however_many_workers(serve) -> None:
    up = await serve("--workers", "2", command=("up",))

    assert await names_in(up.data) == ["main"]
    assert f"{up.url}/api/catalog (warehouse: main)" in up.process.log()


async def test_up_creates_nothing_beside_what_is_there(serve, tmp_path: Path) -> None:
    await run_here(tmp_path / "data", "catalogs.create", CreateParams("sales"))

    up = await serve(command=("up",))

    assert "(warehouse: sales)" in up.process.log()
    assert await names_in(up.data) == ["sales"]
