"""Tables and plans that somebody has made up or damaged: nothing outside goes, nothing is hidden (I93)."""

import zlib
from typing import Any

import msgspec
import pytest

from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.delegation.jobs.purge.plan import encode_rows
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.fileio import FileInfo
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import collect
from tests.delegation.purge.world import Killed, World

pytestmark = pytest.mark.anyio

OUTSIDE = (
    "s3://bkt/lake/t2/data/victim",
    "s3://other/lake/t/data/victim",
    "s3://bkt/lake/t/../t2/data/victim",
    "s3://bkt/lake/t/data/%2e%2e/victim",
    "s3://bkt/lake/tt",
    "s3://bkt/lake/t",
    "file:///etc/passwd",
    "gs://bkt/lake/t/data/victim",
    "",
    "data/relative",
    "s3://bkt/lake/t//data/victim",
)


def write_snapshot(location: str, paths: tuple[str, ...]) -> tuple[str, dict[str, bytes]]:
    """A manifest list and a manifest that names these."""
    kind = ManifestKind(2, PartitionSpec((), 0), (), b"[]", b'{"type":"struct","fields":[]}', 0)
    entries = [
        Entry(
            Status.ADDED,
            5,
            None,
            None,
            ContentFile(
                path=path, format="parquet", spec_id=0, partition=(), record_count=1, file_size_bytes=1
            ),
        )
        for path in paths
    ]
    manifest, listed = f"{location}/metadata/made-up-m.avro", f"{location}/metadata/made-up-l.avro"
    data, line = write_manifest(kind, entries, path=manifest, snapshot_id=5)
    list_data, _, _ = write_manifest_list(
        [line], format_version=2, snapshot_id=5, parent_snapshot_id=None, sequence_number=9
    )
    return listed, {manifest: data, listed: list_data}


async def list_all(world: World) -> dict[str, int]:
    found: list[FileInfo] = await collect(world.base, Location.parse("s3://bkt"))
    return {each.location.text: each.size_bytes for each in found}


async def test_paths_outside_are_reported_and_stay(world: World) -> None:
    path, files = write_snapshot(world.location.text, OUTSIDE)
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    await world.write(files)
    victims = {"s3://bkt/lake/t2/data/victim", "s3://bkt/lake/tt"}
    for victim in victims:
        await world.base.write(Location.parse(victim), b"")

    result = await world.run(PurgeJob())

    assert set(await list_all(world)) == victims
    assert result.details["outside_count"] == len(OUTSIDE)
    assert sorted(OUTSIDE) == result.details["outside"]


@pytest.mark.parametrize("part", ["manifest-list", "manifests", "statistics", "metadata-log", "current"])
async def test_metadata_that_names_files_of_another_table_does_not_touch_them(
    world: World, part: str
) -> None:
    victim = "s3://bkt/lake/t2/metadata/victim"
    await world.base.write(Location.parse(victim), b"not even a manifest")
    there = await world.write()
    match part:
        case "manifest-list":
            world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": victim})
        case "manifests":
            world.metadata["snapshots"].append({"snapshot-id": 5, "manifests": [victim]})
        case "statistics":
            world.metadata["statistics"].append({"statistics-path": victim})
        case "metadata-log":
            world.metadata["metadata-log"].append({"metadata-file": victim})
        case _:
            world.metadata_location = victim
            world.refresh()

    result = await world.run(PurgeJob())

    assert set(await list_all(world)) == {victim}
    assert result.files_deleted == len(there)
    assert result.details["outside"] == [victim]


async def test_only_some_of_many_paths_outside_are_named(world: World) -> None:
    path, files = write_snapshot(
        world.location.text, tuple(f"s3://bkt/lake/x/{number:04}" for number in range(250))
    )
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    await world.write(files)

    result = await world.run(PurgeJob())

    assert result.details["outside_count"] == 250
    assert len(result.details["outside"]) == 100


@pytest.mark.parametrize("kind", ["manifest", "list"])
async def test_with_a_damaged_manifest_what_is_readable_goes_and_the_rest_is_kept(
    world: World, kind: str
) -> None:
    other = f"{world.location}/data/readable"
    unknown = f"{world.location}/data/unknown"
    path, files = write_snapshot(world.location.text, (other,))
    damaged_list, damaged = write_snapshot(f"{world.location}/damaged", (unknown,))
    [manifest] = damaged.keys() - {damaged_list}
    broken = manifest if kind == "manifest" else damaged_list
    damaged[broken] = damaged[broken][:-3]
    world.metadata["snapshots"] = [
        {"snapshot-id": 5, "manifest-list": path},
        {"snapshot-id": 6, "manifest-list": damaged_list},
    ]
    world.random.rows.clear()
    world.random.deletes.clear()
    world.random.files.clear()
    there = await world.write(files | damaged | {other: b"123", unknown: b"4"})
    readable = {other, *(each["statistics-path"] for each in world.metadata["statistics"])}
    readable |= {each["statistics-path"] for each in world.metadata["partition-statistics"]}

    with pytest.raises(JobFailed) as failed:
        await world.run(PurgeJob())

    assert failed.value.code == "CORRUPT_MANIFEST"
    assert failed.value.details["result"]["corrupt"] == [broken]
    assert failed.value.details["files_deleted"] == len(readable)
    assert (await world.list()).keys() == there.keys() - readable

    # An operator removes what is damaged, and tries again.
    await world.base.delete(Location.parse(broken))
    result = await world.run(PurgeJob())
    assert await world.list() == {}
    assert result.files_deleted == len(there) - 1
    assert result.details["missing"] == [broken]


async def test_a_missing_manifest_is_as_if_it_were_empty(world: World) -> None:
    path, files = write_snapshot(world.location.text, (f"{world.location}/data/a",))
    [manifest] = files.keys() - {path}
    del files[manifest]
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    there = await world.write(files | {f"{world.location}/data/a": b"1"})

    result = await world.run(PurgeJob())

    assert (result.files_deleted, result.details["missing"]) == (len(there), [manifest])
    assert await world.list() == {}


@pytest.mark.parametrize(
    "metadata", [{}, {"snapshots": 7}, {"snapshots": [None, 3, {"manifest-list": 4, "manifests": "x"}]}]
)
async def test_metadata_that_is_not_what_it_should_be_stops_nothing(
    world: World, metadata: dict[str, Any]
) -> None:
    there = await world.write()
    uuid = world.metadata["table-uuid"]
    world.metadata = metadata | {"table-uuid": uuid}
    world.refresh()

    assert (await world.run(PurgeJob())).files_deleted == len(there)


def packed(rows: object) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(rows))


@pytest.mark.parametrize(
    "data",
    [
        encode_rows([(0, "../t2/data/victim", 1, 0)]),
        encode_rows([(0, "data/../../t2/data/victim", 1, 0)]),
        encode_rows([(7, "data/a", 1, 0)]),
        encode_rows([(-1, "data/a", 1, 0)]),
        encode_rows([(0, "", 1, 0)]),
        packed([["s3://bkt/lake/t2/data/victim"]]),
        packed({"a": 1}),
        b"not even compressed",
        zlib.compress(b"\0" * (80 * 2**20)),
        b"",
    ],
)
async def test_a_plan_that_somebody_has_changed_deletes_nothing_outside(world: World, data: bytes) -> None:
    victim = "s3://bkt/lake/t2/data/victim"
    await world.base.write(Location.parse(victim), b"1")
    await world.write()
    world.steps.dies_at = 2  # the plan is there: batch, marker, purging
    with pytest.raises(Killed):
        await world.run(PurgeJob())
    batches = [path for path in await world.list() if ".cynosure-purge-" in path and "/plan-" not in path]
    assert len(batches) == 1
    await world.base.write(Location.parse(batches[0]), data, overwrite=True)

    await world.run(PurgeJob())

    assert set(await list_all(world)) == {victim}


@pytest.mark.parametrize(
    "marker", [b"", b"{}", b'{"generation": "x", "batches": [["../../t2", 0, 0, 1, 1]]}', b"\xff\xfe"]
)
async def test_a_marker_that_somebody_has_changed_is_no_plan(world: World, marker: bytes) -> None:
    there = await world.write()
    place = world.location.child("metadata", f".cynosure-purge-{world.order.task_id}", "plan-0")
    await world.base.write(place, marker)

    result = await world.run(PurgeJob())

    assert result.files_deleted == len(there)
    assert await world.list() == {}


async def test_a_storage_that_is_slow_now_and_then_is_asked_again(world: World) -> None:
    there = await world.write()
    count = 0

    async def fail(_: list[Location]) -> None:
        nonlocal count
        count += 1
        if count % 2:
            raise StorageUnavailable("The storage does not answer or fails", reason="SlowDown")

    world.files.on_delete.append(fail)
    result = await world.run(PurgeJob(batch_files=7))

    assert result.files_deleted == len(there)
    assert await world.list() == {}


async def test_a_storage_that_stays_away_ends_the_attempt(world: World) -> None:
    await world.write()

    async def fail(_: list[Location]) -> None:
        raise StorageUnavailable("The storage does not answer or fails")

    world.files.on_delete.append(fail)
    with pytest.raises(StorageUnavailable):
        await world.run(PurgeJob())


async def test_a_storage_that_refuses_postpones_the_task(world: World) -> None:
    await world.write()

    async def fail(_: list[Location]) -> None:
        raise StorageRefused(
            "The storage refused this catalog's credentials or request", code="AccessDenied", status=403
        )

    world.files.on_delete.append(fail)
    with pytest.raises(JobPostponed) as postponed:
        await world.run(PurgeJob())

    assert postponed.value.code == "STORAGE_REFUSED"
