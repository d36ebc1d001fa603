"""Wall time and CPU of a scan and of a join by the size of what they read: in the gateway, and on Spark.

One operation is one statement over parts of lineitem, of about so many megabytes, under the policies of
`benchmarks.tpch_tables`. Where a gateway with its own cores becomes slower than Spark is where
`query.distribute_above` belongs; with Spark on the same two cores that is nowhere, so the figures are what it
is reckoned from: what a statement on Spark costs at least, and how many megabytes a core does in a second.

    ./dev bench governed_sizes [--set sizes=10,100,1000] [--set directory=DIR]

A maintainer must not break: both engines read the same files.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.governed_stage import Stage, Way, open_empty_stage
from benchmarks.measure import Meter, Options, Round
from benchmarks.results_file import Result
from benchmarks.tpch_tables import FILTERS, MASKS, NAMESPACE, make_files, read_pieces

_PIECE_ROWS: Final = 333_000
_PIECE_MB: Final = 10
STATEMENTS: Final = {
    "scan": "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice * (1 - l_discount)), "
    "sum(l_tax), count(*) FROM {0} WHERE l_shipdate <= DATE '1998-09-02' "
    "GROUP BY l_returnflag, l_linestatus",
    "join": "SELECT o_orderpriority, count(*), sum(l_extendedprice) FROM {0} JOIN orders "
    "ON l_orderkey = o_orderkey WHERE o_orderdate < DATE '1996-01-01' GROUP BY o_orderpriority",
}


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """Both engines over tables of several sizes."""
    sizes = [int(each) for each in options.get("sizes", "10,100,1000").split(",")]
    engines = options.get("engines", "local,isolated").split(",")
    scale, directory = options.get("scale", 1.0), options.get("directory", "")
    with TemporaryDirectory(prefix="cynosure-bench-") as made:
        files = make_files(Path(directory or made), scale)
        async with open_empty_stage() as stage:
            await stage.scene.make_table(f"{NAMESPACE}.orders", *read_pieces(files["orders"]))
            await _restrict(stage, "orders", "orders")
            for size in sizes:
                await _make(stage, files["lineitem"], size)
            ways = {engine: await stage.open(engine) for engine in engines}
            yield {
                f"{engine}, {what}, {size} MB": partial(_run, way, sql.format(f"lineitem_{size}"))
                for size in sizes
                for what, sql in STATEMENTS.items()
                for engine, way in ways.items()
            }


async def _make(stage: Stage, path: Path, size: int) -> None:
    """As many files of 10 MB, over and over the same ones where the table has no more."""
    pieces = list(read_pieces(path, _PIECE_ROWS))
    count = max(1, size // _PIECE_MB)
    name = f"lineitem_{size}"
    await stage.scene.make_table(f"{NAMESPACE}.{name}", *(pieces[at % len(pieces)] for at in range(count)))
    await _restrict(stage, name, "lineitem")


async def _restrict(stage: Stage, name: str, like: str) -> None:
    await stage.scene.restrict(f"{NAMESPACE}.{name}", filter=FILTERS[like])
    await stage.scene.restrict(f"{NAMESPACE}.{name}", columns=MASKS[like])


async def _run(way: Way, sql: str, meter: Meter) -> None:
    way.watch(meter)
    with meter.measuring():
        await way.run(sql)
    meter.count(operations=1)


def promises(result: Result) -> list[object]:
    """None: these figures decide on a setting."""
    return []
