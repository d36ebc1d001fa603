"""What planning left of the filters for a file: it saves reading, and decides on no row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import open_parquet
from cynosure.query.scan.prepared import prepare
from cynosure.query.scan.row_groups import GroupTest
from cynosure.query.scan.shape import find_columns
from cynosure.query.scan_task import ScanTask
from cynosure.testing.scan_kit import read_rows, reference
from tests.query.scan.oracle import both, either
from tests.query.scan.written import column, make_task, numbered, write

FIELDS = [column(1, "id", "long"), column(2, "place", "string")]
FILTER = either(
    both(reference("eq", 2, "here"), reference("gt-eq", 1, 200)),
    both(reference("eq", 2, "there"), reference("lt", 1, 100)),
)
RESIDUAL = reference("gt-eq", 1, 200)
"""Of a file in the partition `here`."""


def make(directory: Path, residual: Any, row_filter: Any = FILTER) -> ScanTask:
    """Three row groups of 100 rows, of one partition whose column the file does not have."""
    table = pa.table([range(300)], schema=pa.schema([numbered("id", pa.int64(), 1)]))
    file = write(directory / "file.parquet", table, row_group_size=100)
    file = replace(file, constants={2: "here"}, residual=msgspec.json.encode(residual))
    return make_task(directory, [file], FIELDS, row_filter=msgspec.json.encode(row_filter))


def find_read(task: ScanTask) -> list[int]:
    """The row groups that are not skipped."""
    prepared, [file] = prepare(task), task.files
    with open_parquet(TaskFiles(task), file.path, file.size_bytes, file.record_count) as parquet:
        columns = find_columns(prepared.schema.fields, parquet.schema, b"", file.constants)
        test = GroupTest(prepared, file, columns, parquet)
        return [each.number for each in parquet.find_groups(file) if test.can_pass(each)]


@pytest.fixture(params=["fast", "complete"])
def rows(request: pytest.FixtureRequest, without_fast: Callable[[], Any]) -> Callable[[ScanTask], list[int]]:
    def read(task: ScanTask) -> list[int]:
        if request.param == "fast":
            return [row["id"] for row in read_rows(task)]
        with without_fast():
            return [row["id"] for row in read_rows(task)]

    return read


def test_a_residual_skips_row_groups_that_the_filter_alone_cannot(
    tmp_path: Path, rows: Callable[[ScanTask], list[int]]
) -> None:
    assert find_read(make(tmp_path, residual=True)) == [0, 2]
    task = make(tmp_path, RESIDUAL)
    assert find_read(task) == [2]
    assert rows(task) == list(range(200, 300))


@pytest.mark.parametrize(
    "residual", [True, reference("gt-eq", 1, 0), both(RESIDUAL, reference("lt", 1, 999))]
)
def test_a_residual_shows_no_row_that_the_filter_hides(
    tmp_path: Path, residual: Any, rows: Callable[[ScanTask], list[int]]
) -> None:
    assert rows(make(tmp_path, residual)) == list(range(200, 300))


@pytest.mark.parametrize(
    "residual", [reference("eq", 99, 1), reference("eq", 1, "text"), {"type": "unheard-of"}, None]
)
def test_a_residual_that_is_not_understood_says_nothing(
    tmp_path: Path, residual: Any, rows: Callable[[ScanTask], list[int]]
) -> None:
    task = make(tmp_path, residual)
    assert find_read(task) == [0, 2]
    assert rows(task) == list(range(200, 300))


def test_a_residual_that_nothing_passes_reads_nothing(
    tmp_path: Path, rows: Callable[[ScanTask], list[int]]
) -> None:
    task = make(tmp_path, residual=False)
    assert find_read(task) == []
    assert rows(task) == []
