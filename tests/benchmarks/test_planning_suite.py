"""The suite of scan planning runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import planning


def test_the_planning_suite_plans_what_pyiceberg_does() -> None:
    options = Options({"files": "4400", "per_manifest": "2200"})

    result = asyncio.run(run_suite("planning", options, rounds=1, warmups=0))

    assert {figures.operations for (figures,) in result.candidates.values()} == {4400}
    (whole,) = result.candidates["all"]
    assert whole.requests >= 2
    assert whole.notes["cold: files read from storage"] == 3
    assert len(planning.promises(result)) == 4
