"""What is counted."""

import asyncio
from collections.abc import Iterator

import pytest

from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.query.errors import EngineUnavailable
from cynosure.query.scan_task import Credentials
from cynosure.query.stream import framing
from cynosure.storage.errors import StorageUnavailable
from cynosure.testing.small_broker import HeldScan, SmallBroker

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    start_metrics()
    yield
    stop_metrics()


def counted() -> dict[str, float]:
    lines = [line for line in render().decode().splitlines() if line.startswith("cynosure_query_")]
    return {
        name.removeprefix("cynosure_query_"): float(value)
        for name, _, value in (line.rpartition(" ") for line in lines)
    }


async def test_streams_fragments_and_workers_are_counted():
    def fail(task, watch):
        raise StorageUnavailable("The storage does not answer")
        yield

    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        held = HeldScan()
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()
        assert counted()["scan_streams"] == 1
        held.let_go(3)
        await running
        with pytest.raises(EngineUnavailable):
            await small.read(query, "f0", attempt_id=1, scan=fail)
        query.tokens["f0"] = "wrong"
        with pytest.raises(EngineUnavailable):
            await small.read(query, "f0", attempt_id=2)
        await small.wait_for(lambda: len(small.reports) == 2)

        numbers = counted()

        assert numbers["scan_streams"] == 0
        assert numbers['scan_fragments_total{outcome="done"}'] == 1
        assert numbers['scan_fragments_total{outcome="failed"}'] == 1
        assert numbers['scan_streams_refused_total{reason="bad_token"}'] == 1
        await small.wait_for(lambda: counted().get("scan_workers") == 1)
        await small.wait_for(lambda: counted()["scan_workers_healthy"] == 0)


async def test_renewals_are_counted(manual_clock):
    async def renew() -> Credentials:
        return Credentials()

    async with SmallBroker(manual_clock) as small:
        soon = Credentials(0, {}, manual_clock.now_us() // 1_000 + 2_000)
        small.broker.refresher.register("k", soon, renew, lambda _: None)
        await manual_clock.advance(1.5)
        assert counted()['credential_refreshes_total{outcome="renewed"}'] == 1


async def test_a_task_that_is_too_long_ends_the_statement_at_once(monkeypatch):
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        monkeypatch.setattr(framing, "MAX_FRAME_BYTES", 300)
        with pytest.raises(EngineUnavailable):
            await small.read(query, "f0")
        error = await asyncio.wait_for(query.failed, 30)
        assert error.message == "A message to a scan is too long"
        assert error.fix
