import asyncio
import os
import signal
import stat

import httpx
import psutil
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.common.telemetry.metrics import render_directory

pytestmark = pytest.mark.anyio


# --- one process, only looked at -------------------------------------------------------------------


async def test_health_metrics_and_description_are_served(running, http) -> None:
    ready = await http.get(f"{running.url}/health/ready")
    metrics = await http.get(f"{running.url}/metrics")
    description = await http.get(f"{running.url}/openapi.json")

    assert ready.json() == {"status": "ready", "not_ready": {}}
    assert 'cynosure_api_requests_total{operation="getReadiness",status="200"}' in metrics.text
    OpenAPIV31SpecValidator(description.json()).validate()
    assert set(description.json()["paths"]) >= {"/health/live", "/health/ready", "/metrics", "/openapi.json"}


async def test_operator_commands_are_on_their_socket_only(running, http) -> None:
    path = running.data / "operator.sock"
    transport = httpx.AsyncHTTPTransport(uds=str(path))

    public = await http.post(f"{running.url}/operator/v1/commands/ping", json={})
    async with httpx.AsyncClient(transport=transport, base_url="http://o") as operator:
        private = await operator.post("/operator/v1/commands/ping", json={})

    assert public.status_code == 404
    assert private.json()["value"]["pid"] == running.process.pid
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(running.data.stat().st_mode) == 0o700


async def test_a_second_server_on_the_directory_is_refused_and_the_holder_named(running, run_cli) -> None:
    second = await run_cli("serve", "catalog", "--data", str(running.data), "--port", "0")

    assert second.returncode == 1
    assert "Another process already works on this data directory" in second.stderr
    assert f"pid: {running.process.pid}" in second.stderr
    assert "Traceback" not in second.stderr


async def test_a_port_in_use_is_named_with_the_fix(running, run_cli) -> None:
    second = await run_cli("serve", "catalog", "--data", "two", "--port", running.port)

    assert second.returncode == 1
    assert "The port is already in use" in second.stderr
    assert f"port {running.port}" in second.stderr
    assert "--port" in second.stderr


async def test_strangers_are_told_of_health_metrics_public_keys_and_the_description_only(
    running, http
) -> None:
    described = (await http.get(f"{running.url}/openapi.json")).json()
    told = [
        f"{method} {path}"
        for path, methods in described["paths"].items()
        for method in methods
        if "{" not in path and (await http.request(method, running.url + path)).status_code not in (400, 401)
    ]

    assert set(told) <= {
        "get /health/live",
        "get /health/ready",
        "get /metrics",
        "get /openapi.json",
        "get /.well-known/jwks.json",
        "get /api/catalog/v1/oauth/jwks",
    }


async def test_plain_http_beyond_this_machine_is_warned_about(serve) -> None:
    served = await serve("--host", "0.0.0.0")

    assert "server.plain_http" in served.process.log()


# --- processes that are stopped and killed ---------------------------------------------------------


async def test_a_request_in_work_is_finished_before_the_process_ends(serve, wait_until) -> None:
    served = await serve()
    reader, writer = await asyncio.open_unix_connection(served.data / "operator.sock")
    head = b"POST /operator/v1/commands/ping HTTP/1.1\r\nhost: o\r\ncontent-type: application/json\r\n"
    writer.write(head + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
    # The handler is reading the body now, so the request is in work.
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")

    os.kill(served.process.pid, signal.SIGTERM)
    await wait_until(lambda: not psutil.Process(served.process.pid).net_connections("tcp"))
    writer.write(b"{}")
    answer = await reader.read()
    writer.close()

    assert b'"event":"done"' in answer
    assert await served.process.wait_exit() == 0
    assert not (served.data / "operator.sock").exists()


async def test_a_server_that_was_killed_starts_again_and_replaces_its_socket(serve) -> None:
    served = await serve()

    served.process.kill9()
    assert (served.data / "operator.sock").exists(), "left behind by the kill"
    await served.process.restart()

    reader, writer = await asyncio.open_unix_connection(served.data / "operator.sock")
    writer.write(b"GET /health/live HTTP/1.0\r\n\r\n")
    assert b"200 OK" in await reader.read()
    writer.close()


async def test_a_data_directory_with_a_very_long_path_works(serve, run_cli, tmp_path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    served = await serve(data=deep)

    status = await run_cli("status", "--data", str(deep), "--json")

    assert status.returncode == 0, status.stderr
    assert f'"url": "{served.url}"' in status.stdout


# --- workers ---------------------------------------------------------------------------------------


async def test_workers_share_port_metrics_and_one_operator_and_a_dead_one_is_replaced(
    serve, http, wait_until
) -> None:
    served = await serve("--workers", "2")
    first = set(served.children())
    transport = httpx.AsyncHTTPTransport(uds=str(served.data / "operator.sock"))
    async with httpx.AsyncClient(transport=transport, base_url="http://o") as operator:
        answer = await operator.post("/operator/v1/commands/ping", json={})
        # It is counted after it is answered; killed in between, it would not be.
        while "runOperatorCommand" not in (await operator.get("/metrics")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    slot_0 = answer.json()["value"]["pid"]
    assert len(first) == 2
    assert slot_0 in first

    # A worker publishes once a second, and takes what is not published with it when it is killed.
    counted = b'cynosure_api_requests_total{operation="runOperatorCommand",status="200"} 1.0'
    await wait_until(lambda: counted in render_directory(served.data / "metrics"))
    os.kill(slot_0, signal.SIGKILL)
    await wait_until(lambda: len(set(served.children()) - first) == 1)
    await wait_until(lambda: served.process.log().count("server.ready") == 3)
    ready = await http.get(f"{served.url}/health/ready")
    transport = httpx.AsyncHTTPTransport(uds=str(served.data / "operator.sock"))
    async with httpx.AsyncClient(transport=transport, base_url="http://o") as operator:
        answer = await operator.post("/operator/v1/commands/ping", json={})
        # Counted by two processes of slot 0 in turn, shown by the second. After the answer, see above.
        counted = 'cynosure_api_requests_total{operation="runOperatorCommand",status="200"} 2.0'
        async with asyncio.timeout(60):
            while counted not in (await operator.get("/metrics")).text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    assert ready.status_code == 200
    assert answer.json()["value"]["pid"] in set(served.children()) - first
    assert "child.crashed" in served.process.log()
    assert await served.process.stop() == 0


async def test_workers_end_with_their_killed_parent(serve, wait_until, has_ended) -> None:
    served = await serve("--workers", "2")
    workers = [psutil.Process(pid) for pid in served.children()]

    served.process.kill9(only_parent=True)

    await wait_until(lambda: all(has_ended(worker) for worker in workers))
