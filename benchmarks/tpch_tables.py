"""TPC-H as tables of a catalog, and the policies that its readers are under.

    lineitem   rows l_shipmode <> 'AIR'          l_tax one value, l_comment mask-alphanum
    orders     rows o_orderpriority <> '5-LOW'   o_shippriority one value, o_clerk show-last-4
    customer                                     c_name sha-256-global, c_address, c_comment mask-alphanum

A maintainer must not break: `VIEWS` show exactly the rows and values that the policies do; the suite compares
what both answer.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results_file import ROOT
from cynosure.testing.query_server import QueryScene

NAMESPACE: Final = "tpch"
PIECE_ROWS: Final = 1_000_000
"""Of a file: about 29 MB of lineitem."""
QUERIES: Final = {
    f"Q{int(each.stem[1:])}": each.read_text()
    for each in sorted((ROOT / "tests" / "query" / "tpch").glob("q*.sql"))
}
FILTERS: Final = {"lineitem": "l_shipmode <> 'AIR'", "orders": "o_orderpriority <> '5-LOW'"}
MASKS: Final = {
    "lineitem": {"l_tax": "mask-to-fixed-value", "l_comment": "mask-alphanum"},
    "orders": {"o_shippriority": "mask-to-fixed-value", "o_clerk": "show-last-4"},
    "customer": {"c_name": "sha-256-global", "c_address": "mask-alphanum", "c_comment": "mask-alphanum"},
}
_REDACTED: Final = r"regexp_replace(regexp_replace({0}, '[^0-9(),.\\-@]', 'x'), '[0-9]', 'n')"
_LAST_4: Final = f"concat({_REDACTED.format('substring({0}, 1, length({0}) - 4)')}, right({{0}}, 4))"
VIEWS: Final = {
    "lineitem": {"l_tax": "CAST(0 AS DECIMAL(15, 2))", "l_comment": _REDACTED.format("l_comment")},
    "orders": {"o_shippriority": "0", "o_clerk": _LAST_4.format("o_clerk")},
    "customer": {
        "c_name": "sha2(CAST(c_name AS BINARY), 256)",
        "c_address": _REDACTED.format("c_address"),
        "c_comment": _REDACTED.format("c_comment"),
    },
}
"""Masks as whoever has no barrier would write them in views of Spark."""


def make_files(directory: Path, scale: float) -> dict[str, Path]:
    """The eight tables of TPC-H as Parquet; made once for a directory."""
    folder = directory / f"tpch-{scale:g}"
    if not folder.exists():
        tool = Path(sys.executable).parent / "tpchgen-cli"
        partial = folder.with_suffix(".partial")
        subprocess.run(
            [tool, "parquet", f"--scale-factor={scale}", f"--output-dir={partial}"],
            check=True,
            capture_output=True,
        )
        partial.rename(folder)
    return {each.stem: each for each in sorted(folder.glob("*.parquet"))}


def read_pieces(path: Path, rows: int = PIECE_ROWS) -> Iterator[pa.Table]:
    """A table in pieces of so many rows; texts as Iceberg has them."""
    whole = pq.read_table(path)
    texts = (pa.types.is_string_view, pa.types.is_large_string)
    fields = [
        field.with_type(pa.string()) if any(is_text(field.type) for is_text in texts) else field
        for field in whole.schema
    ]
    whole = whole.cast(pa.schema(fields))
    for begin in range(0, max(whole.num_rows, 1), rows):
        yield whole.slice(begin, rows)


async def make_tables(scene: QueryScene, files: dict[str, Path]) -> None:
    """All tables in the catalog."""
    for name, path in files.items():
        await scene.make_table(f"{NAMESPACE}.{name}", *read_pieces(path))


async def restrict_tables(scene: QueryScene, *, except_roles: list[str]) -> None:
    """Everybody is under the policies, but these."""
    for table, condition in FILTERS.items():
        await scene.restrict(f"{NAMESPACE}.{table}", filter=condition, **{"except-roles": except_roles})
    for table, columns in MASKS.items():
        await scene.restrict(f"{NAMESPACE}.{table}", columns=columns, **{"except-roles": except_roles})


def write_view(table: str, columns: list[str]) -> str:
    """What a view without a barrier selects from a table of the catalog `lake`."""
    shown = VIEWS.get(table, {})
    listed = ", ".join(f"{shown[each]} AS {each}" if each in shown else each for each in columns)
    where = f" WHERE {FILTERS[table]}" if table in FILTERS else ""
    return f"SELECT {listed} FROM lake.{NAMESPACE}.{table}{where}"
