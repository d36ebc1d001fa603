"""Memory and CPU of one governed scan, as a worker does it: lineitem's 16 columns in a single row group.

One operation is one row that comes out. The file has about 155 MB. Each scan is a process of its own.

    fast       DataFusion decodes
    complete   PyArrow does: the way for all that the fast one is not made for, or has no memory for
    …, plain   all rows and values; the others are under a row filter and two masks

    ./dev bench governed_scan [--set rows=4580000] [--set directory=DIR]

A maintainer must not break: the peak is that of the whole process, with all that it imports.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
import pyarrow as pa
from msgspec import structs

from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, median
from benchmarks.results_file import ROOT, Result
from benchmarks.scan_process import WAYS, Scanned
from benchmarks.tpch_tables import MASKS, make_files, read_pieces
from cynosure.query.scan_task import encode_task
from cynosure.testing.scan_kit import task_from_arrow

MOST_MIB: Final = 512
_SHIPMODE: Final = 15
_ROWS_OF_SCALE: Final = 6_000_000


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """Both ways over one file, with policies and without."""
    rows, directory = options.get("rows", 4_580_000), options.get("directory", "")
    with TemporaryDirectory(prefix="cynosure-bench-") as made:
        governed, plain = Path(made) / "governed", Path(made) / "plain"
        size = await asyncio.to_thread(_write, governed, plain, Path(directory or made), rows)
        yield {
            f"{way}{said}": partial(_scan, way, task, size)
            for way in WAYS
            for said, task in (("", governed), (", plain", plain))
        }


def _write(governed: Path, plain: Path, directory: Path, rows: int) -> int:
    """Two tasks over one file, and its size."""
    scale = max(1.0, rows / _ROWS_OF_SCALE) if rows > _ROWS_OF_SCALE // 100 else 0.01
    table: pa.Table = next(read_pieces(make_files(directory, scale)["lineitem"], rows))
    condition = {"type": "not-eq", "term": {"type": "reference", "id": _SHIPMODE}, "value": "AIR"}
    task = task_from_arrow(
        governed.parent / "data",
        table,
        row_filter=condition,
        masks=MASKS["lineitem"],  # type: ignore[arg-type]  # they are
        row_group_rows=rows,
    )
    governed.write_bytes(encode_task(task))
    plain.write_bytes(encode_task(structs.replace(task, row_filter=b"true", masks=())))
    return task.total_bytes


async def _scan(way: str, task: Path, size: int, meter: Meter) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.scan_process", str(task), way),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    with meter.measuring():
        answer, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"bench: the scan ended with {process.returncode}")
    told = msgspec.json.decode(answer, type=Scanned)
    meter.count(operations=told.rows, rows=told.rows, bytes=told.bytes)
    meter.note("CPU s", told.cpu_s)
    meter.note("file MB", size / 1e6)
    meter.note("MiB before", told.before_mib)
    meter.note("peak MiB", told.peak_mib)


def promises(result: Result) -> list[Promise]:
    """The peak of each."""
    return [
        Promise(
            f"{way}: peak of a scan, MiB", "≤", MOST_MIB, median(result, way, lambda e: e.notes["peak MiB"])
        )
        for way in result.candidates
    ]
