"""What time tells about hidden rows: of statements that show nothing, by what a hidden row has.

One operation is one statement of a user under the filter `region = 'EU'`. Of the salaries, those of shown
rows are below 1,000, those of hidden rows go up to 1,000,000 in steps of 10. All statements give no row:

    held, not held     `salary = v` for a v that a hidden row has; that none has, between some that do
    below, above       `salary > v` for a v that is less than the largest hidden one; that is more

    ./dev bench governed_time [--set rows=1000000] [--set engines=local,isolated] [--set statements=20]

`many`: of a thousand rows one is shown. `few`: one is hidden. Where the times of two statements of a pair
differ, whoever measures learns what is hidden, by halving as exactly as they like.

A maintainer must not break: the two statements of a pair follow each other, so that what the machine does
meanwhile hurts both alike; and no row is shown to either.
"""

import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.governed_stage import Stage, Way, open_empty_stage
from benchmarks.measure import Meter, Options, Round
from benchmarks.results_file import Result
from benchmarks.tpch_tables import NAMESPACE

Pairs = Mapping[str, Mapping[str, str]]
"""Conditions by pair and name."""
_FILES: Final = 4
_ONE_OF: Final = 1000


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """Both pairs, on both tables, by each engine."""
    rows, statements = options.get("rows", 1_000_000), options.get("statements", 20)
    engines = options.get("engines", "local").split(",")
    async with open_empty_stage() as stage:
        pairs = {name: await _make(stage, name, rows) for name in ("few", "many")}
        ways = {engine: await stage.open(engine) for engine in engines}
        yield {
            f"{engine}, {table} hidden, {pair}": partial(_run, way, table, conditions, statements)
            for engine, way in ways.items()
            for table in pairs
            for pair, conditions in pairs[table].items()
        }


async def _make(stage: Stage, name: str, rows: int) -> Pairs:
    numbers = pa.array(range(rows), pa.int64())
    is_shown = pa.array([(number % _ONE_OF == 0) == (name == "many") for number in range(rows)])
    # Every file has all of it, in an order that no bound follows.
    low, high = (pa.array([number * 7919 % most for number in range(rows)]) for most in (1000, 100_001))
    table = pa.table(
        {
            "id": numbers,
            "region": pc.if_else(is_shown, "EU", "US"),
            "salary": pc.if_else(is_shown, low, pc.multiply(high, 10)).cast(pa.int64()),
            "note": pa.array([f"note {number * 7919 % 99991:060}" for number in range(rows)]),
        }
    )
    hidden = table["salary"].filter(pc.invert(is_shown))
    held, most = hidden[len(hidden) // 2].as_py(), pc.max(hidden).as_py()
    part = -(-rows // _FILES)
    pieces = (table.slice(at * part, part) for at in range(_FILES))
    await stage.scene.make_table(f"{NAMESPACE}.{name}", *pieces)
    await stage.scene.restrict(f"{NAMESPACE}.{name}", filter="region = 'EU'")
    return {
        "equal": {"held": f"salary = {held}", "not held": f"salary = {held + 5}"},
        "bounds": {"below": f"salary > {most * 9 // 10}", "above": f"salary > {most + 1000}"},
    }


async def _run(way: Way, table: str, conditions: Mapping[str, str], statements: int, meter: Meter) -> None:
    way.watch(meter)
    took: dict[str, list[float]] = {name: [] for name in conditions}
    with meter.measuring():
        for number in range(statements):
            # Each is the first as often as the other.
            for name, condition in list(conditions.items())[:: -1 if number % 2 else 1]:
                begin_s = time.perf_counter()
                found = await way.run(f"SELECT id, note FROM {table} WHERE {condition}")
                took[name].append((time.perf_counter() - begin_s) * 1e3)
                if found:
                    raise SystemExit(f"bench: {way.name} shows {len(found)} rows where {condition}")
    for name, each in took.items():
        meter.note(f"{name}, median ms", statistics.median(each))
        meter.note(f"{name}, least ms", min(each))
    meter.count(operations=statements * len(took))


def promises(result: Result) -> list[object]:
    """None: what these figures tell is written down in docs/concepts/governed-sql.md."""
    return []
