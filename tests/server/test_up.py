import asyncio
import os
import signal
import stat
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from cynosure.server.settings import SettingsSource
from cynosure.server.up import choose_patience_s
from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import ServedCatalog

pytestmark = pytest.mark.anyio

UP = {"command": ("up",)}


@pytest.fixture
def no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that are not about it need not wait for it."""
    monkeypatch.setenv("CYNOSURE_QUERY__GATEWAY__ENABLED", "off")


async def test_up_says_where_things_are_restarts_what_crashed_and_stops_it_all(
    serve, http, wait_until
) -> None:
    served = await serve(**UP)
    services = served.children()
    assert len(services) == 3
    assert served.url in served.process.log()
    assert str(served.data) in served.process.log()

    for service in services:
        os.kill(service, signal.SIGKILL)
    await wait_until(lambda: served.process.log().count('"server.ready"') == 2)
    await wait_until(lambda: served.process.log().count('"delegation.ready"') == 2)
    await wait_until(lambda: served.process.log().count('"gateway.ready"') == 2)
    again = served.children()
    assert len({*services, *again}) == 6
    assert (await http.get(f"{served.url}/health/ready")).status_code == 200

    os.kill(served.process.pid, signal.SIGINT)
    assert await served.process.wait_exit() == 0
    assert not any(map(psutil.pid_exists, again))


async def test_up_without_further_services_says_why(serve, monkeypatch) -> None:
    monkeypatch.setenv("CYNOSURE_DELEGATION__TASK_TYPE", "local")
    monkeypatch.setenv("CYNOSURE_QUERY__GATEWAY__ENABLED", "off")

    served = await serve(**UP)

    assert len(served.children()) == 1
    assert "No delegation service is started: delegation.task_type is local." in served.process.log()
    assert not (served.data / "delegation").exists()
    assert "No gateway for SQL is started: query.gateway.enabled is off." in served.process.log()
    assert not (served.data / "gateway").exists()


@pytest.mark.usefixtures("no_gateway")
async def test_tables_of_up_are_purged_by_its_delegation_service_in_catalogs_made_later_too(serve) -> None:
    served = await serve(**UP)
    await served.create_catalog("later")
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    async with served.as_root() as http:
        await Admin(http).grant_content("later")
        for catalog in ("main", "later"):
            base = f"/api/catalog/v1/{catalog}/namespaces"
            await http.post(base, json={"namespace": ["ns"]})
            made = await http.post(f"{base}/ns/tables", json={"name": "t", "schema": schema})
            place = Path(made.json()["metadata"]["location"].removeprefix("file://"))
            assert any(place.rglob("*.json"))

            dropped = await http.delete(f"{base}/ns/tables/t", params={"purgeRequested": "true"}, timeout=60)

            assert dropped.status_code == 204, dropped.text
            assert not any(path.is_file() for path in place.rglob("*"))
    assert served.process.log().count('"task.succeeded"') == 2
    credentials = served.data / "delegation" / "credentials.json"
    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
    assert stat.S_IMODE(credentials.parent.stat().st_mode) == 0o700


async def test_sql_over_tables_of_up_by_one_command(serve, run_cli, monkeypatch) -> None:
    served = await serve(**UP)
    monkeypatch.setenv("CYNOSURE_CLIENT_ID", served.login.credential.client_id)
    monkeypatch.setenv("CYNOSURE_CLIENT_SECRET", served.login.credential.secret)
    rest = ServedCatalog("main", f"{served.url}/api/catalog", served.login).to_rest()

    def write() -> None:
        catalog = load_catalog("main", type="rest", uri=rest.uri, **rest.properties)
        catalog.create_namespace("shop")
        data = pa.table({"id": [1, 2], "item": ["star chart", None]})
        catalog.create_table("shop.orders", schema=data.schema).append(data)

    await asyncio.to_thread(write)
    asked = ("sql", "--data", str(served.data), "--format", "csv", "-c")

    done = await run_cli(*asked, "SELECT * FROM shop.orders ORDER BY id")
    refused = await run_cli(*asked, "SELECT * FROM shop.nothing")

    assert (done.returncode, done.stdout) == (0, "id,item\n1,star chart\n2,\n"), done.stderr
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "SELECT * FROM shop.nothing\n                ^\nError: No such table" in refused.stderr
    for name in ("gateway/credentials.json", "gateway.json"):
        assert stat.S_IMODE((served.data / name).stat().st_mode) == 0o600


async def test_when_up_is_killed_its_services_end_and_it_can_be_started_again_at_once(
    serve, http, has_ended, wait_until
) -> None:
    """I23."""
    served = await serve(**UP)
    services = [psutil.Process(pid) for pid in served.children()]

    served.process.kill9(only_parent=True)
    await served.process.restart()

    assert len(services) == 3
    await wait_until(lambda: all(map(has_ended, services)))
    assert (await http.get(f"{served.url}/health/ready")).status_code == 200


def test_who_comes_after_a_killed_up_waits_as_long_as_its_services_may_take() -> None:
    long = SettingsSource(overrides={"query.gateway.drain": "10m", "server.shutdown_grace": "2m"}).load()

    assert choose_patience_s(SettingsSource().load()) >= 90
    assert choose_patience_s(long) > 12 * 60


@pytest.mark.usefixtures("no_gateway")
async def test_a_second_up_on_the_directory_or_port_is_refused_with_the_reason(serve, run_cli) -> None:
    served = await serve(**UP)

    same_directory = await run_cli("up", "--data", str(served.data), "--port", "0")
    same_port = await run_cli("up", "--data", "two", "--port", served.port)

    assert same_directory.returncode == 1
    assert f"pid: {served.process.pid}" in same_directory.stderr
    assert same_port.returncode == 1
    assert "The port is already in use" in same_port.stderr
    assert "A child process could not start" in same_port.stderr
    assert "Traceback" not in same_port.stderr
    assert await served.process.stop() == 0
