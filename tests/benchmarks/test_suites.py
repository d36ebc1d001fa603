"""Every suite of the persistence figures runs, tiny, and says which promises it judges; not how fast."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.measure import Figures, Options
from benchmarks.promises import Promise, has, rate, ratio
from benchmarks.results_file import Result, make_result
from benchmarks.runner import run_suite
from benchmarks.suites import commit, memory, processes, store
from benchmarks.writers import check_chain


def run(suite: str, **options: object) -> Result:
    given = Options({name: str(value) for name, value in options.items()})
    return asyncio.run(run_suite(suite, given, rounds=1, warmups=0))


def figures(promised: list[Promise]) -> list[str]:
    return [promise.figure for promise in promised]


def test_the_commit_suite_measures_every_way_on_sqlite() -> None:
    result = run("commit", databases="sqlite", writers=3, seconds=0.1, keys=50, hot=20)

    assert set(result.candidates) == {
        f"sqlite, {way}" for way in ("grouped", "serialized", "naive CAS", "one writer")
    }
    assert "sqlite: grouped over naive CAS, times" in figures(commit.promises(result))


def test_the_commit_suite_runs_on_postgres(postgres_url: str) -> None:
    result = run("commit", databases="postgres", writers=2, seconds=0.1, keys=20, hot=20)

    assert "postgres: grouped over serialized, times" in figures(commit.promises(result))


def test_the_processes_suite_measures_one_and_four(postgres_url: str) -> None:
    result = run("processes", databases="postgres", writers=4, seconds=0.2, keys=20, hot=20)

    assert set(result.candidates) == {"postgres, 1 process", "postgres, 4 processes"}
    assert len(processes.promises(result)) == 1


def test_the_store_suite_counts_rows_bytes_and_fetches(tmp_path: Path) -> None:
    result = run("store", sizes="200,1000", updates=5, directory=tmp_path)

    update = result.candidates["update, 1000"][0]
    assert update.rows >= 2 * update.operations
    assert update.notes["p99 KiB"] > 2
    assert result.candidates["find cold, 1000"][0].notes["most fetches"] >= 2
    assert {path.name for path in tmp_path.glob("*.db")} == {"tables-200.db", "tables-1000.db"}
    assert store.promises(result) == [], "only the promised sizes are judged"


def test_the_memory_suite_measures_a_fresh_process(tmp_path: Path) -> None:
    result = run("memory", keys=100, lookups=20, updates=2, caches_mib="1", directory=tmp_path)

    notes = result.candidates["cache of 1 MiB"][0].notes
    assert notes["RSS MiB"] > notes["cache MiB"] > 0
    assert len(memory.promises(result)) == 1


def test_a_chain_that_misses_an_acknowledged_request_ends_the_run() -> None:
    with pytest.raises(AssertionError, match="3 commits were acknowledged, but the chain holds 2"):
        check_chain(in_chain=2, acknowledged=3)


def test_a_promise_says_whether_it_was_kept() -> None:
    kept = Promise("rows of an update", "≤", 5, 4.96)
    missed = Promise("grouped over serialized, times", "≥", 3, 2.5)

    assert str(kept) == "met: rows of an update: 4.96 (≤ 5)"
    assert str(missed) == "MISSED: grouped over serialized, times: 2.5 (≥ 3)"


def test_ratios_are_taken_round_by_round() -> None:
    def rounds(*per_second: int) -> list[Figures]:
        return [
            Figures(operations=each, wall_s=1.0, cpu_s=0.0, watched_cpu_s=0.0, bytes=0, rows=0, requests=0)
            for each in per_second
        ]

    result = make_result("x", {}, {"fast": rounds(100, 400, 900), "slow": rounds(50, 100, 100)})

    assert ratio(result, "fast", "slow", rate) == 4
    assert not has(result, "fast", "absent")
