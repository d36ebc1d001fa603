"""`cynosure catalogs …` without a server, and the same through a running one; what `up` begins with."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.anyio


def name_of(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [each["name"] for each in json.loads(done.stdout)]


async def test_catalogs_are_the_same_through_the_server_and_without_it(
    serve, run_cli, http, tmp_path
) -> None:
    """I22."""
    data = str(tmp_path / "data")
    before = await run_cli("catalogs", "create", "before", "--data", data, "--property", "owner=me")
    assert before.returncode == 0, before.stderr
    assert f"file://{data}/warehouse/before" in before.stdout
    served = await serve()
    through = await run_cli("catalogs", "create", "a/b ü", "--data", data, "--json")
    assert through.returncode == 0, through.stderr
    listed = await run_cli("catalogs", "list", "--data", data, "--json")
    config = await http.get(f"{served.url}/api/catalog/v1/config", params={"warehouse": "a/b ü"})
    dropped = await run_cli("catalogs", "drop", "a/b ü", "--data", data)
    gone = await http.get(f"{served.url}/api/catalog/v1/config", params={"warehouse": "a/b ü"})
    await served.process.stop()
    without = await run_cli("catalogs", "list", "--data", data, "--json")

    assert name_of(listed) == ["a/b ü", "before"]
    assert config.status_code == 200
    assert dropped.returncode == 0, dropped.stderr
    assert gone.status_code == 404
    assert name_of(without) == ["before"]
    assert json.loads(without.stdout)[0]["properties"] == {"owner": "me"}


async def test_a_name_with_a_slash_is_one_segment_of_the_path(serve, run_cli, http) -> None:
    served = await serve()
    data = str(served.data)
    for name in ("a/b", "config"):
        assert (await run_cli("catalogs", "create", name, "--data", data)).returncode == 0

    for name, path in (("a/b", "a%2Fb"), ("config", "config")):
        config = await http.get(f"{served.url}/api/catalog/v1/config", params={"warehouse": name})
        # Clients put the prefix into paths as it is given.
        assert config.json()["overrides"]["prefix"] == path
        made = await http.post(
            f"{served.url}/api/catalog/v1/{path}/namespaces", json={"namespace": ["ns"], "properties": {}}
        )
        assert made.status_code == 200, made.text
        listed = await http.get(f"{served.url}/api/catalog/v1/{path}/namespaces")
        assert listed.json()["namespaces"] == [["ns"]]


async def test_a_catalog_that_holds_something_is_not_dropped(serve, run_cli, http) -> None:
    served = await serve()
    data = str(served.data)
    await run_cli("catalogs", "create", "lake", "--data", data)
    await http.post(f"{served.url}/api/catalog/v1/lake/namespaces", json={"namespace": ["ns"]})

    refused = await run_cli("catalogs", "drop", "lake", "--data", data)
    twice = await run_cli("catalogs", "create", "lake", "--data", data)
    missing = await run_cli("catalogs", "show", "lakes", "--data", data)

    for done, words in ((refused, "not empty"), (twice, "already exists"), (missing, "does not exist")):
        assert done.returncode == 1
        assert words in done.stderr
        assert "Fix: " in done.stderr
        assert "Traceback" not in done.stderr


async def test_looking_at_catalogs_creates_no_store(run_cli, tmp_path: Path) -> None:
    """I2."""
    looked = await run_cli("catalogs", "list", "--data", str(tmp_path / "nothing"))

    assert looked.returncode == 1
    assert not (tmp_path / "nothing").exists()


async def test_the_data_directory_may_hold_other_files(serve, run_cli, http, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "warehouse" / "old").mkdir(parents=True)
    (data / "notes.txt").write_text("mine")
    (data / "warehouse" / "old" / "part.parquet").write_bytes(b"PAR1")

    served = await serve()
    assert (await run_cli("catalogs", "create", "lake", "--data", str(data))).returncode == 0
    await served.process.stop()

    assert (data / "notes.txt").read_text() == "mine"
    assert (data / "warehouse" / "old" / "part.parquet").read_bytes() == b"PAR1"


async def test_up_begins_with_a_catalog_and_serve_with_none(serve, run_cli, tmp_path: Path) -> None:
    up = await serve(command=("up",), data=tmp_path / "up")
    alone = await serve(data=tmp_path / "alone")

    assert name_of(await run_cli("catalogs", "list", "--data", str(up.data), "--json")) == ["main"]
    assert f"{up.url}/api/catalog (warehouse: main)" in up.process.log()
    assert name_of(await run_cli("catalogs", "list", "--data", str(alone.data), "--json")) == []


async def test_up_creates_nothing_beside_what_is_there(serve, run_cli, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert (await run_cli("catalogs", "create", "sales", "--data", str(data))).returncode == 0

    up = await serve(command=("up",))

    assert "(warehouse: sales)" in up.process.log()
    assert name_of(await run_cli("catalogs", "list", "--data", str(data), "--json")) == ["sales"]


async def test_workers_agree_about_the_first_catalog(serve, run_cli) -> None:
    up = await serve("--workers", "3", command=("up",))

    assert name_of(await run_cli("catalogs", "list", "--data", str(up.data), "--json")) == ["main"]
    assert "(warehouse: main)" in up.process.log()
