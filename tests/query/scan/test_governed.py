"""The scan as a whole: what it reads, what it refuses to, how it is watched and ended (I107)."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from cynosure.query.errors import NotReadable, OutOfMemory, QueryCancelled
from cynosure.query.scan import governed
from cynosure.query.scan.governed import governed_batches, output_schema
from cynosure.query.scan.port import ScanProgress, Unwatched
from cynosure.query.scan_task import Credentials, DataFile, ScanTask
from cynosure.storage.errors import StorageRefused
from cynosure.testing.scan_kit import read_rows, read_table, reference, task_from_arrow
from tests.query.scan.written import column, make_task

TABLE = pa.table({"id": pa.array(range(1_000), pa.int64()), "name": [f"n{each}" for each in range(1_000)]})


def batches_of(task: ScanTask) -> list[pa.RecordBatch]:
    return list(governed_batches(task, Unwatched(task.credentials)))


@pytest.fixture(params=["fast", "complete"], autouse=True)
def path_taken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "complete":
        monkeypatch.setattr(governed, "read_fast", lambda *_: None)
    return str(request.param)


# Sizes.


@pytest.mark.parametrize("rows", [1, 7, 333, 16_384])
def test_batches_are_no_larger_than_asked(rows: int, tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, files=3, batch_rows=rows, row_group_rows=100)
    found = batches_of(task)
    assert all(0 < each.num_rows <= rows for each in found)
    assert all(each.schema == output_schema(task) for each in found)
    assert pa.Table.from_batches(found) == TABLE


def test_small_batches_are_gathered(tmp_path: Path) -> None:
    task = task_from_arrow(
        tmp_path, TABLE, row_filter=reference("in", 1, [1, 300, 600, 900]), row_group_rows=50
    )
    assert [each.num_rows for each in batches_of(task)] == [4]


def test_rows_without_columns(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, columns=[], files=2, batch_rows=300)
    found = batches_of(task)
    assert [each.num_columns for each in found] == [0] * len(found)
    assert sum(each.num_rows for each in found) == 1_000
    assert all(each.num_rows <= 300 for each in found)
    filtered = replace(task, row_filter=msgspec.json.encode(reference("lt", 1, 10)))
    assert sum(each.num_rows for each in batches_of(filtered)) == 10


def test_counting_reads_nothing_unless_something_decides_on_rows(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, columns=[])
    Path(task.files[0].path).unlink()
    assert sum(each.num_rows for each in batches_of(task)) == 1_000
    for other in (
        replace(task, row_filter=msgspec.json.encode(reference("not-null", 1))),
        replace(task, predicates=msgspec.json.encode(reference("not-null", 1))),
        replace(task, files=(replace(task.files[0], begin=0, end=10),)),
        replace(task, columns=(1,)),
    ):
        with pytest.raises(NotReadable, match="gone"):
            batches_of(other)


def test_false_reads_nothing(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, row_filter=False)
    Path(task.files[0].path).unlink()
    assert batches_of(task) == []


def test_no_files(tmp_path: Path) -> None:
    task = replace(task_from_arrow(tmp_path, TABLE), files=())
    assert batches_of(task) == []
    assert output_schema(task).names == ["id", "name"]


def test_wide_rows_are_read_few_at_once(tmp_path: Path) -> None:
    wide = pa.table({"id": pa.array(range(64), pa.int64()), "text": ["x" * 300_000] * 64})
    task = task_from_arrow(tmp_path, wide, memory_limit_bytes=16 * 2**20)
    found = batches_of(task)
    assert sum(each.num_rows for each in found) == 64
    assert max(each.nbytes for each in found) < 8 * 2**20


def test_one_row_that_is_too_large(tmp_path: Path) -> None:
    wide = pa.table({"text": ["x" * 3_000_000]})
    with pytest.raises(OutOfMemory, match="memory_limit"):
        batches_of(task_from_arrow(tmp_path, wide, memory_limit_bytes=2**20))


# Watching.


class Watch(Unwatched):
    def __init__(self, stop_after: int = 10**9) -> None:
        super().__init__(Credentials())
        self.seen: list[ScanProgress] = []
        self.asked = 0
        self._stop_after = stop_after

    def credentials(self) -> Credentials:
        self.asked += 1
        return Credentials(number=self.asked)

    def advance(self, progress: ScanProgress) -> None:
        self.seen.append(progress)
        if len(self.seen) >= self._stop_after:
            raise QueryCancelled("Nobody wants it")


def test_progress_and_credentials_of_every_file(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, files=4)
    watch = Watch()
    assert sum(each.num_rows for each in governed_batches(task, watch)) == 1_000
    assert watch.asked == 4
    last = watch.seen[-1]
    assert (last.files, last.rows, last.bytes) == (4, 1_000, task.total_bytes)
    assert [each.rows for each in watch.seen] == sorted(each.rows for each in watch.seen)


def test_whoever_watches_can_stop_it(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, files=4, row_filter=reference("lt", 1, 0))
    with pytest.raises(QueryCancelled):
        list(governed_batches(task, Watch(stop_after=2)))


def test_closing_ends_it_and_leaves_no_file_open(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, batch_rows=10, row_group_rows=10)
    before = set(os.listdir("/proc/self/fd"))
    batches: Any = governed_batches(task, Unwatched(task.credentials))
    next(batches)
    batches.close()
    assert not [
        each
        for each in set(os.listdir("/proc/self/fd")) - before
        if os.path.exists(f"/proc/self/fd/{each}") and str(tmp_path) in os.readlink(f"/proc/self/fd/{each}")
    ]


# Places.


def test_nothing_outside_of_the_places_is_read(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path / "other", TABLE)
    (tmp_path / "mine").mkdir()
    for places in ((str(tmp_path / "mine"),), ("s3://bucket/other",)):
        with pytest.raises(NotReadable, match="outside") as failed:
            batches_of(replace(task, places=places, file_roots=(str(tmp_path),)))
        assert str(tmp_path) not in str(failed.value)
    with pytest.raises(StorageRefused, match="file_locations") as refused:
        batches_of(replace(task, file_roots=(str(tmp_path / "mine"),)))
    assert str(tmp_path) not in str(refused.value)
    counted = replace(task, columns=(), places=(str(tmp_path / "mine"),), file_roots=(str(tmp_path),))
    with pytest.raises(NotReadable, match="outside"):
        batches_of(counted)


@pytest.mark.parametrize("path", ["{}/a/../other/part-0.parquet", "ftp://x/y", "", "{}/a%2f..", "{}"])
def test_paths_with_two_meanings_are_refused(path: str, tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    with pytest.raises(NotReadable):
        batches_of(replace(task, files=(replace(task.files[0], path=path.format(tmp_path)),)))


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = task_from_arrow(tmp_path / "secret", TABLE)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "link.parquet").symlink_to(secret.files[0].path)
    (mine / "folder").symlink_to(tmp_path / "secret")
    for path in ("link.parquet", "folder/part-0.parquet"):
        file = replace(secret.files[0], path=str(mine / path))
        task = replace(secret, files=(file,), places=(str(mine),), file_roots=(str(tmp_path),))
        with pytest.raises(StorageRefused) as failed:
            batches_of(task)
        assert str(tmp_path) not in str(failed.value)


# Files that are not what they must be.


def damaged(path: Path, size: int) -> Iterator[tuple[str, bytes]]:
    whole = path.read_bytes()
    yield "empty", b""
    yield "cut", whole[: size // 2]
    yield "no footer", whole[:-8]
    yield "other", b"x" * size
    yield "magic", whole[:-4] + b"PARX"
    yield "footer", whole[:-100] + bytes(each ^ 0xFF for each in whole[-100:-8]) + whole[-8:]


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    path = Path(task.files[0].path)
    for name, content in list(damaged(path, path.stat().st_size)):
        path.write_bytes(content)
        with pytest.raises(NotReadable) as failed:
            batches_of(task)
        assert str(tmp_path) not in str(failed.value), name


def test_damaged_pages_are_errors_and_never_fewer_rows(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, row_group_rows=100)
    path = Path(task.files[0].path)
    whole = path.read_bytes()
    for at in range(4, len(whole) - 3_000, 2_999):
        path.write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
        rows = 0
        with suppress(NotReadable):
            for batch in governed_batches(task, Unwatched(task.credentials)):
                rows += batch.num_rows
            # Values may have changed where no checksum says so, but no row is lost.
            assert rows == 1_000


def test_values_that_changed_are_errors_where_there_are_checksums(tmp_path: Path, without_fast: Any) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    path = Path(task.files[0].path)
    pq.write_table(pq.read_table(path), path, compression="none", write_page_checksum=True)
    whole = path.read_bytes()
    task = replace(task, files=(replace(task.files[0], size_bytes=len(whole)),))
    with without_fast():
        assert sum(each.num_rows for each in batches_of(task)) == 1_000
        # In the middle of the first page's values, which without a checksum are as good as others.
        path.write_bytes(whole[:200] + bytes(each ^ 1 for each in whole[200:208]) + whole[208:])
        with pytest.raises(NotReadable):
            batches_of(task)


def test_files_that_lie_about_their_rows(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    for count in (999, 1_001):
        with pytest.raises(NotReadable, match="number of rows"):
            batches_of(replace(task, files=(replace(task.files[0], record_count=count),)))


@pytest.mark.parametrize("more", [-700, -1, 1, 5_000])
def test_files_that_lie_about_their_size(more: int, tmp_path: Path) -> None:
    """Parts of a file end where the table says that it ends: what begins behind would be in none of them."""
    task = task_from_arrow(tmp_path, TABLE, row_group_rows=100, row_filter=reference("eq", 1, 990))
    [file] = task.files
    said = file.size_bytes + more
    for part in (replace(file, size_bytes=said), replace(file, size_bytes=said, begin=0, end=said)):
        with pytest.raises(NotReadable, match="another size"):
            batches_of(replace(task, files=(part,)))


@pytest.mark.parametrize("format_", ["orc", "avro", "puffin", ""])
def test_other_formats_are_named(format_: str, tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE, columns=[])
    with pytest.raises(NotReadable, match="format") as failed:
        batches_of(replace(task, files=(replace(task.files[0], format=format_),)))
    assert failed.value.details["format"] == format_


def test_encrypted_files_are_refused(tmp_path: Path) -> None:
    # The magic of a file with an encrypted footer.
    content = b"PARE" + b"\0" * 100 + b"\x20\0\0\0PARE"
    (tmp_path / "f").write_bytes(content)
    file = DataFile(str(tmp_path / "f"), len(content), 1, "parquet")
    with pytest.raises(NotReadable, match="encrypted"):
        batches_of(make_task(tmp_path, [file], [column(1, "id", "long")]))


def test_text_that_is_no_text(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    )
    task = task_from_arrow(tmp_path, pa.table({"text": broken}))
    with pytest.raises(NotReadable, match="cannot be read"):
        batches_of(task)


def test_an_empty_file(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE.slice(0, 0))
    assert read_rows(task) == []
    assert pq.read_metadata(task.files[0].path).num_rows == 0


# Filters that are not understood.


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "not", "child": reference("eq", 1, 5)},
        reference("eq", 99, 5),
        reference("eq", 1, "text"),
        {"type": "eq", "term": {"type": "reference", "id": 1}},
        {"type": "in-mapping", "term": {"type": "reference", "id": 1}, "mapping": 0},
        {"type": "eq", "term": {"type": "transform", "transform": "bucket[4]", "term": "id"}, "value": 1},
        [],
        "secret-constant",
    ],
    ids=str,
)
def test_a_row_filter_that_is_not_understood_hides_everything(wrong: Any, tmp_path: Path) -> None:
    task = replace(task_from_arrow(tmp_path, TABLE), row_filter=msgspec.json.encode(wrong))
    with pytest.raises(NotReadable) as failed:
        batches_of(task)
    assert "secret" not in str(failed.value)


def test_predicates_that_are_not_understood_are_left_to_others(tmp_path: Path) -> None:
    wrong = msgspec.json.encode({"type": "not", "child": reference("eq", 1, 5)})
    task = replace(task_from_arrow(tmp_path, TABLE), predicates=wrong)
    assert read_table(task).num_rows == 1_000


def test_columns_that_the_schema_does_not_have(tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    with pytest.raises(NotReadable, match="not in the table"):
        batches_of(replace(task, columns=(1, 77)))
    with pytest.raises(NotReadable, match="schema"):
        batches_of(replace(task, schema=b"{}"))
