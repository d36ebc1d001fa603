"""The suites of governed SQL run, tiny, and say which promises they judge; not how fast."""

import asyncio

import pytest
from benchmarks.measure import Figures, Options
from benchmarks.results_file import Result, make_result
from benchmarks.runner import run_suite
from benchmarks.suites import governed, governed_scan
from benchmarks.tpch_tables import QUERIES, write_view


def run(suite: str, only: tuple[str, ...] = (), **options: object) -> Result:
    given = Options({name: str(value) for name, value in options.items()})
    return asyncio.run(run_suite(suite, given, rounds=1, warmups=0, only=only))


def test_queries_under_policies_are_measured_one_by_one() -> None:
    result = run("governed", scale=0.01, ways="local", queries="Q1,Q6")

    (figures,) = result.candidates["local"]
    assert figures.operations == 2
    assert figures.watched_cpu_s > 0
    assert set(figures.notes) == {"Q1 CPU s", "Q6 CPU s"}
    assert governed.promises(result) == [], "there is nothing to compare with"


def test_cpu_is_judged_beside_views_in_the_same_round() -> None:
    def rounds(*spent_s: float) -> list[Figures]:
        return [Figures(22, 1.0, 0.0, each, 0, 0, 0, {"Q1 CPU s": each / 2}) for each in spent_s]

    result = make_result("governed", {}, {"views": rounds(10, 20, 40), "isolated": rounds(15, 40, 60)})

    assert [(each.figure, each.measured, each.is_kept) for each in governed.promises(result)] == [
        ("isolated: CPU over views, all", 1.5, True),
        ("isolated: CPU over views, Q1", 1.5, True),
    ]


def test_a_way_that_answers_otherwise_ends_the_run() -> None:
    answers: governed.Answers = {}
    governed.compare(answers, "Q1", "views", [["2", "b"], ["1.00", "a"]])
    governed.compare(answers, "Q1", "local", [["1", "a"], ["2.00000001", "b"]])

    with pytest.raises(SystemExit, match="native answers Q1 otherwise"):
        governed.compare(answers, "Q1", "native", [["1", "a"], ["3", "b"]])


def test_views_filter_and_mask_as_the_policies_do() -> None:
    assert len(QUERIES) == 22
    assert write_view("lineitem", ["l_orderkey", "l_tax"]) == (
        "SELECT l_orderkey, CAST(0 AS DECIMAL(15, 2)) AS l_tax FROM lake.tpch.lineitem "
        "WHERE l_shipmode <> 'AIR'"
    )
    assert write_view("nation", ["n_name"]) == "SELECT n_name FROM lake.tpch.nation"


def test_scans_of_both_ways_tell_their_peak() -> None:
    result = run("governed_scan", rows=60_000)

    fast, complete = (result.candidates[way][0] for way in ("fast", "complete"))
    assert fast.rows == complete.rows < 60_000, "a filter is on it"
    assert fast.notes["peak MiB"] > fast.notes["MiB before"] > 0
    assert len(governed_scan.promises(result)) == 4


def test_small_statements_tell_gateway_and_catalog_apart() -> None:
    result = run("governed_small", only=("local",), statements=2, fragments=2)

    (figures,) = result.candidates["local"]
    assert figures.rows == 2 * 2, "one of three rows is hidden"
    assert figures.notes["gateway CPU ms"] > 0


def test_statements_are_measured_by_the_size_of_what_they_read() -> None:
    result = run("governed_sizes", sizes="10", engines="local", scale=0.01)

    assert set(result.candidates) == {"local, scan, 10 MB", "local, join, 10 MB"}
