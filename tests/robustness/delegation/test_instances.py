"""Two catalog servers, two delegation services, PostgreSQL under both, and many drops at once."""

import asyncio
from pathlib import Path

import pytest

from cynosure.testing.delegated_servers import check_history, open_scene
from cynosure.testing.delegation_server import PREFIX
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server

pytestmark = [pytest.mark.anyio, pytest.mark.s3, pytest.mark.postgres]

TABLES = 30


async def test_many_drops_at_once_are_shared_among_instances_and_each_is_done_once(
    processes: Processes,
    tmp_path: Path,
    minio: S3Server,
    postgres_schema_url: str,
    shared_schema_url: str,
) -> None:
    """I94."""
    env = {
        "CYNOSURE_PERSISTENCE__URL": postgres_schema_url,
        "CYNOSURE_KEYRING__FILE": str(tmp_path / "keyring.json"),
    }
    store = {f"{PREFIX}SERVICE__STORE": shared_schema_url}
    async with open_scene(processes, tmp_path, minio, env=env, service_env=store) as scene:
        other, *_ = await asyncio.gather(
            scene.pair.start_catalog("other"),
            scene.pair.start_service("first"),
            scene.pair.start_service("second", port="0"),
        )
        urls = [scene.lake.url, other.get(scene.lake.name).url]
        beside = await scene.make_table("t", files=20)
        tables = await asyncio.gather(
            *(scene.make_table(f"t{number}", rows=number % 5 == 0) for number in range(TABLES))
        )

        answers = await asyncio.gather(
            *(scene.drop_once(table, url=urls[number % 2]) for number, table in enumerate(tables))
        )

        assert [each.status_code for each in answers] == [204] * TABLES, [each.text for each in answers]
        assert scene.see() == beside.objects
        assert await scene.tombstones() == []
        workers: set[str] = set()
        for table in tables:
            [task] = await scene.tasks(table)
            result = task["execution_result"]
            assert task["status"] == "SUCCESS"
            assert (result["files_deleted"], result["bytes_deleted"]) == (
                len(table.objects),
                table.objects.bytes,
            )
            versions = await scene.history(task["task_id"])
            check_history(versions)
            workers |= {each["worker"] for each in versions if each["status"] == "ACQUIRING_RESOURCES"}
        assert len(workers) == 2
