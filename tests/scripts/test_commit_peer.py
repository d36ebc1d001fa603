"""`scripts/peers/commit` serves what a commit was, not what the checkout is, and leaves nothing behind."""

import sys
from pathlib import Path

import httpx
import psutil
import pytest

from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import Processes

SCRIPT = Path(__file__).parents[2] / "scripts/peers/commit"


@pytest.mark.anyio
async def test_the_server_of_a_commit_runs_from_the_commits_own_files(processes: Processes, tmp_path: Path):
    port = processes.reserve_port()
    argv = [sys.executable, str(SCRIPT), "HEAD", "--port", str(port)]

    script = await processes.start("commit", argv, ready=log_ready("Catalog is ready at"), timeout_s=60)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        ready = await client.get("/health/ready")
    [server] = psutil.Process(script.pid).children()

    folder = Path(server.environ()["PYTHONPATH"])

    assert ready.status_code == 200
    assert (folder / "cynosure").is_dir()
    assert await script.stop() == 0
    assert not server.is_running()
    assert not folder.exists()


@pytest.mark.anyio
async def test_a_commit_that_does_not_exist_is_told(processes: Processes):
    script = await processes.start("commit", [sys.executable, str(SCRIPT), "no-such-commit"])

    assert await script.wait_exit() == 1
    assert "no-such-commit" in script.log()
