import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

pytestmark = pytest.mark.anyio


async def wait_until(condition, timeout_s: float = 20.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_one_process_serves_health_metrics_and_its_description_and_stops_when_asked(
    serve, http
) -> None:
    served = await serve()

    ready = await http.get(f"{served.url}/health/ready")
    metrics = await http.get(f"{served.url}/metrics")
    description = await http.get(f"{served.url}/openapi.json")
    not_public = await http.get(f"{served.url}/operator/v1/commands")
    code = await served.process.stop()

    assert ready.json() == {"status": "ready", "not_ready": {}}
    assert 'cynosure_api_requests_total{operation="getReadiness",status="200"} 1.0' in metrics.text
    OpenAPIV31SpecValidator(description.json()).validate()
    assert "/health/ready" in description.json()["paths"]
    assert not_public.status_code == 404
    assert code == 0
    assert not (served.data / "operator.sock").exists()


async def test_a_request_in_work_is_finished_before_the_process_ends(serve) -> None:
    served = await serve()
    host, port = served.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_unix_connection(served.data / "operator.sock")
    head = b"POST /operator/v1/commands/ping HTTP/1.1\r\nhost: o\r\ncontent-type: application/json\r\n"
    writer.write(head + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
    # The handler is reading the body now, so the request is in work.
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")

    os.kill(served.process.pid, signal.SIGTERM)
    with pytest.raises(ConnectionRefusedError):
        async with asyncio.timeout(10):
            while True:
                _, probe = await asyncio.open_connection(host, int(port))
                probe.close()
                await asyncio.sleep(0.02)
    writer.write(b"{}")
    answer = await reader.read()
    writer.close()

    assert b'"event":"done"' in answer
    assert await served.process.wait_exit() == 0


async def test_workers_share_port_and_metrics_and_a_dead_one_is_replaced(serve, http) -> None:
    served = await serve("--workers", "2")
    parent = psutil.Process(served.process.pid)
    first = {child.pid for child in parent.children()}
    assert len(first) == 2

    os.kill(min(first), signal.SIGKILL)
    await wait_until(lambda: len({child.pid for child in parent.children()} - first) == 1)
    await wait_until(lambda: served.process.log().count("server.ready") >= 3)
    ready = await http.get(f"{served.url}/health/ready")
    metrics = await http.get(f"{served.url}/metrics")
    code = await served.process.stop()

    assert ready.status_code == 200
    assert 'operation="getReadiness",status="200"' in metrics.text
    assert "child.crashed" in served.process.log()
    assert code == 0
    assert all(is_gone(pid) for pid in first)


async def test_with_several_workers_exactly_one_serves_the_operator_socket(serve) -> None:
    served = await serve("--workers", "2")
    transport = httpx.AsyncHTTPTransport(uds=str(served.data / "operator.sock"))

    async with httpx.AsyncClient(transport=transport, base_url="http://o") as operator:
        answers = [await operator.post("/operator/v1/commands/ping", json={}) for _ in range(5)]

    pids = {answer.json()["value"]["pid"] for answer in answers}
    assert len(pids) == 1
    assert pids < {child.pid for child in psutil.Process(served.process.pid).children()}


async def test_workers_end_with_their_killed_parent(serve) -> None:
    served = await serve("--workers", "2")
    workers = [child.pid for child in psutil.Process(served.process.pid).children()]

    served.process.kill9(only_parent=True)

    await wait_until(lambda: all(is_gone(pid) for pid in workers))


async def test_a_worker_that_keeps_crashing_ends_the_server_with_the_reason(serve) -> None:
    served = await serve("--workers", "2")
    parent = psutil.Process(served.process.pid)

    async def keep_killing() -> None:
        while served.process.is_running:
            for child in parent.children():
                child.kill()
            await asyncio.sleep(0.05)

    killing = asyncio.create_task(keep_killing())
    code = await served.process.wait_exit(timeout_s=40)
    await asyncio.gather(killing, return_exceptions=True)

    assert code == 1
    assert "A child process keeps crashing" in served.process.log()
    assert "SIGKILL" in served.process.log()


async def test_the_operator_socket_is_private_and_replaced_after_a_kill(serve) -> None:
    served = await serve()
    socket_path = served.data / "operator.sock"
    assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(served.data.stat().st_mode) == 0o700

    served.process.kill9()
    assert socket_path.exists(), "left behind by the kill"
    await served.process.restart()

    reader, writer = await asyncio.open_unix_connection(socket_path)
    writer.write(b"GET /health/live HTTP/1.0\r\n\r\n")
    assert b"200 OK" in await reader.read()
    writer.close()


async def test_a_data_directory_with_a_very_long_path_works(serve, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    served = await serve(data=deep)

    status = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "cynosure", "status", "--data", str(deep), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert status.returncode == 0, status.stderr
    assert f'"url": "{served.url}"' in status.stdout


async def test_a_second_server_on_the_directory_is_refused_and_the_holder_named(
    serve, processes, tmp_path
) -> None:
    served = await serve()

    second = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "cynosure", "serve", "catalog", "--data", str(served.data), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 1
    assert "Another process already works on this data directory" in second.stderr
    assert f"pid: {served.process.pid}" in second.stderr
    assert "Traceback" not in second.stderr


async def test_a_port_in_use_is_named_with_the_fix(serve, tmp_path) -> None:
    served = await serve()
    port = served.url.rsplit(":", 1)[1]

    second = await asyncio.to_thread(
        subprocess.run,
        [
            sys.executable,
            "-m",
            "cynosure",
            "serve",
            "catalog",
            "--data",
            str(tmp_path / "two"),
            "--port",
            port,
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert second.returncode == 1
    assert "The port is already in use" in second.stderr
    assert f"port {port}" in second.stderr
    assert "--port" in second.stderr
