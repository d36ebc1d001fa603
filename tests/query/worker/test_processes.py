"""Scans in processes that are stopped and killed (I106, I108)."""

import asyncio
import signal
import sys
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.broker.runtime import Outcome
from cynosure.testing.small_broker import SmallBroker, make_order, make_task

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).with_name("scanning_process.py")
FILES = 2_000
"""A scan that is to be stopped while it runs still runs when a slow machine gets to stopping it."""


class ScanProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, folder: Path, query: BrokeredQuery, attempt_id: int, speed: float) -> "ScanProcess":
        order = folder / f"{attempt_id}.order"
        order.write_bytes(msgspec.msgpack.encode(make_order(query, ["f0"])))
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable,
                str(SCRIPT),
                str(order),
                str(attempt_id),
                str(speed),
                stdout=asyncio.subprocess.PIPE,
            )
        )

    async def line(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode().strip()

    async def end(self) -> str:
        """Its last line."""
        last = ""
        while line := await self.line():
            last = line
        await self.process.wait()
        return last


async def test_a_stopped_process_is_lost_after_three_beats_and_fenced_when_it_wakes(tmp_path):
    async with SmallBroker(heartbeat=timedelta(milliseconds=500), missed_heartbeats=3) as small:
        query = small.open("q", [make_task("f0", files=FILES)], retries=2)
        old = await ScanProcess.start(tmp_path, query, 1, speed=20)
        assert await old.line() == "file 0"

        old.process.send_signal(signal.SIGSTOP)
        await small.wait_for(lambda: small.killed)

        assert small.killed == [1]
        await small.wait_for(lambda: small.reports)
        assert [report.is_success for report in small.reports] == [False]
        assert [(each.name, each.is_healthy) for each in small.broker.workers()] == [("host/1", False)]
        assert not query.failed.done()

        # Spark would have killed it by now, and have begun a new attempt.
        new = await ScanProcess.start(tmp_path, query, 2, speed=100_000)
        assert await new.end() == f"done {FILES}"
        old.process.send_signal(signal.SIGCONT)
        assert (await old.end()).startswith("error ")
        outcomes = [row.outcome for row in small.broker.runtime.tasks()]
        assert outcomes == [Outcome.DONE, Outcome.LOST]


async def test_a_killed_process_is_seen_at_once_and_its_fragment_is_tried_again(tmp_path):
    async with SmallBroker(heartbeat=timedelta(seconds=60)) as small:
        query = small.open("q", [make_task("f0", files=FILES)], retries=0)
        first = await ScanProcess.start(tmp_path, query, 1, speed=10)
        assert await first.line() == "file 0"

        first.process.kill()
        # Without waiting for a beat: those are a minute apart.
        await small.wait_for(lambda: small.reports)
        await first.process.wait()

        error = await query.failed
        assert type(error).__name__ == "EngineUnavailable"
        assert error.details == {"fragment": "f0", "attempts": 1}


async def test_a_gateway_that_dies_ends_its_scans(tmp_path):
    small = SmallBroker()
    async with small:
        query = small.open("q", [make_task("f0", files=FILES)])
        scan = await ScanProcess.start(tmp_path, query, 1, speed=20)
        assert await scan.line() == "file 0"
    assert await scan.end() in ("error QueryCancelled", "error Unavailable")
