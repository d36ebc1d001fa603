"""A purge on a real server that is often too busy, with credentials that live for seconds."""

import random
from typing import Any

import pytest

from cynosure.common.clock import SystemClock
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.faults import Respond
from cynosure.testing.s3_servers import S3Server
from tests.delegation.purge.test_purge import list_all, write_neighbours
from tests.delegation.purge.world import World
from tests.storage.test_open_vended import give

pytestmark = pytest.mark.anyio


async def test_a_purge_ends_though_a_third_of_all_requests_is_refused(
    on_s3: World, sts_server: S3Server, fault_proxy: Any
) -> None:
    """And though its credentials are renewed all the time."""
    there = await on_s3.write()
    beside = await write_neighbours(on_s3)
    proxy = await fault_proxy(sts_server.endpoint)
    rng = random.Random(7)
    refused = renewed = 0

    def is_refused(_: object) -> bool:
        nonlocal refused
        is_chosen = rng.random() < 0.3
        refused += is_chosen
        return is_chosen

    slow_down = Respond(status=503, body=b"<Error><Code>SlowDown</Code></Error>")
    proxy.add(slow_down, when=is_refused, times=None)
    clock = SystemClock()

    async def renew() -> dict[str, str]:
        nonlocal renewed
        renewed += 1
        soon_ms = clock.now_us() // 1000 + 400
        vended = await give(sts_server, on_s3.location)
        return vended | {"s3.endpoint": proxy.url, "s3.session-token-expires-at-ms": str(soon_ms)}

    on_s3.files.inner = open_vended(await renew(), [on_s3.location], StorageSettings(retries=2), clock, renew)
    for _ in range(10):
        try:
            result = await on_s3.run(PurgeJob(batch_files=4))
            break
        except StorageUnavailable:
            continue  # the worker would try again later
    else:
        pytest.fail("the purge does not end")

    assert (result.files_deleted, result.bytes_deleted) == (len(there), sum(there.values()))
    assert await list_all(on_s3) == beside
    assert refused > 5
    assert renewed > 2
