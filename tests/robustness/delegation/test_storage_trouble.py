"""Purges from a storage that is slow and whose credentials end soon, and from one that cannot keep up."""

import asyncio
import time
from pathlib import Path

import pytest

from cynosure.testing.delegated_servers import Scene, Table, open_scene
from cynosure.testing.harness.faults import Delay, Respond
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server
from tests.engines.short_lived import ShortLived, short_lived

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

FILES = 1_100
SLOWLY = Delay(answer_s=0.5)
SLOW_DOWN = Respond(503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>")


async def test_a_purge_ends_with_credentials_that_end_sooner_and_though_every_third_request_is_refused(
    processes: Processes, tmp_path: Path, minio: S3Server, seaweedfs: S3Server
) -> None:
    """At the same time, because the first has to take long."""
    with short_lived(seaweedfs) as tokens:
        async with (
            open_scene(processes, tmp_path, minio, seed=7) as busy,
            busy.beside("slow", seaweedfs, storage={"stsEndpoint": tokens.url}) as slow,
        ):
            await busy.pair.start_service()
            tables = [await scene.make_table("t", files=FILES) for scene in (busy, slow)]
            refusing = busy.storage.add(SLOW_DOWN, times=None, chance=0.3)
            slow.storage.add(SLOWLY, times=None)

            await asyncio.gather(purge(busy, tables[0]), purge_slowly(slow, tables[1], tokens))

            assert refusing.hits >= 3


async def purge(scene: Scene, table: Table) -> None:
    others = scene.see().without(table.objects)
    await scene.drop(table)
    await scene.check_purged(table, others)


async def purge_slowly(scene: Scene, table: Table, tokens: ShortLived) -> None:
    earlier, started_s = len(tokens.given), time.monotonic()
    await purge(scene, table)
    given = tokens.given[earlier:]
    assert len(given) >= 2, f"renewed, if it took longer: {time.monotonic() - started_s:.0f} s"
    assert not await asyncio.to_thread(tokens.is_taken, given[0]), "the first would have lasted to the end"
