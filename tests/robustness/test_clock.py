"""Clocks that are wrong, and node ids that are all taken."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import Unavailable
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.ids import NODE_LEASE, Owner
from cynosure.persistence.ids.node_lease import NodeLeaseRow, lease_id
from cynosure.persistence.ids.snowflake import NODES
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM
from cynosure.persistence.store import Store
from cynosure.testing.harness.processes import ManagedProcess
from cynosure.testing.storm.ledger import Failed

pytestmark = pytest.mark.anyio


async def test_a_clock_set_back_stops_commits_until_it_is_right_again(storms, rng: random.Random) -> None:
    """I14."""
    process = await storms.start("storm", "--clock-step", "3600", seed=rng.getrandbits(32))
    await storms.wait_for("storm", 10, process)

    async def is_refused(_: ManagedProcess) -> bool:
        return any(isinstance(event, Failed) for event in storms.events())

    os.kill(process.pid, signal.SIGUSR1)
    await process.wait_until(is_refused)
    os.kill(process.pid, signal.SIGUSR2)
    await storms.wait_for("storm", 10, process)
    process.kill9()

    assert {event.error for event in storms.events() if isinstance(event, Failed)} == {"ClockFault"}
    assert (await storms.verify()).problems == ()


async def test_with_all_node_ids_leased_a_start_is_refused_and_told_when_one_is_free(tmp_path: Path) -> None:
    """I14."""
    url, clock = f"sqlite:{tmp_path}/store.db", SystemClock()
    async with open_persistence(url, initialise=True):
        pass
    backend = open_backend(url)
    rng = random.Random(1)
    system = Store(backend, ObjectCache(1 << 20, clock), clock, rng, realm=SYSTEM_REALM, catalog=REALM_SCOPE)
    now_us = clock.now_us()

    def leased(node: int) -> NodeLeaseRow:
        owner = Owner(host="elsewhere", pid=node, started_us=now_us)
        until_us = now_us + (90 if node == 7 else 600) * 1_000_000
        return NodeLeaseRow(
            holder="h", leased_until_us=until_us, owner=owner, granted_us=now_us, renewed_us=now_us
        )

    async def lease(node: int) -> None:
        if await system.insert(NODE_LEASE, lease_id(node), leased(node)) is None:
            row = await system.fetch(NODE_LEASE, lease_id(node))
            assert row is not None
            assert await system.swap(NODE_LEASE, row, leased(node))

    await asyncio.gather(*map(lease, range(NODES)))
    await backend.close()

    with pytest.raises(Unavailable) as refused:
        async with open_persistence(url):
            pytest.fail("opened")

    assert "1024 node ids" in refused.value.message
    assert 30 <= int(refused.value.details["free_in_s"]) <= 95
    assert "store status" in refused.value.fix
