"""A service that is stopped (SIGSTOP) while it works, and goes on when another one has finished its task."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cynosure.testing.delegated_servers import Scene, Table, open_scene
from cynosure.testing.delegation_server import PREFIX
from cynosure.testing.harness.faults import Delay, Fault, Request, Respond
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.s3_servers import S3Server
from tests.names import unique
from tests.robustness.conftest import IS_SOAK
from tests.robustness.delegation.spark_env import spark_env

pytestmark = [pytest.mark.anyio, pytest.mark.s3, pytest.mark.postgres]

FILES, LARGE, THRESHOLD = 2_100, 4_500, 4_000
"""Files of a table that the service purges by itself, and of one for which it needs Spark."""
TAKEN_AWAY = '"task.taken_away"'
SLOW_DOWN = Respond(503, b"<Error><Code>SlowDown</Code></Error>")


def deletes(request: Request) -> bool:
    return request.method == "DELETE" or (request.method == "POST" and "delete" in request.path)


def plans(request: Request) -> bool:
    return request.method == "PUT" and ".cynosure-purge-" in request.path


def changes(request: Request) -> bool:
    return request.method in ("PUT", "POST", "DELETE")


@pytest.fixture(scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str, minio: S3Server, shared_schema_url: str
) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("stopped")
    store = {**spark_env(THRESHOLD), f"{PREFIX}SERVICE__STORE": shared_schema_url}
    with Processes(directory) as processes:
        async with open_scene(processes, directory, minio, service_env=store) as scene:
            await scene.pair.start_service("first")
            yield scene


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("when", "number", "fault", "files"),
    [
        # Done, but not heard of.
        pytest.param(deletes, 2, Delay(answer_s=1.0), FILES, id="deleting"),
        # Refused, so that whoever hears of it wants to try again.
        pytest.param(deletes, 2, SLOW_DOWN, FILES, id="deleting-again"),
        pytest.param(plans, 2, SLOW_DOWN, FILES, id="planning-again"),
        # Two sessions of Spark: in the long run only.
        *([pytest.param(deletes, 2, SLOW_DOWN, LARGE, id="deleting-on-spark")] if IS_SOAK else []),
    ],
)
async def test_one_that_was_stopped_changes_nothing_after_another_has_taken_its_task(
    scene: Scene, request: pytest.FixtureRequest, when, number: int, fault: Fault, files: int
) -> None:
    """I94, I95."""
    first, name = scene.services[0], unique(request.node.callspec.id)
    table = await scene.make_table(name, files=files)
    beside = await scene.make_table(f"{name}-2", files=10)
    scene.gate.arm(number, when=when, fault=fault)
    drop = asyncio.create_task(scene.drop_once(table))
    await scene.gate.wait_reached(drop)
    lost = first.log().count(TAKEN_AWAY)
    first.sigstop()
    try:
        scene.gate.disarm()
        assert scene.see(table.location)
        second = await scene.pair.start_service(f"second-{name}", port="0")
        await until_done(scene, second)
        assert not scene.see(table.location)
        # What the stopped one was about to delete is there again: now it would be somebody else's.
        sentinels = sorted(table.objects)[::7]
        await scene.put(sentinels, b"sentinel")
        seen = scene.storage.record(changes)
    finally:
        first.sigcont()
    answer = await drop
    await until_lost(scene, first, lost + 1)
    await asyncio.sleep(2)  # Whatever it repeats by itself, it repeats within this.

    assert [(each.method, each.path) for each in seen] == []
    assert sorted(scene.see(table.location)) == sentinels
    assert scene.see(beside.location) == beside.objects
    if answer.status_code == 504:  # It took longer than anybody waits.
        answer = await scene.drop_once(table)
    assert answer.status_code == 204
    await check_once(scene, table)
    assert await second.stop() == 0


async def until_done(scene: Scene, service: ManagedProcess) -> None:
    async def is_done() -> bool:
        return '"task.succeeded"' in service.log()

    await scene.until(is_done, "the second service did not finish it")


async def until_lost(scene: Scene, service: ManagedProcess, times: int) -> None:
    async def is_lost() -> bool:
        return service.log().count(TAKEN_AWAY) >= times

    await scene.until(is_lost, "the first service did not notice")


async def check_once(scene: Scene, table: Table) -> None:
    [task] = await scene.tasks(table)
    result = task["execution_result"]
    assert task["status"] == "SUCCESS"
    assert (result["files_deleted"], result["bytes_deleted"]) == (len(table.objects), table.objects.bytes)
    versions = await scene.history(task["task_id"])
    leased = [each["worker"] for each in versions if each["status"] == "ACQUIRING_RESOURCES"]
    assert len(leased) == 2
    assert leased[0] != leased[1] == versions[-1].get("worker", leased[1])
