"""Several processes on one SQLite file: a server's workers, writers that are killed, operators' commands."""

import asyncio
import random
import sys
from pathlib import Path

import msgspec
import pytest

from cynosure.client.operator import find_operator
from cynosure.common.clock import SystemClock
from cynosure.persistence.history.check import CheckReport
from cynosure.server.store_commands import GcParams, InitParams, StatusParams, StoreStatus, Summary
from cynosure.testing.harness.processes import ManagedProcess, Processes

from .conftest import Storms

pytestmark = pytest.mark.anyio


async def test_workers_writers_and_operators_share_one_file_without_losing_an_update(
    processes: Processes, tmp_path: Path, rng: random.Random
) -> None:
    """I4, I5, I22."""
    data = tmp_path / "data"
    data.mkdir()
    storms = Storms(f"sqlite:{data}/store.db", processes, tmp_path)
    server = await serve_workers(processes, tmp_path, data)

    async with find_operator(data / "operator.sock", SystemClock(), rng) as operator:
        assert operator is not None
        hail = asyncio.ensure_future(storms.hail(processes=3, rounds=3, seed=rng.getrandbits(32)))
        while not hail.done():
            status = await operator.run("store.status", StatusParams(), lambda _: None)
            await asyncio.sleep(0.2)
        await hail
        checked = await operator.run("store.check", InitParams(), lambda _: None)
        collected = await operator.run("store.gc", GcParams(), lambda _: None)
    assert await server.stop() == 0

    # Two workers and the last three writers; the dead ones' leases have not run out yet.
    assert len(msgspec.json.decode(status, type=StoreStatus).leases) >= 5
    reports = msgspec.json.decode(checked, type=list[CheckReport])
    assert [report.problems for report in reports if report.problems] == []
    assert msgspec.json.decode(collected, type=Summary).text.endswith("deleted 0")
    verdict = await storms.verify()
    assert verdict.problems == ()
    assert verdict.refused == verdict.unknown == 0


async def serve_workers(processes: Processes, directory: Path, data: Path) -> ManagedProcess:
    argv = [sys.executable, "-m", "cynosure", "serve", "catalog", "--workers", "2", "--data", str(data)]
    argv += ["--port", str(processes.reserve_port())]

    async def is_up(process: ManagedProcess) -> bool:
        return "ready at" in process.log()

    return await processes.start("server", argv, ready=is_up, cwd=directory, timeout_s=60)
