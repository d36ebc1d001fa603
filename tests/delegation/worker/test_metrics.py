"""What is counted."""

from collections.abc import Iterator

import pytest

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.errors import Unavailable
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.delegation.jobs.port import JobContext, JobFailed
from cynosure.delegation.store.port import Receipt
from cynosure.testing.small_delegation import Gate, SmallDelegation, make_order, stumble, succeed

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    start_metrics()
    yield
    stop_metrics()


def counted() -> dict[str, float]:
    lines = [line for line in render().decode().splitlines() if line.startswith("cynosure_delegation_")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_attempts_are_counted_by_what_became_of_them(small: SmallDelegation) -> None:
    small.job.script = [
        stumble(Unavailable("Away")),
        succeed(files=3, size=30),
        stumble(JobFailed("No", code="NO")),
    ]
    await small.service.submit(make_order("a"))
    await small.start_worker()
    await small.advance(62)
    await small.service.submit(make_order("b"))
    await small.settle()

    found = counted()
    kind = 'type="TABLE_PURGE"'
    assert found[f"cynosure_delegation_attempts_total{{{kind}}}"] == 3
    for outcome in ("success", "retry", "failure"):
        name = f'cynosure_delegation_attempts_ended_total{{outcome="{outcome}",{kind}}}'
        assert found[name] == 1
    assert found[f"cynosure_delegation_files_deleted_total{{{kind}}}"] == 3
    assert found[f"cynosure_delegation_bytes_deleted_total{{{kind}}}"] == 30
    assert found[f"cynosure_delegation_running{{{kind}}}"] == 0


async def test_files_are_counted_with_their_receipts_and_once(small: SmallDelegation) -> None:
    async def step(context: JobContext) -> ExecutionResult:
        await context.put_receipts([Receipt("a", 10, 100, 1)])
        await context.put_receipts([Receipt("b", 5, 50, 1)])
        return ExecutionResult(15, 150)

    small.job.script = [step]
    await small.service.submit(make_order())
    await small.start_worker()
    await small.settle()

    assert counted()['cynosure_delegation_files_deleted_total{type="TABLE_PURGE"}'] == 15


async def test_what_runs_waits_and_was_lost_is_seen(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    await small.service.submit(make_order("a"))
    await small.store.lease("dead", now_us=small.clock.now_us(), lease_us=1)
    await small.clock.advance(1)
    await small.start_worker(slots=1)
    await small.settle()
    await small.service.submit(make_order("b"))

    await small.advance(100)

    found = counted()
    assert found["cynosure_delegation_lost_leases_total"] == 1
    assert found['cynosure_delegation_running{type="TABLE_PURGE"}'] == 1
    assert 90 <= found["cynosure_delegation_queue_age_seconds"] <= 101
