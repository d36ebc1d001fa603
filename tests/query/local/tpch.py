"""A hundredth of TPC-H, made by `tpchgen-cli`, and its 22 queries."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

QUERIES = sorted((Path(__file__).parents[1] / "tpch").glob("q*.sql"))


def make_tpch(folder: Path) -> dict[str, pa.Table]:
    """The eight tables; texts as Iceberg's reader gives them."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run(
        [tool, "parquet", "--scale-factor=0.01", f"--output-dir={folder}"], check=True, capture_output=True
    )
    return {each.stem: _plain(pq.read_table(each)) for each in sorted(folder.glob("*.parquet"))}


def _plain(table: pa.Table) -> pa.Table:
    views = (pa.types.is_string_view, pa.types.is_large_string)
    fields = [
        pa.field(each.name, pa.string() if any(test(each.type) for test in views) else each.type)
        for each in table.schema
    ]
    return table.cast(pa.schema(fields))
