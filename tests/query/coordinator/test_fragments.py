"""Files as fragments: nothing twice, nothing lost, the largest first, busy workers spared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.query.catalog_access.port import PlannedFiles
from cynosure.query.coordinator.fragments import make_fragments, split_file
from cynosure.query.coordinator.scheduling import assign_largest_first
from cynosure.query.engine import WorkerInfo
from cynosure.query.scan_task import Credentials, DataFile, DeleteFile, ScanTask

BASE = ScanTask("q", "0", (), (), b"{}", (1,), ("s3://b/t",))


def a_file(name: str, size: int, deletes: tuple[int, ...] = (), format_: str = "parquet") -> DataFile:
    return DataFile(name, size, 10, format_, deletes)


def planned(
    files: list[DataFile], deletes: int = 0, offsets: tuple[tuple[int, ...], ...] = ()
) -> PlannedFiles:
    gone = tuple(DeleteFile("position", f"d{at}", 1, "parquet") for at in range(deletes))
    return PlannedFiles(tuple(files), gone, Credentials(), None, offsets)


def test_the_largest_goes_first_to_whoever_has_the_least_to_do():
    assert assign_largest_first([1, 10, 5, 4], [0, 0]) == [1, 0, 1, 1]
    # What is active counts: the busy one gets nothing until the other has as much.
    assert assign_largest_first([3, 3, 3], [9, 0]) == [1, 1, 1]
    with pytest.raises(ValueError, match="no bin"):
        assign_largest_first([1], [])


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=40),
    st.integers(10, 3_000),
    st.integers(0, 4),
)
def test_every_byte_is_in_one_fragment(sizes: list[int], split_size: int, count: int):
    files = [a_file(f"f{at}", size) for at, size in enumerate(sizes)]
    workers = [WorkerInfo(f"w{at}", is_healthy=True, active_fragments=at) for at in range(count)]
    fragments = make_fragments(BASE, planned(files), split_size=split_size, workers=workers)
    parts: dict[str, list[tuple[int, int]]] = {}
    for task in fragments:
        for each in task.files:
            parts.setdefault(each.path, []).append((each.begin, each.end or each.size_bytes))
    assert parts.keys() == {each.path for each in files}
    for file in files:
        at = 0
        for begin, end in sorted(parts[file.path]):
            assert begin == at
            assert end > begin
            at = end
        assert at == file.size_bytes
    totals = [each.total_bytes for each in fragments]
    assert totals == sorted(totals, reverse=True)
    assert len({each.fragment_id for each in fragments}) == len(fragments)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.integers(1, 900))
def test_cuts_are_where_row_groups_begin(groups: list[int], split_size: int):
    offsets, at = [], 4
    for each in groups:
        offsets.append(at)
        at += each
    parts = split_file(a_file("f", at), offsets, split_size)
    for part in parts[1:]:
        assert part.begin in offsets
    for part in parts:
        inside = [each for each in offsets if part.begin <= each < (part.end or at)]
        assert inside
        # Only a row group that is larger by itself makes a part larger.
        assert len(inside) == 1 or len(parts) == 1 or (part.end - part.begin) <= split_size
    assert sum(len([o for o in offsets if p.begin <= o < (p.end or at)]) for p in parts) == len(offsets)


def test_other_formats_are_not_split_and_fragments_have_their_deletes():
    assert split_file(a_file("f", 100, format_="orc"), (), 10) == [a_file("f", 100, format_="orc")]
    files = [a_file("a", 10, (2,)), a_file("b", 10, (0, 2)), a_file("c", 10)]
    fragments = make_fragments(BASE, planned(files, 3), split_size=1_000)
    [one] = fragments
    assert {each.path for each in one.deletes} == {"d0", "d2"}
    for file, wanted in zip(files, (["d2"], ["d0", "d2"], []), strict=True):
        found = next(each for each in one.files if each.path == file.path)
        assert [one.deletes[place].path for place in found.deletes] == wanted


def test_whole_files_where_rows_are_counted_from_metadata():
    [one] = make_fragments(BASE, planned([a_file("a", 1_000)]), split_size=10, may_split=False)
    assert (one.files[0].begin, one.files[0].end) == (0, 0)


def test_as_many_fragments_as_cores_where_there_are_files_enough():
    workers = [WorkerInfo("w0", is_healthy=True, cores=2), WorkerInfo("w1", is_healthy=True, cores=2)]
    files = [a_file(f"f{at}", 10) for at in range(8)]
    assert len(make_fragments(BASE, planned(files), split_size=1_000, workers=workers)) == 4
    assert len(make_fragments(BASE, planned(files), split_size=1_000)) == 1
    assert make_fragments(BASE, planned([]), split_size=1_000) == ()
