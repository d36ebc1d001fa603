"""The suite of fingerprints runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import fingerprint


def test_the_fingerprint_suite_measures_both_sizes_beside_decoding_them() -> None:
    result = asyncio.run(run_suite("fingerprint", Options({"bodies": "3"}), rounds=1, warmups=0))

    for size, low, high in (("2 kB", 1_800, 2_400), ("50 kB", 45_000, 55_000)):
        for what in ("fingerprint", "decode", "library"):
            (figures,) = result.candidates[fingerprint.name_of(what, size)]
            assert low <= figures.bytes / figures.operations <= high
    assert len(fingerprint.promises(result)) == 2
