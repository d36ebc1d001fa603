"""Purges and removals of orphans that are too large for one process: on Spark's executors (I93, I94)."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import LeaseLost
from cynosure.delegation.jobs.orphans.job import OrphanRemovalJob
from cynosure.delegation.jobs.port import JobFailed
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.delegation.spark.runner import ChildSparkRunner
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.delegation.orphans.test_orphans import dead, make_live
from tests.delegation.purge.test_hostile import OUTSIDE, write_snapshot
from tests.delegation.purge.test_purge import list_all, write_neighbours
from tests.delegation.purge.world import World
from tests.delegation.spark.world import Loop


@pytest.fixture(scope="module")
def store() -> S3Server:
    return find_s3_servers()["minio"]


@pytest.fixture
def world(store: S3Server) -> Iterator[World]:
    base = store.fresh_location("purge-spark")
    properties = {
        "s3.access-key-id": store.access_key_id,
        "s3.secret-access-key": store.secret_access_key,
        "s3.endpoint": store.endpoint,
        "s3.path-style-access": "true",
        "client.region": store.region,
    }
    files = open_vended(properties, [Location.parse(base)], StorageSettings(), SystemClock())
    yield World(files, f"{base}/t", seed=4, threshold=0, client=properties)
    store.delete_below(base)


def test_a_large_purge_deletes_all_files_of_the_table_and_no_others(
    loop: Loop, runner: ChildSparkRunner, world: World
) -> None:
    """The first attempt loses its lease when all is planned; the next one goes on from its plan."""
    path, files = write_snapshot(world.location.text, OUTSIDE)
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    there = loop.run(world.write(files | {f"{world.location}/data/orphan-{n}": b"o" for n in range(20)}))
    beside = loop.run(write_neighbours(world))
    plain = world.steps.do

    async def lose(name: str, work: Any) -> Any:
        if name == "begun":
            world.context.lease.is_lost = True
        return await plain(name, work)

    world.steps.do = lose  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        loop.run(world.run(PurgeJob(batch_files=15), spark=runner))
    assert there.keys() <= loop.run(world.list()).keys()
    world.steps.do = plain  # type: ignore[method-assign]
    result = loop.run(world.run(PurgeJob(batch_files=15), spark=runner))

    assert (result.files_deleted, result.bytes_deleted) == (len(there), sum(there.values()))
    assert loop.run(list_all(world)) == beside
    assert result.details["on_spark"]
    assert result.details["outside_count"] == len(OUTSIDE)
    assert sum(each.files for each in world.kept.values()) == len(there)


def test_with_a_damaged_manifest_only_what_is_readable_goes(
    loop: Loop, runner: ChildSparkRunner, world: World
) -> None:
    path, files = write_snapshot(world.location.text, (f"{world.location}/data/unknown",))
    [manifest] = files.keys() - {path}
    files[manifest] = files[manifest][:-3]
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    there = loop.run(world.write(files | {f"{world.location}/data/unknown": b""}))
    readable = {*world.random.rows, *world.random.deletes}
    readable |= {each["statistics-path"] for each in world.metadata["statistics"]}
    readable |= {each["statistics-path"] for each in world.metadata["partition-statistics"]}

    with pytest.raises(JobFailed) as failed:
        loop.run(world.run(PurgeJob(), spark=runner))

    assert failed.value.code == "CORRUPT_MANIFEST"
    assert failed.value.details["result"]["corrupt"] == [manifest]
    assert set(loop.run(world.list())) == there.keys() - readable


def test_orphans_of_a_large_table_go(loop: Loop, runner: ChildSparkRunner, world: World) -> None:
    future_ms = world.clock.now_us() // 1000 + 60_000
    world.is_tombstone = False
    world.order = structs.replace(
        world.order,
        task_type=TaskType.ORPHAN_FILE_REMOVAL,
        properties={"dryRun": "false", "older_than": str(future_ms)},
    )
    there = loop.run(world.write(dead(world)))

    result = loop.run(world.run(OrphanRemovalJob(least_age_s=-3600), spark=runner))

    assert set(loop.run(world.list())) == make_live(world)
    assert result.files_deleted == len(there.keys() - make_live(world))
    assert result.details["on_spark"]
