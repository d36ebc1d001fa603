"""Manifests that are small in storage and large in memory."""

import tracemalloc
import zlib

import pytest

from cynosure.common.clock import SystemClock
from cynosure.delegation.jobs.live_files.decoding import list_content
from cynosure.delegation.jobs.port import JobFailed
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.iceberg.errors import InvalidManifest
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.location import Location
from tests.delegation.purge.test_hostile import write_snapshot
from tests.delegation.purge.world import World

pytestmark = pytest.mark.anyio

SYNC_BYTES = 16
MEGABYTE = 2**20


def make_bomb(manifest: bytes, megabytes: int) -> bytes:
    """A manifest with one more block, of zeros."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    parts = [packer.compress(bytes(MEGABYTE)) for _ in range(megabytes)]
    block = b"".join(parts) + packer.flush()
    return manifest + number(1_000_000) + number(len(block)) + block + manifest[-SYNC_BYTES:]


def number(value: int) -> bytes:
    """As Avro writes one."""
    left, written = value << 1, bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def test_a_block_is_not_unpacked_beyond_what_writers_make() -> None:
    listed, files = write_snapshot("s3://bkt/lake/t", ("s3://bkt/lake/t/data/a",))
    [path] = files.keys() - {listed}
    bomb = make_bomb(files[path], 200)
    assert len(bomb) < 2 * MEGABYTE

    tracemalloc.start()
    try:
        with pytest.raises(InvalidManifest):
            list_content(bomb, path, None, with_deleted=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 100 * MEGABYTE


async def test_a_purge_goes_around_it_and_tells() -> None:
    world = World(MemoryFileIO([Location.parse("s3://bkt")], SystemClock()), "s3://bkt/lake/t")
    listed, files = write_snapshot(world.location.text, (f"{world.location}/data/a",))
    [path] = files.keys() - {listed}
    files[path] = make_bomb(files[path], 40)
    world.metadata["snapshots"].append({"snapshot-id": 5, "manifest-list": listed})
    world.refresh()
    await world.write(files)

    with pytest.raises(JobFailed) as failed:
        await world.run(PurgeJob())

    assert (failed.value.code, failed.value.details["result"]["corrupt"]) == ("CORRUPT_MANIFEST", [path])
