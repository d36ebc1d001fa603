"""The suite of federated catalogs runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import federated

LOADS = (federated.NATIVE, federated.CACHED, federated.CHECKED)
ONLY = (*LOADS, federated.CHANGED, federated.LIST, "1 federated catalogs")


def test_the_federated_suite_counts_what_a_remote_is_asked() -> None:
    sizes = {"seconds": 0.2, "tables": 7, "page": 3, "catalogs": 1, "snapshots": 2, "changes": 3}
    options = Options({name: str(value) for name, value in sizes.items()})

    result = asyncio.run(run_suite("federated", options, rounds=1, warmups=0, only=ONLY))

    notes = {name: rounds[0].notes for name, rounds in result.candidates.items()}
    assert {notes[name]["errors"] for name in LOADS} == {0}
    assert notes[federated.NATIVE]["asked"] == 0
    assert notes[federated.CHECKED]["asked"] > 0.5
    assert notes[federated.LIST]["asked"] == 1
    assert result.candidates[federated.LIST][0].operations == 3, "7 tables in pages of 3"
    figures = [promise.figure for promise in federated.promises(result)]
    assert "cached load, CPU over a native one, times" in figures
    assert "CPU that a changed load adds to the remote's, ms" in figures
    assert not any("catalogs" in each for each in figures), "only 100 of them are judged"
