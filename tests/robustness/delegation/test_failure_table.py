"""The failure table of the proposal, row by row, with real processes."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from cynosure.testing.delegated_servers import Objects, Scene, Table, open_scene
from cynosure.testing.delegation_server import PREFIX
from cynosure.testing.harness.faults import Request, Respond
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.s3_servers import S3Server
from tests.names import unique

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

FILES = 1_100
REFUSED = Respond(403, b"<Error><Code>AccessDenied</Code></Error>")


@pytest.fixture(scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str, minio: S3Server
) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("rows")
    # So that a request that waits for a dead service ends.
    env = {f"{PREFIX}SYNC_TIMEOUT": "4s"}
    once = {f"{PREFIX}RETRY__TABLE_PURGE__MAX_ATTEMPTS": "1"}
    with Processes(directory) as processes:
        async with open_scene(processes, directory, minio, env=env, service_env=once) as scene:
            await scene.pair.start_service()
            yield scene


@pytest.fixture
async def service(scene: Scene) -> AsyncIterator[ManagedProcess]:
    """Running before each test, and again after it."""
    yield scene.services[0]
    scene.gate.disarm()
    if not scene.services[0].is_running:
        await scene.services[0].restart()


def deletes(request: Request) -> bool:
    return request.method == "POST" and "delete" in request.path


def with_new_key(table: Table) -> Table:
    return table._replace(key=str(uuid.uuid4()))


async def check_unchanged(scene: Scene, table: Table, before: dict) -> None:
    found = await scene.load(table.name)
    assert found is not None
    assert found["metadata-location"] == before["metadata-location"]
    assert scene.see(table.location) == table.objects
    assert await scene.tombstones(table) == []


async def test_row_1_the_service_is_down_and_the_table_is_as_it_was(
    scene: Scene, service: ManagedProcess
) -> None:
    table = await scene.make_table(unique("row-1"))
    others, before = scene.see().without(table.objects), await scene.load(table.name)
    service.kill9()

    refused = await scene.drop_once(table)

    assert refused.status_code == 503
    assert "does not answer" in refused.text
    await check_unchanged(scene, table, before)
    await service.restart()
    again = with_new_key(table)
    assert (await scene.drop_once(again)).status_code == 204
    await scene.check_purged(table, others)


async def test_row_2_no_credentials_are_vended_and_the_table_is_as_it_was(
    scene: Scene, service: ManagedProcess, minio: S3Server
) -> None:
    async with scene.beside(unique("bare"), minio, has_rights=False) as bare:
        table = await bare.make_table(unique("row-2"))
        before = await bare.load(table.name)

        refused = await bare.drop_once(table)

        assert refused.status_code == 502
        assert "CREDENTIAL_VENDING_FAILED" in refused.text
        [task] = await bare.tasks(table)
        assert (task["status"], task["error_code"]) == ("FAILURE", "CREDENTIAL_VENDING_FAILED")
        await check_unchanged(bare, table, before)
        await scene.pair.init()  # The right is given.
        assert (await bare.drop_once(with_new_key(table))).status_code == 204
        assert (await bare.check_purged(table, Objects()))["attempt_count"] == 1


async def test_row_3_the_service_dies_midway_and_goes_on_when_it_is_back(
    scene: Scene, service: ManagedProcess
) -> None:
    table = await scene.make_table(unique("row-3"), files=FILES)
    others = scene.see().without(table.objects)
    scene.gate.arm(1, when=deletes)
    drop = asyncio.create_task(scene.drop_once(table))
    await scene.gate.wait_reached(drop)
    service.kill9()
    scene.gate.disarm()

    assert (await drop).status_code == 504
    left = table.objects.keys() & scene.see(table.location).keys()
    assert 0 < len(left) < len(table.objects)
    assert await scene.load(table.name) is None
    assert [each["state"] for each in await scene.tombstones(table)] == ["purging"]
    # Nobody asks again: the service goes on by itself, and the catalog looks after it.
    await service.restart()

    async def is_gone() -> bool:
        return await scene.tombstones(table) == []

    await scene.until(is_gone, "the purge did not go on")
    await scene.check_purged(table, others)
    assert (await scene.drop_once(table)).status_code == 204


async def test_row_3_what_cannot_go_on_waits_for_an_operator(scene: Scene, service: ManagedProcess) -> None:
    table = await scene.make_table(unique("row-3-refused"), files=FILES)
    others = scene.see().without(table.objects)
    # The first batch goes; from then on the storage lets nothing be deleted.
    scene.storage.add(REFUSED, when=deletes, skip=1, times=None)

    answer = None
    while answer is None or answer.status_code == 504:
        answer = await scene.drop_once(table)

    assert answer.status_code == 500
    [task] = await scene.tasks(table)
    assert f"cynosure tasks retry {task['task_id']}" in answer.text
    assert (task["status"], task["error_code"], task["is_begun"]) == ("FAILURE", "STORAGE_REFUSED", True)
    assert scene.see(table.location)
    scene.storage.clear()
    assert (await scene.ask_task(task["task_id"], "retry")).status_code == 200
    assert (await scene.drop_once(table)).status_code == 204
    await scene.check_purged(table, others)


async def test_row_4_the_service_dies_after_the_last_deletion_and_before_it_says_so(
    scene: Scene, service: ManagedProcess
) -> None:
    table = await scene.make_table(unique("row-4"), files=FILES)
    others = scene.see().without(table.objects)
    # The plan is what goes last.
    scene.gate.arm(1, when=lambda request: deletes(request) and b"/plan-0" in request.data)
    drop = asyncio.create_task(scene.drop_once(table))
    await scene.gate.wait_reached(drop)

    async def is_gone() -> bool:
        return not scene.see(table.location)

    await scene.until(is_gone, "the plan was not the last")
    service.kill9()
    scene.gate.disarm()

    assert (await drop).status_code == 504
    assert await scene.load(table.name) is None
    assert len(await scene.tombstones(table)) == 1
    await service.restart()
    assert (await scene.drop_once(table)).status_code == 204
    task = await scene.check_purged(table, others)
    assert task["attempt_count"] == 2
