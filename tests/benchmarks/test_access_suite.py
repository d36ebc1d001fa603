"""The suite of access figures runs, tiny, and says which promises it judges; not how fast."""

import asyncio
from pathlib import Path

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import access

SIZES = ("10x10", "30x40")


def test_the_access_suite_measures_every_estate_and_compares_them(tmp_path: Path) -> None:
    options = {"estates": ",".join(SIZES), "checks": "20", "grants": "2", "directory": str(tmp_path)}

    result = asyncio.run(run_suite("access", Options(options), rounds=1, warmups=0))

    assert set(result.candidates) == {f"{name}, {size}" for name in access.CHECKS for size in SIZES}
    figures = [promise.figure for promise in access.promises(result)]
    assert len(figures) == len(access.CHECKS)
    assert "grant: CPU with 30 tables, 40 grants over 10 tables, 10 grants" in figures
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"access-10-10", "access-30-40"}, "for the next run"
