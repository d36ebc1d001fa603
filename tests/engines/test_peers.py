"""The reference server that we compare ourselves with starts, stays on loopback and leaves nothing behind."""

import ipaddress
import sys
from pathlib import Path

import httpx
import psutil
import pytest

from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import Processes

SCRIPT = Path(__file__).parents[2] / "scripts/peers/fixture"


@pytest.mark.anyio
async def test_the_reference_server_serves_on_loopback_until_it_is_told_to_stop(
    processes: Processes, tmp_path: Path
):
    port = processes.reserve_port()
    argv = [sys.executable, str(SCRIPT), "--port", str(port), "--warehouse", str(tmp_path / "files")]

    script = await processes.start("fixture", argv, ready=log_ready(f"ready on port {port}"), timeout_s=90)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1", trust_env=False) as client:
        (await client.post("/namespaces", json={"namespace": ["ns"]})).raise_for_status()
        listed = (await client.get("/namespaces")).json()
    [java] = psutil.Process(script.pid).children()
    listening = [found.laddr for found in java.net_connections() if found.status == psutil.CONN_LISTEN]

    assert listed["namespaces"] == [["ns"]]
    assert [address.port for address in listening] == [port]
    assert all(ipaddress.ip_address(found.ip.removeprefix("::ffff:")).is_loopback for found in listening)
    assert await script.stop() == 0
    assert not java.is_running()
