"""A scan that works is seen to: also where no row passes, and while deletes are read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from cynosure.query.errors import QueryCancelled
from cynosure.query.scan.governed import governed_batches
from cynosure.query.scan.port import ScanProgress, Unwatched
from cynosure.query.scan_task import Credentials, DeleteFile, ScanTask
from cynosure.testing.scan_kit import reference, task_from_arrow
from tests.query.scan.written import numbered, write_equality, write_positions

GROUPS = 20
ROWS = 500
"""Of a row group."""
TABLE = pa.table(
    {
        "id": range(GROUPS * ROWS),
        # The same in every row group: statistics rule none of them out.
        "turn": [each % ROWS * 2 for each in range(GROUPS * ROWS)],
        "text": [f"text {each}" for each in range(GROUPS * ROWS)],
    }
)


class Counting(Unwatched):
    """Counts, and stops after so many."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__(Credentials())
        self.count = 0
        self._most = most

    def advance(self, progress: ScanProgress) -> None:
        self.count += 1
        if self.count == self._most:
            raise QueryCancelled("Nobody wants it")


def rows_of(task: ScanTask, watch: Counting) -> int:
    return sum(each.num_rows for each in governed_batches(task, watch))


def nothing_passes(directory: Path, **others: Any) -> ScanTask:
    return task_from_arrow(
        directory, TABLE, row_group_rows=ROWS, row_filter=reference("eq", 2, 501), **others
    )


@pytest.mark.usefixtures("only_fast")
def test_row_groups_of_which_no_row_passes_are_progress_on_the_fast_path(tmp_path: Path) -> None:
    watch = Counting()
    assert rows_of(nothing_passes(tmp_path), watch) == 0
    assert watch.count >= GROUPS


def test_row_groups_of_which_no_row_passes_are_progress_on_the_complete_path(
    tmp_path: Path, without_fast: Callable[[], Any]
) -> None:
    watch = Counting()
    with without_fast():
        assert rows_of(nothing_passes(tmp_path), watch) == 0
    assert watch.count >= GROUPS


def test_row_groups_that_statistics_rule_out_are_progress(
    tmp_path: Path, without_fast: Callable[[], Any]
) -> None:
    task = replace(
        nothing_passes(tmp_path), row_filter=b'{"type":"lt","term":{"type":"reference","id":1},"value":0}'
    )
    watch = Counting()
    with without_fast():
        assert rows_of(task, watch) == 0
    assert watch.count >= GROUPS


@pytest.mark.parametrize("way", ["fast", "complete"])
def test_a_scan_of_which_no_row_passes_can_be_stopped(
    tmp_path: Path, way: str, request: pytest.FixtureRequest
) -> None:
    task, watch = nothing_passes(tmp_path), Counting(most=3)
    if way == "fast":
        request.getfixturevalue("only_fast")
        with pytest.raises(QueryCancelled):
            rows_of(task, watch)
    else:
        with request.getfixturevalue("without_fast")(), pytest.raises(QueryCancelled):
            rows_of(task, watch)
    assert watch.count == 3


@pytest.mark.usefixtures("only_fast")
@pytest.mark.parametrize("borders", [(0, 7), (7, 13), (13, 20)])
def test_parts_of_a_file_have_their_own_row_groups_in_fine_ranges(
    tmp_path: Path, borders: Sequence[int]
) -> None:
    task = task_from_arrow(tmp_path, TABLE, row_group_rows=ROWS)
    begins = [*_begins(task.files[0].path), task.files[0].size_bytes]
    part = replace(task.files[0], begin=begins[borders[0]], end=begins[borders[1]])
    watch = Counting()
    assert rows_of(replace(task, files=(part,)), watch) == (borders[1] - borders[0]) * ROWS
    assert watch.count > (borders[1] - borders[0]) // 2


def _begins(path: str) -> list[int]:
    about = pq.read_metadata(path)
    columns = [about.row_group(each).column(0) for each in range(about.num_row_groups)]
    return [
        min(each.dictionary_page_offset or each.data_page_offset, each.data_page_offset) for each in columns
    ]


@pytest.mark.parametrize("kind", ["position", "equality"])
def test_reading_deletes_is_progress(tmp_path: Path, kind: str) -> None:
    task = task_from_arrow(tmp_path, TABLE, row_group_rows=ROWS)
    watch = Counting()
    plain = rows_of(task, watch)
    without = watch.count
    made = _write_deletes(tmp_path / "deletes", kind, task.files[0].path)
    deleting = replace(task, files=(replace(task.files[0], deletes=(0,)),), deletes=(made,))
    watch = Counting()
    assert rows_of(deleting, watch) < plain
    # 200,000 rows of deletes, read at most 65,536 at a time.
    assert watch.count >= without + 3
    with pytest.raises(QueryCancelled):
        rows_of(deleting, Counting(most=1))


def _write_deletes(path: Path, kind: str, data: str) -> DeleteFile:
    places = [each % 5_000 for each in range(200_000)]
    if kind == "position":
        return write_positions(path, [(data, each) for each in places])
    return write_equality(path, pa.table([places], schema=pa.schema([numbered("id", pa.int64(), 1)])), [1])
