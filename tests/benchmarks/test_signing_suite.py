"""The suite of signatures runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import signing


def test_the_signing_suite_measures_requests_with_and_without_a_catalog() -> None:
    result = asyncio.run(run_suite("signing", Options({"requests": "3"}), rounds=1, warmups=0))

    assert set(result.candidates) == {signing.READ, signing.OPERATION, signing.DELETION}
    assert len(signing.promises(result)) == 2
