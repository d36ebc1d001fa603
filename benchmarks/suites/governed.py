"""CPU of TPC-H under row filters and masks: governed SQL beside Spark with views that protect nothing.

One operation is one of TPC-H's 22 queries, over HTTP, under the policies of `benchmarks.tpch_tables`. CPU is
that of all processes but the client: gateway or Spark, Java, Python's workers, and the catalog.

    ./dev bench governed [--set scale=1] [--set queries=Q1,Q6] [--set ways=views,local] [--set directory=DIR]

`views`: Spark with Iceberg's catalog in one session, and views with the same filters and masks; its user can
read what they hide. `isolated`, `native`: the gateway with Spark and either leaf. `local`: the gateway alone.
All have two threads; Spark has a heap of 2 GiB.

A maintainer must not break: all ways answer the same rows, or the run ends.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final

from benchmarks.governed_stage import Way, open_stage
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, ratio
from benchmarks.results_file import Result
from benchmarks.tpch_tables import QUERIES

WAYS: Final = ("views", "isolated", "native", "local")
BOUNDS: Final = {"native": 1.3, "isolated": 1.8, "local": 0.5}
"""Of CPU over that of views, in the sum of all queries."""
SHOWN: Final = ("Q1", "Q3", "Q5", "Q6")
_DIGITS: Final = Decimal("0.0001")
_LEAST_ROUNDS: Final = 3
Answers = dict[str, list[list[str]]]


def least_rounds_to_save(given: Mapping[str, str]) -> int:
    """A round of all ways takes minutes."""
    return _LEAST_ROUNDS


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """All ways, over the same tables."""
    scale, directory = options.get("scale", 1.0), options.get("directory", "")
    names = options.get("ways", ",".join(WAYS)).split(",")
    chosen = options.get("queries", ",".join(QUERIES)).split(",")
    answers: Answers = {}
    async with open_stage(scale, directory) as stage:
        yield {
            name: partial(_run, await stage.open(name), {each: QUERIES[each] for each in chosen}, answers)
            for name in names
        }


async def _run(way: Way, queries: Mapping[str, str], answers: Answers, meter: Meter) -> None:
    way.watch(meter)
    for name, sql in queries.items():
        before_s = way.spent_s()
        with meter.measuring():
            rows = await way.run(sql)
        meter.note(f"{name} CPU s", round(way.spent_s() - before_s, 3))
        compare(answers, name, way.name, rows)
    meter.count(operations=len(queries))


def compare(answers: Answers, query: str, way: str, rows: list[list[str]]) -> None:
    """Whether a way answers what the first one did, in whatever order."""
    found = sorted([_rounded(value) for value in row] for row in rows)
    expected = answers.setdefault(query, found)
    if found != expected:
        raise SystemExit(f"bench: {way} answers {query} otherwise: {len(found)} rows for {len(expected)}")


def _rounded(text: str) -> str:
    """Sums of floats differ in their last digits by the order of rows."""
    try:
        return str(Decimal(text).quantize(_DIGITS).normalize())
    except InvalidOperation:
        return text


def promises(result: Result) -> list[Promise]:
    """CPU over that of views: of all queries together, and of some."""
    found = []
    for way, bound in BOUNDS.items():
        if not has(result, "views", way):
            continue
        found.append(Promise(f"{way}: CPU over views, all", "≤", bound, ratio(result, way, "views", _all)))
        found += [
            Promise(f"{way}: CPU over views, {query}", "≤", bound, ratio(result, way, "views", _of(query)))
            for query in SHOWN
            if f"{query} CPU s" in result.candidates[way][0].notes
        ]
    return found


def _all(figures: Figures) -> float:
    return figures.watched_cpu_s / figures.operations


def _of(query: str) -> "partial[float]":
    return partial(_note, f"{query} CPU s")


def _note(name: str, figures: Figures) -> float:
    return figures.notes[name]
