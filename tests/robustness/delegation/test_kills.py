"""Whoever works on a purge is killed at random, five times in the suite and fifty in `./dev soak delegation`.

Which request to the storage or the catalog is on its way when it happens is drawn from the seed, which pytest
prints at its start; each test prints its point.
"""

import asyncio
import random
from collections.abc import AsyncIterator

import psutil
import pytest
from pyiceberg.catalog import load_catalog

from cynosure.testing.delegated_servers import SCHEMA, Scene, Table, open_scene
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server
from tests.names import unique
from tests.robustness.conftest import IS_SOAK
from tests.robustness.delegation.spark_env import spark_env

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

SMALL, LARGE, THRESHOLD = 1_100, 2_200, 1_500
"""Files of a table that the service purges by itself, and of one for which it needs Spark."""
VICTIMS = {
    "service": SMALL,
    "catalog": SMALL,
    "service alone": SMALL,
    "driver": LARGE,
    "java": LARGE,
}


@pytest.fixture(scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str, minio: S3Server
) -> AsyncIterator[Scene]:
    directory = tmp_path_factory.mktemp("kills")
    with Processes(directory) as processes:
        async with open_scene(processes, directory, minio, service_env=spark_env(THRESHOLD)) as scene:
            await scene.pair.start_service()
            # Its name and place begin with those of all others.
            await scene.make_table("t", files=50)
            yield scene


@pytest.fixture(scope="module")
async def points(scene: Scene) -> int:
    """How many requests a purge without trouble makes."""
    table = await scene.make_table(unique("undisturbed"), files=SMALL)
    others = scene.see().without(table.objects)
    scene.gate.arm(0)
    await scene.drop(table)
    await scene.check_purged(table, others)
    assert scene.answers == [204]
    return scene.gate.passed


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(50 if IS_SOAK else len(VICTIMS)))
async def test_a_purge_ends_whoever_was_killed_and_touches_nothing_else(
    scene: Scene, points: int, number: int, rng: random.Random
) -> None:
    chance = random.Random(f"{rng.getrandbits(64)} {number}")
    victim = [*VICTIMS][number % len(VICTIMS)]
    files = VICTIMS[victim] if number < len(VICTIMS) else max(VICTIMS[victim], chance.choice([SMALL, LARGE]))
    point = chance.randint(1, points)
    print(f"{victim} is killed at request {point} of about {points}, {files} files")

    await kill_once(scene, unique(f"t{number}"), victim, files, point)

    assert "task.unexpected_error" not in scene.services[0].log_tail(100_000)


async def kill_once(scene: Scene, name: str, victim: str, files: int, point: int) -> None:
    table = await scene.make_table(name, files=files)
    others = scene.see().without(table.objects)
    scene.gate.arm(point)
    drop = asyncio.create_task(scene.drop(table))
    try:
        await scene.gate.wait_reached(drop)
        await kill(scene, victim)
        scene.gate.disarm()
        for process in (scene.pair.catalog.process, scene.services[0]):
            if not process.is_running:
                await process.restart()
        expected = await make_again(scene, table)
        await drop
    finally:
        drop.cancel()
    others |= scene.see(expected.location)

    task = await scene.check_purged(table, others)

    await check_free(scene, table)
    # The last attempt tells of itself alone: of a large table little may have been left to it.
    assert files > THRESHOLD or not task["execution_result"]["details"]["on_spark"]
    assert await asyncio.to_thread(read_ids, scene, name) == [0, 1]
    # Whoever did not hear it asks again, and hears the same: of the new table nothing is dropped.
    if (await scene.tasks(table))[1:] == []:
        assert (await scene.drop_once(table)).status_code == 204
    assert scene.see(expected.location) == expected.objects


async def check_free(scene: Scene, old: Table) -> None:
    """Its place can be another table's."""
    wanted = {"name": f"{old.name}-there", "schema": SCHEMA, "location": old.location}
    async with scene.lake.client() as http:
        made = await http.post(f"{scene.lake.url}/namespaces/ns/tables", json=wanted)
    assert made.status_code == 200, made.text


async def make_again(scene: Scene, old: Table) -> Table:
    """A table under the same name, as soon as it is free."""

    async def is_free() -> bool:
        return await scene.load(old.name) is None

    await scene.until(is_free, "the name was never free")
    made = await scene.make_table(old.name, rows=2)
    assert made.location != old.location
    return made


async def kill(scene: Scene, victim: str) -> None:
    service = scene.services[0]
    match victim:
        case "catalog":
            scene.pair.catalog.process.kill9()
        case "service":
            service.kill9()
        case "service alone":
            left = psutil.Process(service.pid).children(recursive=True)
            service.kill9(only_parent=True)
            # What it started ends by itself.
            _, alive = await asyncio.to_thread(psutil.wait_procs, left, 60)
            assert not alive
        case "driver" | "java":
            find = scene.spark_driver if victim == "driver" else scene.java

            async def is_there() -> bool:
                return find() is not None

            await scene.until(is_there, "Spark was not used")
            process = find()
            assert process is not None
            process.kill()


def read_ids(scene: Scene, name: str) -> list[int]:
    """All rows of a table, by another client."""
    rest = scene.lake.to_rest()
    catalog = load_catalog("c", type="rest", uri=rest.uri, **rest.properties)
    return sorted(catalog.load_table(f"ns.{name}").scan().to_arrow()["id"].to_pylist())
