"""Statistics of a table are those that PyIceberg finds in its manifests."""

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from pyiceberg.table import StaticTable

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.table_statistics import StatisticsOf, TableStatistics, table_statistics
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.content_file import Content, Status
from cynosure.iceberg.manifests.statistics import FileTotals, spread
from cynosure.storage.errors import FileMissing
from cynosure.storage.location import Location
from cynosure.testing.small_access import P, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.manifests.writing import Writer, data_file, load, watch
from tests.catalog.tables import T, change, make, snapshot
from tests.catalog.world import open_lake

pytestmark = pytest.mark.anyio

SPEC = {"spec-id": 0, "fields": [{"name": "data", "transform": "identity", "source-id": 2, "field-id": 1000}]}
NEXT_SPEC = {"fields": [{"name": "id_bucket", "transform": "bucket[8]", "source-id": 1}]}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


async def commit(catalog: OpenCatalog, number: int, manifests: list, *, parent: int | None = None) -> None:
    writer = Writer(catalog, await load(catalog))
    await writer.list(f"snap-{number}", manifests, number=number)
    location = (await load(catalog)).metadata.location
    await change(catalog, *snapshot(number, at=location, parent=parent))


async def make_random_table(catalog: OpenCatalog, rng: random.Random) -> None:
    """With two specs, files of all sizes, removed ones, and deletes of both kinds."""
    await make(catalog, partition_spec=raw(SPEC))
    await change(
        catalog, {"action": "add-spec", "spec": NEXT_SPEC}, {"action": "set-default-spec", "spec-id": -1}
    )
    writer = Writer(catalog, await load(catalog))
    assert (await load(catalog)).metadata.default_spec_id == 1
    manifests = []
    for number in range(8):
        spec_id = number % 2
        values: list[Any] = ["a", "b", None, "ü"] if spec_id == 0 else [0, 3, None]
        kind = rng.choice([Content.DATA, Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES])
        files = [
            data_file(
                f"{writer.folder}/{number}-{at}.parquet",
                (rng.choice(values),),
                spec_id=spec_id,
                content=kind,
                equality_ids=(1,) if kind is Content.EQUALITY_DELETES else None,
                record_count=rng.randrange(1, 1000),
                file_size_bytes=rng.choice([rng.randrange(1, 2**20), rng.randrange(1, 2**30)]),
            )
            for at in range(rng.randrange(1, 30))
        ]
        status = rng.choice([Status.ADDED, Status.EXISTING, Status.DELETED])
        known = None if status is Status.ADDED else 1
        manifests.append(await writer.manifest(f"m{number}", files, status=status, sequence_number=known))
    await commit(catalog, 1, manifests)


@pytest.mark.parametrize("seed", range(4))
async def test_statistics_are_what_pyiceberg_s_inspection_finds(catalog: OpenCatalog, seed: int):
    await make_random_table(catalog, random.Random(seed))
    found = await table_statistics(catalog, ROOT, T, StatisticsOf(partitions=100))

    inspected = StaticTable.from_metadata((await load(catalog)).state.metadata_location).inspect
    files = inspected.files().to_pylist()
    by_kind = {
        content: [one for one in files if one["content"] == content]
        for content in (Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
    }
    totals = {
        content: FileTotals(
            len(some),
            sum(one["record_count"] for one in some),
            sum(one["file_size_in_bytes"] for one in some),
        )
        for content, some in by_kind.items()
    }
    assert found.data == totals[Content.DATA]
    assert found.deletes.files.position == totals[Content.POSITION_DELETES]
    assert found.deletes.files.equality == totals[Content.EQUALITY_DELETES]
    sizes = [one["file_size_in_bytes"] for one in by_kind[Content.DATA]]
    assert found.file_sizes == spread(sizes)
    below = 512 * 2**20 * 3 // 4
    assert found.small_files.below_bytes == below
    assert found.small_files.files == sum(size < below for size in sizes)
    assert found.manifests.data + found.manifests.deletes == len(inspected.manifests())
    # PyIceberg's list of partitions has those that only hold deletes as well.
    theirs = Counter(
        {
            (one["spec_id"], *[value for value in one["partition"].values() if value is not None]): one[
                "file_count"
            ]
            for one in inspected.partitions().to_pylist()
            if one["file_count"]
        }
    )
    ours = Counter(
        {
            (one.spec_id, *[value for value in (one.values or {}).values() if value is not None]): one.files
            for one in found.partitions.largest
        }
    )
    assert ours == theirs
    assert found.partitions.count == len(theirs)
    assert sum(one.bytes for one in found.partitions.specs) == found.data.bytes


async def test_a_table_without_snapshots_has_no_files(catalog: OpenCatalog):
    await make(catalog)

    found = await table_statistics(catalog, ROOT, T)

    assert found.snapshot_id is None
    assert (found.data, found.snapshots, found.partitions.count) == (FileTotals(), 0, 0)
    assert (found.file_sizes, found.small_files.ratio, found.deletes.ratio) == (None, 0.0, 0.0)
    assert b"NaN" not in msgspec.json.encode(found)


async def two_snapshots(catalog: OpenCatalog) -> None:
    """The second one has a file more, and the branch `audit` stays at the first."""
    await make(catalog)
    writer = Writer(catalog, await load(catalog))
    one = await writer.manifest("m1", [data_file("a")])
    await commit(catalog, 1, [one])
    await change(
        catalog,
        {"action": "set-snapshot-ref", "ref-name": "audit", "type": "branch", "snapshot-id": 1},
    )
    two = await writer.manifest("m2", [data_file("b")], snapshot_id=2)
    await commit(catalog, 2, [one, two], parent=1)


async def test_statistics_are_of_the_snapshot_or_branch_that_was_named(catalog: OpenCatalog):
    await two_snapshots(catalog)

    async def count(**wanted: Any) -> tuple[int | None, int]:
        found: TableStatistics = await table_statistics(catalog, ROOT, T, StatisticsOf(**wanted))
        return found.snapshot_id, found.data.files

    assert await count() == (2, 2)
    assert await count(ref="main") == (2, 2)
    assert await count(ref="audit") == (1, 1)
    assert await count(snapshot_id=1) == (1, 1)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (StatisticsOf(snapshot_id=9), "snapshot-id"),
        (StatisticsOf(snapshot_id=0), "snapshot-id"),
        (StatisticsOf(ref="nowhere"), "branch"),
        (StatisticsOf(ref="audit", snapshot_id=1), "branch"),
    ],
)
async def test_a_snapshot_that_is_not_there_is_named(catalog: OpenCatalog, wanted: StatisticsOf, field: str):
    await two_snapshots(catalog)

    with pytest.raises(BadInput) as error:
        await table_statistics(catalog, ROOT, T, wanted)
    assert error.value.field == field


async def test_what_small_means_follows_the_table_s_properties(catalog: OpenCatalog):
    properties = {"write.target-file-size-bytes": "1200", "commit.manifest.target-size-bytes": "many"}
    await make(catalog, properties=properties)
    writer = Writer(catalog, await load(catalog))
    sizes = [899, 900, 1200]
    files = [data_file(str(size), file_size_bytes=size) for size in sizes]
    await commit(catalog, 1, [await writer.manifest("m", files)])

    found = await table_statistics(catalog, ROOT, T)

    assert (found.small_files.files, found.small_files.bytes) == (1, 899)
    assert (found.small_files.below_bytes, found.small_files.target_bytes) == (900, 1200)
    assert found.manifests.small_below_bytes == 6 * 2**20
    assert found.manifests.small == 1


async def test_a_second_look_reads_nothing(catalog: OpenCatalog):
    await two_snapshots(catalog)
    watched = watch(catalog)
    first = await table_statistics(catalog, ROOT, T)
    assert len(watched.read_paths) == 3
    watched.read_paths.clear()

    again = await table_statistics(catalog, ROOT, T)

    assert watched.read_paths == []
    assert again.partitions == first.partitions


async def test_a_missing_manifest_is_named(catalog: OpenCatalog):
    await two_snapshots(catalog)
    path = f"{Writer(catalog, await load(catalog)).folder}/m2.avro"
    await catalog.files.delete(Location.parse(path))

    with pytest.raises(FileMissing) as error:
        await table_statistics(catalog, ROOT, T)
    assert error.value.details["location"] == path
    with pytest.raises(NoSuchTable):
        await table_statistics(catalog, ROOT, Identifier(("ns",), "nowhere"))


async def test_values_of_partitions_are_told_to_those_who_may_read_data(tmp_path):
    async with open_lake(tmp_path) as lake:
        table = Identifier(("ns",), "parted")
        await make(lake.catalog, table, partition_spec=raw(SPEC))
        managed = await load(lake.catalog, table)
        writer = Writer(lake.catalog, managed)
        await writer.list("snap-1", [await writer.manifest("m", [data_file("a", ("secret",))])])
        await change(lake.catalog, *snapshot(1, at=managed.metadata.location), table=table)
        ann = await lake.people.add("ann", lake.catalog, *on_table(table, P.TABLE_READ_PROPERTIES))

        without = await table_statistics(lake.catalog, ann, table)
        await lake.people.grant("ann", lake.catalog, *on_table(table, P.TABLE_READ_DATA))
        with_values = await table_statistics(lake.catalog, ann, table)

        assert b"secret" not in msgspec.json.encode(without)
        assert without.data == with_values.data
        assert [one.values for one in with_values.partitions.largest] == [{"data": "secret"}]
