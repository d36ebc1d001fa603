"""Local files have no credentials: what a table's manifests name is looked at before Spark touches it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.live_files.decoding import list_manifests
from cynosure.delegation.jobs.port import JobContext, JobFailed
from cynosure.delegation.jobs.registry import open_jobs
from cynosure.iceberg.manifests.write_manifest import write_manifest_list
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.location import Location
from tests.delegation.purge.test_hostile import write_snapshot
from tests.delegation.purge.world import World

pytestmark = pytest.mark.anyio

ON_SPARK = (TaskType.SNAPSHOT_EXPIRY, TaskType.DATA_COMPACTION, TaskType.METADATA_COMPACTION)


class NotedSpark:
    """Notes what it is told to run."""

    def __init__(self) -> None:
        self.jobs: list[str] = []

    async def run(self, job: str, parameters: dict[str, Any], context: JobContext) -> dict[str, Any]:
        self.jobs.append(job)
        return {"files_deleted": 0, "bytes_deleted": 0}


def make_world(directory: Path, kind: TaskType) -> World:
    files = LocalFileIO([Location.parse(f"file://{directory}")])
    return World(files, f"file://{directory}/lake/t", task_type=kind)


async def run(world: World, kind: TaskType) -> list[str]:
    spark = NotedSpark()
    await world.run(open_jobs([kind])[kind], spark=spark)
    return spark.jobs


@pytest.mark.parametrize("kind", ON_SPARK)
async def test_a_table_of_its_own_files_is_worked_on(tmp_path: Path, kind: TaskType) -> None:
    world = make_world(tmp_path, kind)
    await world.write()

    assert len(await run(world, kind)) == 1


@pytest.mark.parametrize("kind", ON_SPARK)
@pytest.mark.parametrize(
    "outside", ["{base}/lake/t2/data/a", "file:///etc/passwd", "{base}/lake/t/../t2/a", "/etc/passwd"]
)
async def test_no_manifest_leads_to_files_of_others(tmp_path: Path, kind: TaskType, outside: str) -> None:
    world = make_world(tmp_path, kind)
    path = outside.format(base=f"file://{tmp_path}")
    listed, files = write_snapshot(world.location.text, (f"{world.location}/data/own", path))
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": listed})
    world.refresh()
    await world.write(files)

    with pytest.raises(JobFailed) as failed:
        await run(world, kind)
    assert (failed.value.code, failed.value.details["paths"]) == ("FILES_OUTSIDE", [path])


@pytest.mark.parametrize("how", ["a manifest elsewhere", "a list elsewhere", "called encrypted", "damaged"])
async def test_no_manifest_hides_what_it_names(tmp_path: Path, how: str) -> None:
    kind = TaskType.SNAPSHOT_EXPIRY
    world = make_world(tmp_path, kind)
    victim = f"file://{tmp_path}/lake/t2"
    listed, files = write_snapshot(world.location.text, (f"{victim}/data/a",))
    [manifest] = files.keys() - {listed}
    match how:
        case "a list elsewhere":
            listed, files = write_snapshot(victim, (f"{victim}/data/a",))
        case "a manifest elsewhere":
            _, others = write_snapshot(victim, (f"{victim}/data/a",))
            files[listed] = relist(victim)
            files |= others
        case "called encrypted":
            files[listed] = relist(world.location.text, key_metadata=b"key")
        case "damaged":
            files[manifest] = files[manifest][:-20]
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": listed})
    world.refresh()
    await world.write(files)

    with pytest.raises(JobFailed) as failed:
        await run(world, kind)
    assert failed.value.code == "FILES_OUTSIDE"


def relist(location: str, **changes: Any) -> bytes:
    """A list of the manifest that was made up for this location."""
    listed, files = write_snapshot(location, (f"{location}/data/a",))
    [line] = list_manifests(files[listed], listed)
    data, _, _ = write_manifest_list(
        [msgspec.structs.replace(line, **changes)],
        format_version=2,
        snapshot_id=5,
        parent_snapshot_id=None,
        sequence_number=9,
    )
    return data
