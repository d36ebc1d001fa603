"""The suite of manifests runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import manifests


def test_the_manifests_suite_reads_and_plans_what_pyiceberg_does() -> None:
    options = Options({"files": "1200", "per_manifest": "600"})

    result = asyncio.run(run_suite("manifests", options, rounds=1, warmups=0))

    assert {figures.operations for (figures,) in result.candidates.values()} == {1200}
    assert len(manifests.promises(result)) == 6
