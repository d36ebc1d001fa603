"""The database is not there: at the start it is said plainly, in the middle it is waited for."""

import asyncio
import random
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from cynosure.testing.harness.ports import ReservedPort
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.storm.ledger import Failed
from cynosure.testing.storm.writers import open_storm

from .conftest import CliRun, PrivatePostgres, Storms

pytestmark = pytest.mark.anyio


async def test_at_the_start_a_server_that_cannot_be_reached_is_named_with_the_fix(
    run_cli: Callable[..., object],
) -> None:
    """I21."""
    port = ReservedPort()
    url = f"postgresql://u:hunter2@127.0.0.1:{port.number}/x"

    runs = await asyncio.gather(
        run_cli("store", "status", "--store", url),
        run_cli("serve", "catalog", "--store", url, "--port", "0", "--data", "data"),
    )
    port.release()

    for done in runs:
        assert_plain_refusal(done, "cannot be reached", "Check that it runs")
        assert "hunter2" not in done.err + done.out


async def test_at_the_start_a_file_that_cannot_be_used_is_named_with_the_fix(
    run_cli: Callable[..., object], tmp_path: Path
) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one\n" * 100)
    url = f"sqlite:{tmp_path}/text.db"

    done = await run_cli("serve", "catalog", "--store", url, "--port", "0", "--data", "data")

    assert_plain_refusal(done, "is not a SQLite database", "name another file")


def assert_plain_refusal(done: CliRun, cause: str, fix: str) -> None:
    assert done.exit_code == 1
    error, _, advice = done.err.partition("Fix: ")
    assert "Error: " in error
    assert cause in error
    assert fix in advice
    assert "Traceback" not in done.err + done.out


@pytest.mark.postgres
async def test_in_the_middle_requests_fail_clearly_and_service_comes_back_by_itself(
    private_postgres: PrivatePostgres,
    processes: Processes,
    tmp_path: Path,
    rng: random.Random,
    scale: Callable[[int, int], int],
) -> None:
    """I1, I4."""
    url = f"{private_postgres.url}?schema=middle&connect_timeout_s=2"
    storms = Storms(url, processes, tmp_path)
    impatient = ("--set", "persistence.commit_deadline=1s")
    storm, server = await asyncio.gather(
        storms.start("storm", *impatient, seed=rng.getrandbits(32)), serve(processes, tmp_path, url)
    )
    for take_down in [private_postgres.kill9, *[private_postgres.stop] * scale(0, 3)]:
        await storms.wait_for("storm", 20, storm)
        failed = failures(storms)

        take_down()
        await storm.wait_until(has_failed(storms, failed + 1))
        await server.process.wait_until(server.is_not_ready)
        await asyncio.to_thread(private_postgres.start)

        await storms.wait_for("storm", 20, storm)
        await server.process.wait_until(server.is_ready)
    storm.kill9()
    assert await server.process.stop() == 0

    verdict = await storms.verify()
    assert verdict.problems == ()
    kinds = {event.error for event in storms.events() if isinstance(event, Failed)}
    assert kinds <= {"Unavailable", "OutcomeUnknown", "Contended"}
    async with open_storm(url) as persistence:
        assert await persistence.sweep_unlisted() == []


def failures(storms: Storms) -> int:
    return sum(isinstance(event, Failed) for event in storms.events())


def has_failed(storms: Storms, count: int):
    async def probe(_: ManagedProcess) -> bool:
        return failures(storms) >= count

    return probe


class Server:
    def __init__(self, process: ManagedProcess, port: int) -> None:
        self.process = process
        self._url = f"http://127.0.0.1:{port}/health/ready"

    async def readiness(self) -> int:
        async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
            return (await client.get(self._url)).status_code

    async def is_ready(self, _: ManagedProcess) -> bool:
        return await self.readiness() == 200

    async def is_not_ready(self, _: ManagedProcess) -> bool:
        return await self.readiness() == 503


async def serve(processes: Processes, directory: Path, url: str) -> Server:
    port = processes.reserve_port()
    argv = [sys.executable, "-m", "cynosure", "serve", "catalog", "--store", url]
    argv += ["--data", str(directory / "data"), "--port", str(port)]

    async def is_up(process: ManagedProcess) -> bool:
        return "ready at" in process.log()

    process = await processes.start("server", argv, ready=is_up, cwd=directory, timeout_s=60)
    return Server(process, port)
