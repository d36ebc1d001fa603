"""The files of a snapshot, counted as if one by one."""

import random
from statistics import median_low

import pytest

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.statistics import FileStatistics, FileTotals, Spread, skew, spread
from cynosure.iceberg.manifests.write_manifest import write_manifest
from tests.iceberg.manifests.samples import make_kind


def manifest(*entries: tuple[Status, ContentFile], path: str = "m") -> Manifest:
    is_deletes = any(file.content is not Content.DATA for _, file in entries)
    kind = make_kind(["double"], version=3, content=ManifestContent(is_deletes))
    rows = [Entry(status, 1, 5, 5, file) for status, file in entries]
    data, listed = write_manifest(kind, rows, path=path, snapshot_id=1)
    return read_manifest(data, listed)


def file(path: str, value: float | None = 0.0, **more: object) -> ContentFile:
    given = {"format": "parquet", "record_count": 10, "file_size_bytes": 100, **more}
    return ContentFile(path=path, spec_id=3, partition=(value,), **given)  # type: ignore[arg-type]


def test_live_files_are_counted_and_removed_ones_are_not():
    counted = FileStatistics(small_below_bytes=100)
    counted.add(
        manifest(
            (Status.ADDED, file("a", record_count=3, file_size_bytes=99)),
            (Status.EXISTING, file("b", record_count=4, file_size_bytes=100)),
            (Status.DELETED, file("c", record_count=5, file_size_bytes=1)),
        )
    )
    counted.add(manifest((Status.ADDED, file("d", 1.0, record_count=5, file_size_bytes=300))))

    assert counted.data == FileTotals(3, 12, 499)
    assert counted.small == FileTotals(1, 3, 99)
    assert counted.sizes() == Spread(99, 100, 300, 300)
    assert [one.totals for one in counted.largest(2)] == [FileTotals(1, 5, 300), FileTotals(2, 7, 199)]
    assert [one.values for one in counted.largest(1)] == [(1.0,)]
    assert (counted.deleted_rows, counted.delete_ratio, counted.files_with_deletes) == (0, 0.0, 0)


def test_one_partition_in_several_manifests_is_one_also_when_it_is_not_a_number():
    counted = FileStatistics(small_below_bytes=1)
    nan = float("nan")
    counted.add(manifest((Status.ADDED, file("a", nan)), (Status.ADDED, file("b", None))))
    counted.add(manifest((Status.ADDED, file("c", nan)), (Status.ADDED, file("d", 0.0))))
    counted.add(manifest((Status.ADDED, file("e", -0.0))))

    assert sorted(one.totals.files for one in counted.partitions()) == [1, 1, 1, 2]


def test_deletes_are_counted_by_kind_and_the_files_they_are_about():
    deletes = manifest(
        (Status.ADDED, file("p", content=Content.POSITION_DELETES, record_count=2)),
        (Status.ADDED, file("e", content=Content.EQUALITY_DELETES, record_count=7, equality_ids=(1,))),
        (
            Status.ADDED,
            file(
                "v",
                1.0,
                content=Content.POSITION_DELETES,
                format="puffin",
                record_count=3,
                file_size_bytes=1_000_000,
                referenced_data_file="c",
                content_offset=4,
                content_size_bytes=40,
            ),
        ),
        (Status.DELETED, file("gone", content=Content.POSITION_DELETES, record_count=100)),
    )
    counted = FileStatistics([deletes], small_below_bytes=1)
    counted.add(
        manifest(
            (Status.ADDED, file("a")),
            (Status.ADDED, file("b", 1.0)),
            (Status.ADDED, file("c", 1.0, record_count=30)),
            (Status.DELETED, file("removed")),
        )
    )

    assert counted.deletes.position == FileTotals(1, 2, 100)
    assert counted.deletes.equality == FileTotals(1, 7, 100)
    assert counted.deletes.deletion_vectors == FileTotals(1, 3, 40)
    assert counted.deleted_rows == 5
    assert counted.delete_ratio == 5 / 50
    assert counted.files_with_deletes == 2, "a by its partition, c by its vector"


def test_delete_files_among_data_files_are_refused():
    deletes = manifest((Status.ADDED, file("p", content=Content.POSITION_DELETES)), path="named")

    with pytest.raises(InvalidManifest) as error:
        FileStatistics(small_below_bytes=1).add(deletes)
    assert error.value.field == "named"


def test_spreads_are_those_of_sorted_numbers():
    rng = random.Random(7)
    for count in range(1, 60):
        numbers = [rng.randrange(20) for _ in range(count)]
        found = spread(numbers)
        assert found is not None
        assert (found.min, found.median, found.max) == (min(numbers), median_low(numbers), max(numbers))
        assert sum(one <= found.p90 for one in numbers) >= 0.9 * count
        assert sum(one < found.p90 for one in numbers) < 0.9 * count
    assert spread([]) is None


def test_skew_is_the_largest_over_the_median():
    assert skew(spread([1, 4, 10])) == 2.5
    assert skew(spread([0, 0, 10])) is None
    assert skew(None) is None
