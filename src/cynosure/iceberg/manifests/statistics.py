"""The live files of a snapshot, counted and measured: how large, how many small ones, how much is deleted.

Manifests are added one after the other and need not stay in memory; what stays is eight bytes for each data
file, and a few numbers for each partition.

A maintainer must not break: whole columns are looked at, not files one by one, except for the question which
files have deletes, which is asked only where there are any.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import compress
from typing import Any, Final

from msgspec import Struct

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.delete_index import DeleteIndex, partition_keys
from cynosure.iceberg.manifests.manifest import Manifest


class FileTotals(Struct, rename="kebab"):
    """Files of one kind together."""

    files: int = 0
    records: int = 0
    bytes: int = 0

    def add(self, files: int, records: int, size_bytes: int) -> None:
        """Count some more."""
        self.files += files
        self.records += records
        self.bytes += size_bytes


class Spread(Struct, frozen=True, rename="kebab"):
    """How numbers are distributed. Each is one of the numbers: of two in the middle, the smaller."""

    min: int
    median: int
    p90: int
    max: int


class PartitionTotals(Struct, rename="kebab"):
    """The data files of one partition."""

    spec_id: int
    values: tuple[Any, ...]
    """In the order of the spec's fields."""
    totals: FileTotals


class DeleteTotals(Struct, frozen=True, rename="kebab"):
    """Delete files by kind. Their records are rows that they delete, or values by which they do."""

    position: FileTotals
    equality: FileTotals
    deletion_vectors: FileTotals
    """Each vector counts as a file; its bytes are those of its bitmap, not of the file it shares."""


class FileStatistics:
    """What the manifests that were added so far hold. Deletes are known from the beginning."""

    def __init__(
        self,
        deletes: Iterable[Manifest] = (),
        *,
        small_below_bytes: int,
        unpartitioned_specs: frozenset[int] = frozenset(),
    ) -> None:
        """A file is small below so many bytes. `unpartitioned_specs`: as for `DeleteIndex`."""
        self._small_below = small_below_bytes
        self._sizes = array("q")
        self._partitions: dict[tuple[Any, ...], PartitionTotals] = {}
        manifests = tuple(deletes)
        self._index: Final = DeleteIndex(manifests, unpartitioned_specs=unpartitioned_specs)
        self.data: Final = FileTotals()
        self.small: Final = FileTotals()
        self.deletes: Final = DeleteTotals(FileTotals(), FileTotals(), FileTotals())
        self.files_with_deletes = 0
        """Data files that a delete file may apply to."""
        for manifest in manifests:
            self._add_deletes(manifest)

    def add(self, manifest: Manifest) -> None:
        """Count the data files of a manifest."""
        if manifest.is_deletes:
            raise InvalidManifest("A manifest of data files lists delete files", path=manifest.path)
        live = [status != Status.DELETED for status in manifest.statuses]
        sizes = _pick(manifest.file_sizes, live)
        records = _pick(manifest.record_counts, live)
        self._sizes.extend(sizes)
        self.data.add(len(sizes), sum(records), sum(sizes))
        small = [size < self._small_below for size in sizes]
        self.small.add(sum(small), sum(compress(records, small)), sum(compress(sizes, small)))
        self._add_partitions(manifest, _pick(manifest.partition_numbers, live), records, sizes)
        if self._index:
            of_manifest = self._index.for_manifest(manifest)
            rows = compress(range(len(manifest)), live)
            self.files_with_deletes += sum(1 for row in rows if of_manifest.find(row))

    def _add_partitions(
        self, manifest: Manifest, numbers: list[int], records: list[int], sizes: list[int]
    ) -> None:
        files: Counter[int] = Counter(numbers)
        if len(files) == 1:
            sums = {numbers[0]: (sum(records), sum(sizes))}
        else:
            sums = {}
            for number, count, size in zip(numbers, records, sizes, strict=True):
                known = sums.get(number, (0, 0))
                sums[number] = (known[0] + count, known[1] + size)
        keys = partition_keys(manifest)
        for number, (count, size) in sums.items():
            key = keys[number]
            partition = self._partitions.get(key)
            if partition is None:
                values = manifest.partitions.get(number) if manifest.partitions.count else ()
                partition = PartitionTotals(manifest.spec_id, values, FileTotals())
                self._partitions[key] = partition
            partition.totals.add(files[number], count, size)

    def _add_deletes(self, manifest: Manifest) -> None:
        for row, status in enumerate(manifest.statuses):
            if status == Status.DELETED:
                continue
            size = manifest.file_sizes[row] or 0
            if manifest.contents[row] == Content.EQUALITY_DELETES:
                kind = self.deletes.equality
            elif manifest.formats[row] == "puffin":
                kind = self.deletes.deletion_vectors
                size = manifest.content_sizes[row] or 0
            else:
                kind = self.deletes.position
            kind.add(1, manifest.record_counts[row] or 0, size)

    @property
    def deleted_rows(self) -> int:
        """Rows that delete files name by position. Of equality deletes nobody knows without reading data."""
        return self.deletes.position.records + self.deletes.deletion_vectors.records

    @property
    def delete_ratio(self) -> float:
        """Rows deleted by position, of all rows in data files."""
        return self.deleted_rows / self.data.records if self.data.records else 0.0

    def sizes(self) -> Spread | None:
        """Of the data files; None when there are none."""
        return spread(self._sizes)

    def partitions(self) -> Sequence[PartitionTotals]:
        """All partitions that have data files."""
        return tuple(self._partitions.values())

    def largest(self, count: int) -> list[PartitionTotals]:
        """The partitions with the most bytes, the largest first."""
        return nlargest(
            count, self._partitions.values(), key=lambda one: (one.totals.bytes, one.totals.files)
        )


def spread(numbers: Iterable[int]) -> Spread | None:
    """How numbers are distributed, None of none."""
    ordered = sorted(numbers)
    if not ordered:
        return None
    last = len(ordered) - 1
    # The rank of the p90: nine of ten are not larger.
    return Spread(ordered[0], ordered[last // 2], ordered[-(-9 * len(ordered) // 10) - 1], ordered[last])


def skew(numbers: Spread | None) -> float | None:
    """How many times the median the largest is; None when the median is nothing."""
    return None if numbers is None or not numbers.median else round(numbers.max / numbers.median, 3)


def _pick(column: Iterable[int | None], live: list[bool]) -> list[int]:
    return [value or 0 for value in compress(column, live)]
