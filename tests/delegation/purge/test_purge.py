"""All files of a table go, and no others (I91, I93, I94)."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import pytest
from msgspec import structs

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import Expected
from cynosure.common.errors import BadInput, LeaseLost
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import collect
from cynosure.testing.s3_servers import S3Server
from tests.delegation.purge.world import Killed, World

pytestmark = pytest.mark.anyio

NEIGHBOURS = ("t2/data/a.parquet", "t-old/metadata/b", "u/c", "d")


async def write_neighbours(world: World) -> set[str]:
    """Files beside the table."""
    above = world.location.text.rpartition("/")[0]
    found = {f"{above}/{each}" for each in NEIGHBOURS}
    for each in found:
        await world.base.write(Location.parse(each), b"neighbour")
    return found


async def list_all(world: World) -> set[str]:
    above = Location.parse(world.location.text.rpartition("/")[0])
    return {each.location.text for each in await collect(world.base, above)}


async def purge_and_check(world: World) -> None:
    there = await world.write({f"{world.location}/data/orphan-{n}.parquet": b"o" * n for n in range(5)})
    beside = await write_neighbours(world)

    result = await world.run(PurgeJob())

    assert (result.files_deleted, result.bytes_deleted) == (len(there), sum(there.values()))
    assert await list_all(world) == beside
    assert world.context.is_running
    assert world.is_begun


@pytest.mark.parametrize("seed", range(12))
async def test_every_file_of_a_table_goes_and_none_beside_it(memory: MemoryFileIO, seed: int) -> None:
    """Seeds have tables of versions 1, 2 and 3, with deletes of every kind."""
    await purge_and_check(World(memory, "s3://bkt/lake/t", seed=seed))


def test_the_seeds_have_tables_of_all_versions(memory: MemoryFileIO) -> None:
    tables = [World(memory, "s3://bkt/lake/t", seed=seed).random for seed in range(12)]

    assert {table.version for table in tables} == {1, 2, 3}
    assert any(path.endswith(".puffin") for table in tables for path in table.deletes)


async def test_on_disk(disk: World) -> None:
    await purge_and_check(disk)


async def test_on_real_servers(on_s3: World) -> None:
    await purge_and_check(on_s3)


async def test_content_goes_first_and_the_metadata_file_last(world: World) -> None:
    orphan = f"{world.location}/data/orphan"
    await world.write({orphan: b""})
    gone: list[str] = []

    async def note(locations: list[Location]) -> None:
        gone.extend(each.text for each in locations)

    world.files.on_delete.append(note)
    await world.run(PurgeJob())

    content = {*world.random.rows, *world.random.deletes, f"{world.location}/metadata/stats.puffin"}
    at = {path: number for number, path in enumerate(gone)}
    lists = {each["manifest-list"] for each in world.metadata["snapshots"] if "manifest-list" in each}
    manifests = set(world.random.files) - lists
    assert max(at[path] for path in content) < min(at[path] for path in manifests)
    assert max(at[path] for path in manifests) < min((at[path] for path in lists), default=len(gone))
    table_files = [path for path in gone if ".cynosure-purge-" not in path]
    assert table_files[-2:] == [f"{world.location}/metadata/00000.metadata.json", world.metadata_location]
    assert at[orphan] < at[table_files[-2]]


@pytest.mark.parametrize(("state", "code"), [("shared", "LOCATION_SHARED"), ("restored", "PURGE_REFUSED")])
async def test_nothing_is_touched_before_the_catalog_agrees(world: World, state: str, code: str) -> None:
    before = await world.write()
    table = world.catalog.table

    async def open_tombstone(_: Any) -> Any:
        world.catalog.state = state
        return table

    world.catalog.open_tombstone = open_tombstone

    with pytest.raises(JobFailed) as refused:
        await world.run(PurgeJob())

    assert (refused.value.code, refused.value.status) == (code, 409)
    assert await world.list() == before
    assert not world.is_begun


async def test_a_table_that_was_restored_is_not_purged(world: World) -> None:
    before = await world.write()
    world.catalog.state = "restored"

    with pytest.raises(JobFailed) as refused:
        await world.run(PurgeJob())

    assert refused.value.code == "TOMBSTONE_GONE"
    assert await world.list() == before


@pytest.mark.parametrize(
    "expected",
    [
        Expected(table_uuid="00000000-0000-0000-0000-000000000000"),
        Expected(location="s3://bkt/lake/T"),
        Expected(location="s3://bkt/lake/t2"),
    ],
)
async def test_another_table_than_was_ordered_is_a_conflict(world: World, expected: Expected) -> None:
    before = await world.write()
    world.order = structs.replace(world.order, expected=expected)

    with pytest.raises(JobFailed) as refused:
        await world.run(PurgeJob())

    assert (refused.value.code, refused.value.status) == ("TABLE_MISMATCH", 409)
    assert not world.context.is_running
    assert await world.list() == before


async def test_another_spelling_of_the_location_is_the_same_table(world: World) -> None:
    await world.write()
    world.order = structs.replace(world.order, expected=Expected(location="s3a://bkt/lake/t/"))

    assert (await world.run(PurgeJob())).files_deleted


async def test_another_entity_is_a_conflict(world: World) -> None:
    before = await world.write()
    world.order = structs.replace(world.order, table=structs.replace(world.order.table, table_entity_id="78"))

    with pytest.raises(JobFailed, match="not the one"):
        await world.run(PurgeJob())

    assert await world.list() == before


async def test_a_table_of_another_catalog_is_not_ours_to_purge(world: World) -> None:
    world.catalog.table.facts = structs.replace(world.catalog.table.facts, is_federated=True)

    with pytest.raises(JobFailed) as refused:
        await world.run(PurgeJob())

    assert refused.value.code == "FEDERATED_TABLE"


async def test_a_dry_run_counts_and_deletes_nothing(memory: MemoryFileIO) -> None:
    world = World(memory, "s3://bkt/lake/t", properties={"dryRun": "true"})
    before = await world.write()

    result = await world.run(PurgeJob())

    assert (result.details["files_found"], result.details["bytes_found"]) == (
        len(before),
        sum(before.values()),
    )
    assert result.files_deleted == 0
    assert await world.list() == before
    assert world.catalog.state == "restorable"


@pytest.mark.parametrize(
    ("name", "value"), [("skipTrash", "false"), ("dryRun", "perhaps"), ("location", "s3://bkt/other")]
)
def test_instructions_that_cannot_be_followed_are_refused(world: World, name: str, value: str) -> None:
    order = structs.replace(world.order, properties={name: value})

    with pytest.raises(BadInput) as refused:
        PurgeJob().check(order)

    assert refused.value.field == f"operation_parameters.properties.{name}"
    assert refused.value.fix


async def test_markers_of_directories_stay_when_asked_to(memory: MemoryFileIO) -> None:
    world = World(memory, "s3://bkt/lake/t", properties={"deleteMarkerFiles": "false"})
    marker = f"{world.location}/data_$folder$"
    there = await world.write({marker: b""})

    result = await world.run(PurgeJob())

    assert await world.list() == {marker: 0}
    assert result.files_deleted == len(there) - 1


def put_objects(server: S3Server, location: str, keys: tuple[str, ...]) -> None:
    """Objects by keys that no `Location` can name."""
    for key in keys:
        open_raw(server).put_object(Bucket=server.bucket, Key=f"{key_of(location)}/{key}", Body=b"odd")


def list_objects(server: S3Server, location: str) -> list[str]:
    found = open_raw(server).list_objects_v2(Bucket=server.bucket, Prefix=f"{key_of(location)}/")
    return [each["Key"].removeprefix(f"{key_of(location)}/") for each in found.get("Contents", ())]


def key_of(location: str) -> str:
    return location.removeprefix("s3://").partition("/")[2]


def open_raw(server: S3Server) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
    )


async def test_markers_and_names_that_nobody_can_write_go_too(on_s3: World, sts_server: S3Server) -> None:
    there = await on_s3.write()
    put_objects(sts_server, on_s3.location.text, ("data/what?.parquet", "data/a#b", "hidden/c\\d"))
    put_objects(sts_server, f"{on_s3.location}2", ("data/what?", "dir/"))
    raw = open_raw(sts_server)
    for marker in ("empty/", "data/deep/"):
        raw.put_object(Bucket=sts_server.bucket, Key=f"{key_of(on_s3.location.text)}/{marker}", Body=b"")

    result = await on_s3.run(PurgeJob())

    assert list_objects(sts_server, on_s3.location.text) == []
    assert sorted(list_objects(sts_server, f"{on_s3.location}2")) == ["data/what?", "dir/"]
    assert result.bytes_deleted == sum(there.values()) + 9


async def test_markers_that_are_to_stay_do_not_hold_up_a_purge(on_s3: World, sts_server: S3Server) -> None:
    await on_s3.write()
    on_s3.order = structs.replace(on_s3.order, properties={"deleteMarkerFiles": "false"})
    key = f"{key_of(on_s3.location.text)}/empty/"
    open_raw(sts_server).put_object(Bucket=sts_server.bucket, Key=key, Body=b"")

    await on_s3.run(PurgeJob())

    assert set(list_objects(sts_server, on_s3.location.text)) <= {"empty/"}


async def test_empty_directories_and_links_go_too(disk: World, tmp_path: Path) -> None:
    await disk.write()
    beside = await write_neighbours(disk)
    folder = tmp_path / "lake" / "t"
    (folder / "data" / "empty" / "deep").mkdir(parents=True)
    (folder / "data" / "what?").write_bytes(b"odd")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(b"")
    (folder / "link").symlink_to(tmp_path / "elsewhere")

    await disk.run(PurgeJob())

    assert not folder.exists()
    assert (tmp_path / "elsewhere" / "file").exists()
    assert await list_all(disk) == beside


async def test_several_places_go(world: World) -> None:
    elsewhere = Location.parse("s3://bkt/old/t")
    world.places = (world.location, elsewhere, world.location.child("data"))
    world.refresh()
    there = await world.write({f"{elsewhere}/data/f": b"123"})

    result = await world.run(PurgeJob())

    assert result.files_deleted == len(there)
    assert await world.list() == {}


async def test_files_that_are_gone_already_do_not_matter(world: World) -> None:
    there = await world.write()
    for path in (*[*world.random.rows][:2], world.metadata_location):
        await world.base.delete(Location.parse(path))
        del there[path]

    result = await world.run(PurgeJob())

    assert (result.files_deleted, result.bytes_deleted) == (len(there), sum(there.values()))
    assert await world.list() == {}


async def test_what_writers_add_meanwhile_goes_too(world: World) -> None:
    there = await world.write()
    late = [f"{world.location}/data/late-{n}" for n in range(2)]

    async def add(_: list[Location]) -> None:
        if late:
            await world.base.write(Location.parse(late.pop()), b"late")

    world.files.on_delete.append(add)
    result = await world.run(PurgeJob())

    assert result.files_deleted == len(there) + 2
    assert result.bytes_deleted == sum(there.values()) + 8
    assert await world.list() == {}


async def test_writers_that_do_not_end_postpone_the_purge(world: World) -> None:
    await world.write()
    count = 0

    async def add(_: list[Location]) -> None:
        nonlocal count
        count += 1
        await world.base.write(Location.parse(f"{world.location}/data/late-{count}"), b"")

    world.files.on_delete.append(add)
    with pytest.raises(JobPostponed) as postponed:
        await world.run(PurgeJob())
    world.files.on_delete.clear()
    await world.run(PurgeJob())

    assert postponed.value.code == "WRITERS_ACTIVE"
    assert await world.list() == {}


async def test_nothing_is_deleted_without_the_lease(world: World) -> None:
    before = await world.write()

    async def lose(_: list[Location]) -> None:
        raise AssertionError("deleted without a lease")

    world.files.on_delete.append(lose)
    plain = world.steps.do

    async def watch(name, work):  # type: ignore[no-untyped-def]
        if name == "begun":
            world.context.lease.is_lost = True
        return await plain(name, work)

    world.steps.do = watch
    with pytest.raises(LeaseLost):
        await world.run(PurgeJob())

    assert before.keys() <= (await world.list()).keys()


async def run_until_done(world: World) -> int:
    """How many attempts it takes when each dies at its own step."""
    for attempt in range(1, 10):
        try:
            result = await world.run(PurgeJob(batch_files=7))
        except Killed:
            world.steps.dies_at = None
            continue
        assert result.files_deleted == sum(each.files for each in world.kept.values())
        return attempt
    raise AssertionError("it does not end")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_purge_that_is_killed_at_any_step_is_finished_by_the_next_attempt(
    *,
    after: bool,
) -> None:
    def fresh() -> World:
        return World(MemoryFileIO([Location.parse("s3://bkt")], SystemClock()), "s3://bkt/lake/t", seed=3)

    whole = fresh()
    await whole.write()
    await whole.run(PurgeJob(batch_files=7))
    assert whole.steps.count > 20

    for step in range(whole.steps.count):
        world = fresh()
        there = await world.write()
        beside = await write_neighbours(world)
        world.steps.dies_at, world.steps.dies_after = step, after
        with suppress(Killed):
            await run_until_done(world)

        name = whole.steps.log[step]
        assert sum(each.files for each in world.kept.values()) == len(there), (step, name)
        assert sum(each.bytes for each in world.kept.values()) == sum(there.values()), (step, name)
        assert await list_all(world) == beside, (step, name)
