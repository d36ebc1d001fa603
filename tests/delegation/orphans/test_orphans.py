"""Only files that are old and dead go (I94, I99)."""

from typing import Any

import msgspec
import pytest
from msgspec import structs

from cynosure.common.errors import BadInput, LeaseLost
from cynosure.delegation.jobs.orphans.job import OrphanRemovalJob
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from cynosure.storage.location import Location
from tests.delegation.orphans.conftest import AgedWorld, make_world
from tests.delegation.purge.test_hostile import write_snapshot
from tests.delegation.purge.world import Killed, World

pytestmark = pytest.mark.anyio


def dead(world: World, count: int = 5) -> dict[str, bytes]:
    return {f"{world.location}/data/dead-{number}.parquet": b"d" * number for number in range(count)}


def make_live(world: World) -> set[str]:
    """Files that the newest history of the table names: an oracle that reads no manifest."""
    gone = {path for path in (*world.random.rows, *world.random.deletes) if not named_live(world, path)}
    # A snapshot of version 1 may name its manifests itself; the list that was written is dead then.
    lists = {each["manifest-list"] for each in world.metadata["snapshots"] if "manifest-list" in each}
    gone |= {path for path in world.random.files if "/snap-" in path} - lists
    return set(world.named) - gone


def named_live(world: World, path: str) -> bool:
    return any(
        entry.file.path == path and entry.status != 2
        for entries in world.random._entries.values()
        for entry in entries
    )


@pytest.mark.parametrize("seed", range(8))
async def test_old_files_that_nothing_names_go_and_all_others_stay(seed: int) -> None:
    world = make_world(seed)
    there = await world.write(dead(world))
    live = make_live(world)

    result = await world.run(OrphanRemovalJob(batch_files=3))

    gone = there.keys() - live
    assert set(await world.list()) == live
    assert (result.files_deleted, result.bytes_deleted) == (
        len(gone),
        sum(there[path] for path in gone),
    )


async def test_on_real_servers(on_s3: World) -> None:
    there = await on_s3.write(dead(on_s3))
    on_s3.is_tombstone = False
    future_ms = on_s3.clock.now_us() // 1000 + 60_000
    on_s3.order = structs.replace(on_s3.order, properties={"dryRun": "false", "older_than": str(future_ms)})

    result = await on_s3.run(OrphanRemovalJob(least_age_s=-3600))

    assert set(await on_s3.list()) == make_live(on_s3)
    assert result.files_deleted == len(there.keys() - make_live(on_s3))


async def test_young_files_stay(aged: AgedWorld) -> None:
    await aged.write(dead(aged))
    aged.age(2)
    young = f"{aged.location}/data/uncommitted.parquet"
    await aged.base.write(Location.parse(young), b"")

    await aged.run(OrphanRemovalJob())

    assert set(await aged.list()) == make_live(aged) | {young}


async def test_a_dry_run_is_the_default_and_deletes_nothing(aged: AgedWorld) -> None:
    aged.order = structs.replace(aged.order, properties={})
    there = await aged.write(dead(aged))

    result = await aged.run(OrphanRemovalJob())

    assert await aged.list() == there
    assert result.files_deleted == 0
    assert result.details["files_found"] == len(there.keys() - make_live(aged))
    assert set(dead(aged)) <= set(result.details["orphans"])
    assert not aged.is_begun


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_orphan_file_age_in_days", "0.01"),
        ("max_orphan_file_age_in_days", "0"),
        ("max_orphan_file_age_in_days", "-3"),
        ("max_orphan_file_age_in_days", "nan"),
        ("older_than", "2999-01-01T00:00:00Z"),
        ("older_than", "yesterday"),
        ("locations", "s3://bkt/lake/t"),
        ("locations", '["../x"]'),
        ("min_age_s", "0"),
        ("dryRun", "maybe"),
    ],
)
def test_instructions_that_cannot_be_followed_are_refused(aged: AgedWorld, name: str, value: str) -> None:
    order = structs.replace(aged.order, properties={name: value})

    with pytest.raises(BadInput) as refused:
        OrphanRemovalJob().check(order)

    assert refused.value.field == f"operation_parameters.properties.{name}"


async def test_files_of_tables_that_can_be_restored_are_alive(aged: AgedWorld) -> None:
    kept = f"{aged.location}/old/data/kept.parquet"
    path, files = write_snapshot(f"{aged.location}/old", (kept,))
    await aged.write(files | {kept: b"1"} | dead(aged))
    metadata: dict[str, Any] = {"snapshots": [{"snapshot-id": 5, "manifest-list": path}]}
    other = aged.make_table()
    other.facts = structs.replace(
        other.facts,
        entity_id="78",
        metadata=metadata,
        metadata_location=f"{aged.location}/old/metadata/v1.metadata.json",
        places=(aged.location.child("old"),),
    )
    await aged.base.write(Location.parse(other.facts.metadata_location), b"{}")
    aged.catalog.dropped.append(other)

    await aged.run(OrphanRemovalJob())

    assert set(await aged.list()) == make_live(aged) | {*files, kept, other.facts.metadata_location}


async def test_a_file_that_becomes_alive_after_the_listing_is_kept(aged: AgedWorld) -> None:
    """A writer that took its time commits while we look, and again while we delete."""
    first, second = f"{aged.location}/data/first.parquet", f"{aged.location}/data/second.parquet"
    await aged.write(dead(aged) | {first: b"", second: b""})
    opened = 0

    def commit() -> None:
        nonlocal opened
        opened += 1
        for number, path in ((2, first), (4, second)):
            if opened == number:
                listed, files = write_snapshot(f"{aged.location}/{number}", (path,))
                pending.extend(files.items())
                aged.metadata["snapshots"].append({"snapshot-id": number, "manifest-list": listed})
                aged.metadata_location = f"{aged.location}/metadata/v{number}.json"
                aged.refresh()

    pending: list[tuple[str, bytes]] = []
    plain = aged.catalog.open_table

    async def open_table(order: Any) -> Any:
        commit()
        while pending:
            path, data = pending.pop()
            await aged.base.write(Location.parse(path), data)
        return await plain(order)

    aged.catalog.open_table = open_table  # type: ignore[method-assign]
    await aged.run(OrphanRemovalJob(batch_files=2))

    left = set(await aged.list())
    assert opened >= 4
    assert {first, second} <= left
    assert left.isdisjoint(dead(aged))


@pytest.mark.parametrize("kind", ["corrupt", "missing", "outside"])
async def test_nothing_is_deleted_while_a_manifest_cannot_be_read(aged: AgedWorld, kind: str) -> None:
    path, files = write_snapshot(aged.location.text, (f"{aged.location}/data/dead-1.parquet",))
    [manifest] = files.keys() - {path}
    if kind == "corrupt":
        files[manifest] = files[manifest][:-3]
    elif kind == "missing":
        del files[manifest]
    else:
        path = "s3://bkt/elsewhere/list.avro"
    aged.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": path})
    there = await aged.write(files | dead(aged))

    with pytest.raises(JobFailed) as failed:
        await aged.run(OrphanRemovalJob())

    assert failed.value.code == f"{kind.upper()}_MANIFEST"
    assert await aged.list() == there


async def test_a_table_that_changes_while_it_is_read_is_read_again_later(aged: AgedWorld) -> None:
    aged.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": f"{aged.location}/gone.avro"})
    await aged.write(dead(aged))
    versions = iter(range(100))

    def change() -> None:
        aged.metadata_location = f"{aged.location}/metadata/v{next(versions)}.json"
        aged.refresh()

    aged.catalog.on_open = change
    with pytest.raises(JobPostponed) as postponed:
        await aged.run(OrphanRemovalJob())

    assert postponed.value.code == "TABLE_CHANGED"


async def test_only_some_locations_are_looked_at(aged: AgedWorld) -> None:
    stays = f"{aged.location}/metadata/dead"
    await aged.write(dead(aged) | {stays: b""})
    locations = msgspec.json.encode([f"{aged.location}/data/"]).decode()
    aged.order = structs.replace(aged.order, properties={"dryRun": "false", "locations": locations})

    await aged.run(OrphanRemovalJob())

    assert set(await aged.list()) == make_live(aged) | {stays}


async def test_a_location_of_another_table_is_a_conflict(aged: AgedWorld) -> None:
    aged.order = structs.replace(aged.order, properties={"locations": '["s3://bkt/lake/t2"]'})

    with pytest.raises(JobFailed) as refused:
        await aged.run(OrphanRemovalJob())

    assert (refused.value.code, refused.value.status) == ("LOCATION_OUTSIDE", 409)


async def test_nothing_is_deleted_without_the_lease(aged: AgedWorld) -> None:
    there = await aged.write(dead(aged))
    plain = aged.steps.do

    async def watch(name: str, work: Any) -> Any:
        if name == "begun":
            aged.context.lease.is_lost = True
        return await plain(name, work)

    aged.steps.do = watch  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        await aged.run(OrphanRemovalJob())

    assert there.keys() <= (await aged.list()).keys()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_removal_that_is_killed_at_any_step_is_finished_by_the_next_attempt(*, after: bool) -> None:
    whole = make_world()
    there = await whole.write(dead(whole))
    gone = there.keys() - make_live(whole)
    await whole.run(OrphanRemovalJob(batch_files=3))

    for step in range(whole.steps.count):
        world = make_world()
        await world.write(dead(world))
        world.steps.dies_at, world.steps.dies_after = step, after
        with pytest.raises(Killed):
            await world.run(OrphanRemovalJob(batch_files=3))
        world.steps.dies_at = None
        result = await world.run(OrphanRemovalJob(batch_files=3))

        assert set(await world.list()) == make_live(world)
        assert result.files_deleted == len(gone), whole.steps.log[step]
