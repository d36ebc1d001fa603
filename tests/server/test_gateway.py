"""Real gateways beside real catalogs: who is let in, what is seen, how one ends."""

import asyncio
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import Misconfigured
from cynosure.query.settings import QuerySettings
from cynosure.server import certs
from cynosure.server.gateway_address import find_address, publish_address
from cynosure.server.gateway_settings import check_gateway, check_query
from cynosure.server.settings import load_settings
from cynosure.testing.admin import Grant
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import Login
from cynosure.testing.query_server import API, start_query_scene
from cynosure.testing.s3_servers import parse_s3_server

pytestmark = pytest.mark.anyio

LOCAL = {"QUERY__SPARK__ENABLED": "off"}
PEOPLE = pa.table(
    {"id": [1, 2, 3], "region": ["EU", "US", "EU"], "ssn": ["111-22", "333-44", "555-66"]},
)
SLOW = "SELECT sum(a.id * b.id * c.id) FROM lake.ns.many a, lake.ns.many b, lake.ns.many c"


async def test_rows_come_as_their_reader_may_see_them_from_the_next_statement_on(
    processes: Processes, tmp_path: Path, s3_url: str
) -> None:
    """I103, I110."""
    scene = await start_query_scene(
        processes, tmp_path, settings=LOCAL, store=parse_s3_server("seaweedfs", s3_url)
    )
    await scene.make_table("ns.people", PEOPLE.slice(0, 2), PEOPLE.slice(2))
    ann, nobody = await scene.create_user("ann"), await scene.create_user("nobody", *())
    everything = "SELECT id, ssn FROM lake.ns.people ORDER BY id"

    assert len(await scene.rows(ann, everything)) == 3
    hidden = await scene.restrict("ns.people", filter="region = 'EU'")
    await scene.restrict("ns.people", columns={"ssn": "replace-with-null"})
    assert await scene.rows(ann, everything) == [(1, None), (3, None)]
    assert await scene.rows(nobody, "SELECT count(*) FROM lake.ns.people WHERE ssn IS NOT NULL") == [(0,)]
    text = await scene.explain(ann, everything)
    assert "ns.row-filter-1" in text
    assert "EU" not in text
    await scene.lift("ns.people", hidden)
    assert await scene.rows(ann, everything) == [(1, None), (2, None), (3, None)]
    missing = await scene.fails(ann, "SELECT * FROM lake.ns.nothing")
    assert (missing["code"], missing["details"]["line"]) == (404, 1)
    beggar = await scene.create_user("beggar", Grant("NAMESPACE_LIST"))
    hidden_from_them = await scene.fails(beggar, "SELECT * FROM lake.ns.people ")
    assert {**hidden_from_them, "details": None} == {**missing, "details": None}

    async with httpx.AsyncClient(base_url=scene.url, trust_env=False) as stranger:
        good = scene.catalog.token()
        for token in ("wrong", good[:-4] + "AAAA", *(f"{good[:-4]}{number:04}" for number in range(30))):
            answer = await stranger.get(f"{API}/statements", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 401, answer.text
        # Strangers do not keep others out, neither who has a session nor who comes now.
        for token in (good, Login(scene.catalog.url, scene.catalog.credential).token()):
            answer = await stranger.get(f"{API}/statements", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, answer.text
        assert (await stranger.get("/health/live")).json() == {"status": "live", "not_ready": {}}
        assert "cynosure" in (await stranger.get("/metrics")).text
        assert (await stranger.get("/openapi.json")).json()["info"]["title"] == "Cynosure gateway"
    async with scene.client(ann) as own, scene.client(nobody) as other:
        [newest, *_] = (await own.get(f"{API}/statements")).json()["statements"]
        assert (await other.get(f"{API}/statements/{newest['id']}")).status_code == 404


async def test_told_to_stop_it_ends_what_runs_and_itself(processes: Processes, tmp_path: Path) -> None:
    """I108."""
    scene = await start_query_scene(
        processes, tmp_path, settings={**LOCAL, "QUERY__GATEWAY__DRAIN": "1s", "SERVER__SHUTDOWN_GRACE": "5s"}
    )
    await scene.make_table("ns.many", pa.table({"id": list(range(20_000))}))
    assert find_address(tmp_path / "gateway") is not None
    async with scene.client() as http:
        sent = (await http.post(f"{API}/statements", json={"sql": SLOW, "wait": 5})).json()
        waiting = asyncio.create_task(http.get(sent["results"], params={"wait": "30"}))
        await _until_running(http, sent["id"])

        os.kill(scene.gateway.pid, signal.SIGTERM)

        refused = await _until_refusing(http)
        answer = await waiting
    assert refused.status_code == 503
    assert answer.status_code in (202, 409), answer.text
    assert await scene.gateway.wait_exit() == 0
    assert '"gateway.stopped"' in scene.gateway.log()
    assert find_address(tmp_path / "gateway") is None


async def _until_running(http: httpx.AsyncClient, statement_id: str) -> None:
    give_up_s = time.monotonic() + 60
    while (await http.get(f"{API}/statements/{statement_id}")).json()["state"] != "RUNNING":
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.01)


async def _until_refusing(http: httpx.AsyncClient) -> httpx.Response:
    give_up_s = time.monotonic() + 60
    while (answer := await http.post(f"{API}/statements", json={"sql": "SELECT 1"})).is_success:
        assert time.monotonic() < give_up_s
        await asyncio.sleep(0.01)
    return answer


async def test_over_tls_as_a_second_one_and_without_its_catalog(processes: Processes, tmp_path: Path) -> None:
    made = tmp_path / "certs"
    certs.init_certs(made, hosts=["127.0.0.1"], client="x", days=2, clock=SystemClock())
    scene = await start_query_scene(processes, tmp_path, settings=LOCAL)
    again = await scene.catalog.run_cli("gateway", "init", "--json")
    assert '"created": false' in again
    assert "trusted service" in await scene.catalog.run_cli("principals", "get", "cynosure-gateway")
    port = processes.reserve_port()

    async def is_ready(process: ManagedProcess) -> bool:
        return "Gateway is ready at https://" in process.log()

    await processes.start(
        "secure",
        [
            *(sys.executable, "-m", "cynosure", "serve", "gateway", "--data", "secure", "--port", str(port)),
            *("--catalog", scene.catalog.url, "--credentials-file", "gateway.json"),
            *("--tls-cert", str(made / certs.SERVER_CERTIFICATE), "--tls-key", str(made / certs.SERVER_KEY)),
        ],
        ready=is_ready,
        cwd=tmp_path,
        env=scene.environment,
    )
    trusting = ssl.create_default_context(cafile=made / certs.CA_CERTIFICATE)
    login = {"Authorization": f"Bearer {scene.catalog.token()}"}
    async with httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{port}", verify=trusting, trust_env=False, timeout=60, headers=login
    ) as http:
        sent = await http.post(f"{API}/statements", json={"sql": "SELECT 1", "wait": 5})
        assert sent.is_success, sent.text

        await scene.catalog.process.stop()

        give_up_s = time.monotonic() + 30
        while (ready := await http.get("/health/ready")).status_code == 200:
            assert time.monotonic() < give_up_s
            await asyncio.sleep(0.1)
        assert "catalog" in ready.json()["not_ready"]


def test_a_gateway_without_local_execution_has_no_reader() -> None:
    program = """
import asyncio, random, sys, tempfile, pathlib
from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.server.gateway_wiring import open_gateway
from cynosure.server.settings import load_settings
import cynosure.server.gateway

async def main(mode):
    overrides = {"query.local_execution": mode, "query.spark.enabled": "on",
                 "server.data_dir": tempfile.mkdtemp()}
    settings = load_settings(environment={}, overrides=overrides)
    credentials = ClientCredentials("x", Secret("y"))
    async with open_gateway(settings, credentials, SystemClock(), random.Random()):
        readers = ("datafusion", "duckdb", "pyarrow.parquet", "pyarrow.dataset", "cynosure.query.scan",
                   "cynosure.query.local", "pyspark")
        print(sorted({each for each in readers if each in sys.modules}))

asyncio.run(main(sys.argv[1]))
"""

    def run(mode: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, mode], capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("off") == "[]"
    assert "cynosure.query.local" in run("on"), "the test would see one"


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"query.gateway.host": "0.0.0.0"}, "host"),
        ({"query.gateway.credentials_file": None}, "query.gateway.credentials_file"),
        (
            {"query.gateway.client_id": "a", "query.gateway.client_secret": "b"},
            "query.gateway.credentials_file",
        ),
    ],
)
def test_a_gateway_is_not_started_where_others_could_listen_or_without_one_principal(
    tmp_path: Path, values: dict[str, object], key: str
) -> None:
    given = {"query.gateway.credentials_file": str(tmp_path / "c.json"), **values}
    settings = load_settings(environment={}, overrides=given)

    with pytest.raises(Misconfigured) as caught:
        check_gateway(settings.query)

    assert key in (caught.value.details.get("key"), *caught.value.details)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"query.gateway.catalog_url": "http://other.example"}, "query.gateway.catalog_url"),
        ({"query.gateway.certificate": "x.pem"}, "query.gateway"),
        ({"query.gateway.catalog_tls.key": "x.pem"}, "query.gateway.catalog_tls"),
        ({"query.local_execution": "off", "query.spark.enabled": "off"}, "query.local_execution"),
    ],
)
def test_settings_that_no_gateway_can_have_are_refused(values: dict[str, object], key: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        load_settings(environment={}, overrides=values)

    assert caught.value.details["key"] == key
    assert caught.value.fix
    check_query(QuerySettings())


def test_the_address_of_a_gateway_goes_with_it(tmp_path: Path) -> None:
    with publish_address(tmp_path, "http://a", "http://b"):
        found = find_address(tmp_path)
        assert found is not None
        assert (found.url, found.catalog_url) == ("http://a", "http://b")
    assert find_address(tmp_path) is None
    (tmp_path / "gateway.json").write_text("{")
    assert find_address(tmp_path) is None


async def test_missing_packages_are_named_with_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cynosure.server.gateway_settings.find_spec", lambda name: name != "duckdb" or None)
    given = {"query.gateway.credentials_file": str(tmp_path / "c.json")}

    with pytest.raises(Misconfigured) as caught:
        check_gateway(load_settings(environment={}, overrides=given).query)

    assert caught.value.details["missing"] == ("duckdb",)
    assert "pip install 'cynosure[query]'" in caught.value.fix
