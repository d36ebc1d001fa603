"""What a scan holds at its peak, in a process of its own: one row group of about 155 MB.

Processes differ in what they hold before they read anything, by versions of libraries: so limits that are
tried here bound what is held more than that.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.query.scan.written import numbered

LIMIT_MIB = 512
ROWS = 1_750_000
SCRIPT = """
import json, sys
from pathlib import Path
from cynosure.query.errors import OutOfMemory
from cynosure.query.scan import governed
from cynosure.query.scan.port import Unwatched
from cynosure.query.scan_task import DataFile, Mask
from cynosure.testing.scan_kit import reference
from tests.query.scan.written import column, make_task

path, way = Path(sys.argv[1]), sys.argv[2]
rows, limit_mib, most = map(int, sys.argv[3:])
ways = []
def note(name, read):
    def noting(*given):
        found = read(*given)
        if found is not None:
            ways.append(name)
        return found
    return noting
governed.read_complete = note("complete", governed.read_complete)
governed.read_fast = (lambda *_: None) if way == "complete" else note("fast", governed.read_fast)
types = ["long"] * 8 + ["double"] * 4 + ["string"] * 4
fields = [column(at, f"c{at}", type_) for at, type_ in enumerate(types, 1)]
file = DataFile(str(path), path.stat().st_size, rows, "parquet")
row_filter = json.dumps(reference("lt", 1, most)).encode() if most else b"true"
masks = (Mask(15, "mask-alphanum"), Mask(16, "sha-256-global"))
limit = {"memory_limit_bytes": limit_mib * 2**20} if limit_mib else {}
task = make_task(path.parent, [file], fields, masks=masks, row_filter=row_filter, **limit)
def peak():
    [found] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(found) // 1024
before, given, failed = peak(), 0, ""
try:
    for batch in governed.governed_batches(task, Unwatched(task.credentials)):
        given += batch.num_rows
except OutOfMemory as error:
    failed = error.message
print(json.dumps({"ways": ways, "rows": given, "before": before, "peak": peak(), "failed": failed}))
"""


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 columns, hardly compressible, one row group."""
    chance = np.random.default_rng(5)
    types = [pa.int64()] * 8 + [pa.float64()] * 4 + [pa.string()] * 4
    schema = pa.schema([numbered(f"c{at}", type_, at) for at, type_ in enumerate(types, 1)])
    columns = [pa.array(chance.integers(0, 2**40, ROWS)) for _ in range(8)]
    columns += [pa.array(chance.random(ROWS)) for _ in range(4)]
    words = pa.array([f"{each:x}" for each in chance.integers(0, 2**30, 50_000)])
    columns += [words.take(pa.array(chance.integers(0, 50_000, ROWS))) for _ in range(4)]
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    table = pa.table(columns, schema=schema)
    pq.write_table(table, path, row_group_size=ROWS, store_schema=False, compression="zstd")
    assert pq.read_metadata(path).num_row_groups == 1
    assert 120 * 2**20 < path.stat().st_size < 200 * 2**20
    return path


def scan(file: Path, way: str, *, limit_mib: int = 0, most: int = 0) -> dict[str, Any]:
    """`most`: what rows that are shown have in their first column at most; 0: all rows are."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file), way, str(ROWS), str(limit_mib), str(most)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("most", [0, 2**39])
@pytest.mark.parametrize("way", ["fast", "complete"])
def test_the_peak_of_a_scan_of_one_large_row_group(way: str, most: int, large_file: Path) -> None:
    done = scan(large_file, way, most=most)
    assert done["ways"] == [way]
    assert done["rows"] == ROWS if not most else 0.4 * ROWS < done["rows"] < 0.6 * ROWS
    assert done["peak"] <= LIMIT_MIB


def test_a_row_group_that_the_limit_does_not_hold_is_read_in_pieces(large_file: Path) -> None:
    done = scan(large_file, "any", limit_mib=128)
    assert done["ways"] == ["complete"]
    assert done["rows"] == ROWS
    assert done["peak"] - done["before"] <= 128


def test_a_limit_that_is_too_low_for_pieces_is_a_clear_error_before_anything_is_read(
    large_file: Path,
) -> None:
    done = scan(large_file, "any", limit_mib=32)
    assert done["failed"] == "A scan needs more memory than it may have"
    assert done["rows"] == 0
    assert done["peak"] - done["before"] <= 32
