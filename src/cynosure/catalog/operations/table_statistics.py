"""Count the files of a table at a snapshot: sizes, small files, deletes, manifests, partitions.

A maintainer must not break: manifests are read and counted some at a time, so memory does not grow with the
table. Who may not read data is told nothing that is in it: partitions without their values.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.content_file_json import partition_json
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.statistics import (
    DeleteTotals,
    FileStatistics,
    FileTotals,
    PartitionTotals,
    Spread,
    skew,
    spread,
)
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.partitioning import partition_types
from cynosure.iceberg.properties import get_int
from cynosure.iceberg.snapshots import Snapshot

MAX_PARTITIONS: Final = 1_000
TARGET_FILE: Final = ("write.target-file-size-bytes", 512 * 2**20)
"""How large engines make data files: the property, and what they take without it."""
TARGET_MANIFEST: Final = ("commit.manifest.target-size-bytes", 8 * 2**20)
_WITH_VALUES: Final = (ops.TABLE_STATISTICS_WITH_VALUES, ops.TABLE_STATISTICS)


class StatisticsOf(Struct, frozen=True):
    """Which statistics are wanted."""

    snapshot_id: int | None = None
    ref: str | None = None
    """A branch or tag. With neither, the current snapshot."""
    partitions: int = 10
    """How many of the largest partitions are named."""


class SmallFiles(Struct, frozen=True, rename="kebab"):
    """Data files that a compaction would look at: below three quarters of what engines aim at."""

    files: int
    bytes: int
    ratio: float
    """Of all data files."""
    below_bytes: int
    target_bytes: int


class Deletes(Struct, frozen=True, rename="kebab"):
    """What is deleted by delete files."""

    files: DeleteTotals
    deleted_rows: int
    """By position; what equality deletes delete, only the data tells."""
    ratio: float
    """Rows deleted by position, of all rows in data files."""
    files_with_deletes: int
    """Data files that a reader has to read with a delete file."""


class Manifests(Struct, frozen=True, rename="kebab"):
    """The manifests of the snapshot."""

    data: int
    deletes: int
    bytes: int
    small: int
    """Below three quarters of the size at which engines merge them."""
    small_below_bytes: int


class PartitionSpread(Struct, frozen=True, rename="kebab"):
    """How one number differs between partitions."""

    min: int
    median: int
    max: int
    skew: float | None
    """The largest, as a multiple of the median."""


class LargePartition(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One of the largest partitions."""

    spec_id: int
    files: int
    records: int
    bytes: int
    values: dict[str, Any] | None = None
    """By the names of the spec's fields; left out for callers who may not read data."""


class SpecTotals(Struct, frozen=True, rename="kebab"):
    """The data files of one partition spec."""

    spec_id: int
    partitions: int
    files: int
    bytes: int


class Partitions(Struct, frozen=True, rename="kebab"):
    """How data files spread over partitions; a table without any is one partition."""

    count: int
    specs: tuple[SpecTotals, ...]
    largest: tuple[LargePartition, ...]
    files: PartitionSpread | None = None
    bytes: PartitionSpread | None = None


class TableStatistics(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The files of a table at one snapshot."""

    table_uuid: str
    snapshots: int
    """That the table keeps."""
    data: FileTotals
    small_files: SmallFiles
    deletes: Deletes
    manifests: Manifests
    partitions: Partitions
    snapshot_id: int | None = None
    """Left out for a table without snapshots."""
    snapshot_timestamp_ms: int | None = None
    snapshot_age_ms: int | None = None
    file_sizes: Spread | None = None
    """Of data files, in bytes."""


async def table_statistics(
    catalog: OpenCatalog, caller: Caller, table: Identifier, wanted: StatisticsOf | None = None
) -> TableStatistics:
    """The files of a table as the snapshot has them; `BadInput` when there is no such snapshot."""
    wanted = wanted or StatisticsOf()
    view = await catalog.read()
    ref = await find_table_ref(view, table)
    target = catalog.found_table(table, ref)
    operation, _ = await catalog.authorize_one_of(view, caller, _WITH_VALUES, target)
    if ref is None:
        raise NoSuchTable(str(table))
    if ref.type == POINTER.name:
        found = await import_pointer(catalog, caller, table)
    else:
        found = await load_table_at(view, ref.id, catalog.shared.tables)
    snapshot = _find_snapshot(found.metadata, wanted)
    listed, counted = await _count(catalog, found, snapshot)
    now_ms = catalog.shared.persistence.clock.now_us() // 1000
    describe = _Describing(found.metadata, has_values=operation is ops.TABLE_STATISTICS_WITH_VALUES)
    return TableStatistics(
        table_uuid=found.metadata.table_uuid,
        snapshots=len(found.metadata.snapshots),
        data=counted.data,
        small_files=describe.small_files(counted),
        deletes=Deletes(
            counted.deletes, counted.deleted_rows, round(counted.delete_ratio, 6), counted.files_with_deletes
        ),
        manifests=describe.manifests(listed),
        partitions=describe.partitions(counted, wanted.partitions),
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        snapshot_timestamp_ms=None if snapshot is None else snapshot.timestamp_ms,
        snapshot_age_ms=None if snapshot is None else max(0, now_ms - snapshot.timestamp_ms),
        file_sizes=counted.sizes(),
    )


def _find_snapshot(metadata: TableMetadata, wanted: StatisticsOf) -> Snapshot | None:
    if wanted.ref is None and wanted.snapshot_id is None:
        return metadata.find_current_snapshot()
    if wanted.ref is not None and wanted.snapshot_id is not None:
        raise BadInput(
            "A snapshot is named twice", field="branch", fix="Send snapshot-id or branch, not both."
        )
    if wanted.ref is not None:
        named = metadata.find_ref(wanted.ref)
        if named is None:
            raise BadInput(
                "The table has no such branch or tag",
                field="branch",
                fix="Send one of the table's refs.",
                branch=wanted.ref,
            )
        return metadata.find_snapshot(named.snapshot_id)
    found = metadata.find_snapshot(wanted.snapshot_id or 0)
    if found is None:
        raise BadInput(
            "The table has no such snapshot",
            field="snapshot-id",
            fix="Send the id of a snapshot that the table keeps.",
            snapshot_id=wanted.snapshot_id,
        )
    return found


async def _count(
    catalog: OpenCatalog, table: ManagedTable, snapshot: Snapshot | None
) -> tuple[Sequence[ManifestFile], FileStatistics]:
    metadata = table.metadata
    specs = [one.value for one in metadata.partition_specs]
    files = TableFiles(catalog, table)
    listed = () if snapshot is None else await files.list_manifests(snapshot)
    live = [one for one in listed if one.has_live_files]
    deletes = await files.load_deletes([one for one in live if one.content is ManifestContent.DELETES])
    # In threads: a hundred thousand files take longer than other requests should wait.
    counted = await asyncio.to_thread(
        FileStatistics,
        deletes,
        small_below_bytes=_small_below(_target(metadata, TARGET_FILE)),
        unpartitioned_specs=frozenset(one.spec_id for one in specs if one.is_unpartitioned),
    )
    data = [one for one in live if one.content is ManifestContent.DATA]
    at_once = catalog.shared.manifests.most_reads
    for start in range(0, len(data), at_once):
        for manifest in await files.load_all(data[start : start + at_once]):
            await asyncio.to_thread(counted.add, manifest)
    return listed, counted


class _Describing:
    """What was counted, as it is answered."""

    def __init__(self, metadata: TableMetadata, *, has_values: bool) -> None:
        self._metadata = metadata
        self._has_values = has_values
        self._specs = {one.value.spec_id: one.value for one in metadata.partition_specs}

    def small_files(self, counted: FileStatistics) -> SmallFiles:
        small, target = counted.small, _target(self._metadata, TARGET_FILE)
        ratio = round(small.files / counted.data.files, 6) if counted.data.files else 0.0
        return SmallFiles(small.files, small.bytes, ratio, _small_below(target), target)

    def manifests(self, listed: Sequence[ManifestFile]) -> Manifests:
        below = _small_below(_target(self._metadata, TARGET_MANIFEST))
        deletes = sum(one.content is ManifestContent.DELETES for one in listed)
        return Manifests(
            data=len(listed) - deletes,
            deletes=deletes,
            bytes=sum(one.length for one in listed),
            small=sum(one.length < below for one in listed),
            small_below_bytes=below,
        )

    def partitions(self, counted: FileStatistics, named: int) -> Partitions:
        found = counted.partitions()
        specs: dict[int, list[FileTotals]] = {}
        for one in found:
            specs.setdefault(one.spec_id, []).append(one.totals)
        return Partitions(
            count=len(found),
            specs=tuple(
                SpecTotals(id_, len(some), sum(one.files for one in some), sum(one.bytes for one in some))
                for id_, some in sorted(specs.items())
            ),
            largest=tuple(self._describe(one) for one in counted.largest(named)),
            files=_spread_of([one.totals.files for one in found]),
            bytes=_spread_of([one.totals.bytes for one in found]),
        )

    def _describe(self, one: PartitionTotals) -> LargePartition:
        totals = one.totals
        values = self._values(one) if self._has_values else None
        return LargePartition(one.spec_id, totals.files, totals.records, totals.bytes, values)

    def _values(self, one: PartitionTotals) -> dict[str, Any]:
        spec = self._specs[one.spec_id]
        types = partition_types(spec, self._metadata.current_schema())
        names = [field.name for field in spec.fields]
        return {
            name: partition_json(type_, value)
            for name, type_, value in zip(names, types, one.values, strict=True)
        }


def _spread_of(numbers: Sequence[int]) -> PartitionSpread | None:
    found = spread(numbers)
    return None if found is None else PartitionSpread(found.min, found.median, found.max, skew(found))


def _target(metadata: TableMetadata, of: tuple[str, int]) -> int:
    name, default = of
    size = get_int(metadata.properties, name, default)
    return size if size > 0 else default


def _small_below(target_bytes: int) -> int:
    return target_bytes * 3 // 4
