"""The suite about requests with keys runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import idempotency


def test_keyed_commits_are_measured_beside_plain_ones_without_an_error() -> None:
    options = Options({"ours": "sqlite", "seconds": "0.2", "live": "300"})

    result = asyncio.run(run_suite("idempotency", options, rounds=1, warmups=0, only=()))

    assert len(result.candidates) == 5
    assert {rounds[0].notes["errors"] for rounds in result.candidates.values()} == {0}
    figures = [promise.figure for promise in idempotency.promises(result)]
    assert "sqlite: keyed over plain, 16 clients, CPU" in figures
    assert "sqlite: 1,000,000 live keys over none, 16 clients, CPU" in figures
