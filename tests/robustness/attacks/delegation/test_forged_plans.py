"""Whoever could write to a table has prepared the place where its purge keeps its plans."""

import msgspec
import pytest

from cynosure.common.clock import SystemClock
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.delegation.jobs.purge.plan import Batch, Plan
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from tests.delegation.purge.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def world() -> World:
    return World(MemoryFileIO([Location.parse("s3://bkt")], SystemClock()), "s3://bkt/lake/t")


PLANS = {
    "nothing to do": Plan("abc", ()),
    "batches without files": Plan("abc", (Batch("abc-0-00000", 0, 5, 0, 0),)),
    "as many less as more": Plan(
        "abc", (Batch("abc-0-00000", 0, 5, 3, 0), Batch("abc-0-00001", 0, 5, -3, 0))
    ),
    "batches that are not there": Plan("abc", (Batch("abc-0-00000", 0, 5, 3, 30),)),
}


@pytest.mark.parametrize("kind", PLANS)
async def test_no_plan_of_a_stranger_ends_a_purge_with_files_left(world: World, kind: str) -> None:
    there = await world.write()
    folder = world.location.child("metadata", f".cynosure-purge-{world.order.task_id}")
    for number in range(6):
        await world.base.write(folder.child(f"plan-{number}"), msgspec.json.encode(PLANS[kind]))

    result = await world.run(PurgeJob())

    assert await world.list() == {}
    assert result.files_deleted == len(there)


async def test_a_marker_too_large_to_be_ours_is_not_read_into_memory(world: World) -> None:
    there = await world.write()
    place = world.location.child("metadata", f".cynosure-purge-{world.order.task_id}", "plan-0")
    await world.base.write(place, b'{"generation": "x", "batches": [' + b" " * (40 * 2**20) + b"]}")

    assert (await world.run(PurgeJob())).files_deleted == len(there)
    assert await world.list() == {}
