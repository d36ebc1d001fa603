"""A table of local files with links in it: what they lead to is not the table's."""

from pathlib import Path

import msgspec
import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.orphans.job import OrphanRemovalJob
from cynosure.delegation.jobs.port import JobPostponed
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.delegation.jobs.purge.plan import Plan, describe, encode_rows
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.decorators import decorate
from cynosure.storage.decorators.confined import confine
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from tests.delegation.purge.world import World

pytestmark = pytest.mark.anyio


def make_world(root: Path, kind: TaskType) -> tuple[World, Path, Path]:
    """A table, its directory, and a file of somebody else; all in what the service may touch."""
    place = f"file://{root}/lake/t"
    local = LocalFileIO([Location.parse(f"file://{root}")])
    around = decorate(local, "file", StorageSettings(log_files=True), SystemClock())
    victim = root / "lake" / "victim" / "data" / "rows.parquet"
    victim.parent.mkdir(parents=True)
    victim.write_bytes(b"rows")
    world = World(confine(around, [Location.parse(place)]), place, task_type=kind)
    return world, root / "lake" / "t", victim


async def test_a_purge_removes_links_and_not_what_they_lead_to(tmp_path: Path) -> None:
    world, directory, victim = make_world(tmp_path, TaskType.TABLE_PURGE)
    await world.write()
    (directory / "data" / "directory").symlink_to(victim.parent)
    (directory / "data" / "file.parquet").symlink_to(victim)
    (directory / "data" / "relative").symlink_to("../../victim/data")

    await world.run(PurgeJob())

    assert victim.read_bytes() == b"rows"
    assert not directory.exists() or not any(directory.rglob("*"))


async def test_no_plan_of_a_stranger_leads_through_a_link(tmp_path: Path) -> None:
    world, directory, victim = make_world(tmp_path, TaskType.TABLE_PURGE)
    await world.write()
    (directory / "data" / "directory").symlink_to(victim.parent)
    rows = [(0, "data/directory/rows.parquet", 4, 0)]
    folder = world.location.child("metadata", f".cynosure-purge-{world.order.task_id}")
    await world.base.write(folder.child("abc-0-00000"), encode_rows(rows))
    plan = msgspec.json.encode(Plan("abc", (describe("abc-0-00000", rows),)))
    await world.base.write(folder.child("plan-0"), plan)

    with pytest.raises(JobPostponed) as failed:
        await world.run(PurgeJob())

    assert failed.value.code == "STORAGE_REFUSED"
    assert victim.read_bytes() == b"rows"


async def test_nothing_behind_a_link_is_read(tmp_path: Path) -> None:
    world, directory, victim = make_world(tmp_path, TaskType.TABLE_PURGE)
    await world.write()
    (directory / "data" / "directory").symlink_to(victim.parent)

    with pytest.raises(StorageRefused):
        await world.base.read(world.location.child("data", "directory", "rows.parquet"))


async def test_a_table_whose_own_directory_is_a_link_is_purged(tmp_path: Path) -> None:
    """An operator may have moved it to another disk."""
    elsewhere = tmp_path / "disk"
    elsewhere.mkdir()
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "t").symlink_to(elsewhere)
    world, _, victim = make_world(tmp_path, TaskType.TABLE_PURGE)
    there = await world.write()

    assert (await world.run(PurgeJob())).files_deleted == len(there)
    assert not any(each for each in elsewhere.rglob("*") if each.is_file())
    assert victim.read_bytes() == b"rows"


async def test_nothing_behind_a_link_is_an_orphan(tmp_path: Path) -> None:
    world, directory, victim = make_world(tmp_path, TaskType.ORPHAN_FILE_REMOVAL)
    await world.write()
    (directory / "data" / "directory").symlink_to(victim.parent)
    (directory / "data" / "file.parquet").symlink_to(victim)
    world.order = msgspec.structs.replace(world.order, properties={"dryRun": "false"})

    await world.run(OrphanRemovalJob(least_age_s=-10.0))

    assert victim.read_bytes() == b"rows"
