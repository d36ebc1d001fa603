"""CPU of small statements: what a gateway, its catalog and Spark need before there is a row to look at.

One operation is one statement, over HTTP, of a user under a row filter and a mask, one after the other.

    ./dev bench governed_small [--set statements=50] [--set fragments=64]

`local`: a table of three rows, in the gateway alone. `spark`: the same on Spark, isolated. `fragments`: a
table of as many tiny files, each a fragment of its own, on Spark; what it needs more than `spark`, divided by
the fragments, is what a fragment costs: its stream to the broker, its task in Spark, its file.

A maintainer must not break: CPU of gateway and catalog are told apart.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import psutil
import pyarrow as pa

from benchmarks.governed_stage import Stage, Way, open_empty_stage
from benchmarks.measure import Figures, Meter, Options, Round, tree_cpu_s
from benchmarks.promises import Promise, has, median
from benchmarks.results_file import Result

_ONE_FILE_EACH: Final = {"QUERY__SPARK__SPLIT_SIZE": "100"}


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """Small statements on both engines."""
    statements, fragments = options.get("statements", 50), options.get("fragments", 64)
    async with open_empty_stage() as stage:
        await _make(stage, "few", 1)
        await _make(stage, "many", fragments)
        local = await stage.open("local")
        spark = await stage.open("isolated", _ONE_FILE_EACH)
        yield {
            "local": partial(_run, local, "few", statements),
            "spark": partial(_run, spark, "few", max(statements // 5, 1)),
            "fragments": partial(_run, spark, "many", max(statements // 10, 1)),
        }


async def _make(stage: Stage, name: str, files: int) -> None:
    rows = pa.table({"id": [1, 2, 3], "region": ["EU", "US", "EU"], "ssn": ["123-45", "234-56", None]})
    await stage.scene.make_table(f"tpch.{name}", *[rows] * files)
    await stage.scene.restrict(f"tpch.{name}", filter="region = 'EU'")
    await stage.scene.restrict(f"tpch.{name}", columns={"ssn": "show-last-4"})


async def _run(way: Way, table: str, statements: int, meter: Meter) -> None:
    way.watch(meter)
    gateway, catalog = (psutil.Process(pid) for pid in way.pids)
    before = tree_cpu_s(gateway), tree_cpu_s(catalog)
    with meter.measuring():
        for _ in range(statements):
            rows = await way.run(f"SELECT id, ssn FROM {table} WHERE id > 0 ORDER BY id")
    meter.note("gateway CPU ms", (tree_cpu_s(gateway) - before[0]) * 1e3 / statements)
    meter.note("catalog CPU ms", (tree_cpu_s(catalog) - before[1]) * 1e3 / statements)
    meter.note("files", len(rows) / 2)
    meter.count(operations=statements, rows=len(rows) * statements)


def _per_fragment_ms(one: Figures, other: Figures) -> float:
    more_s = one.watched_cpu_s / one.operations - other.watched_cpu_s / other.operations
    return more_s * 1e3 / (one.notes["files"] - other.notes["files"])


def promises(result: Result) -> list[Promise]:
    """A statement in the gateway, and a fragment on Spark."""
    found = []
    if has(result, "local"):
        spent = median(result, "local", lambda each: each.notes["gateway CPU ms"])
        found.append(Promise("a small statement: CPU of the gateway, ms", "≤", 50, spent))
    if has(result, "fragments", "spark"):
        pairs = zip(result.candidates["fragments"], result.candidates["spark"], strict=True)
        costs = sorted(_per_fragment_ms(one, other) for one, other in pairs)
        found.append(Promise("a fragment on Spark: CPU, ms", "≤", 50, costs[len(costs) // 2]))
    return found
