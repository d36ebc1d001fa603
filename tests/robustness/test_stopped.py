"""A process that is stopped (SIGSTOP) for longer than everything it holds, and then goes on."""

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from cynosure.common.errors import Conflict
from cynosure.persistence.ids import NodeLeases, this_process
from cynosure.persistence.ids.snowflake import decompose
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import seal
from cynosure.persistence.spi import SYSTEM_REALM, ObjId, Row
from cynosure.server.settings import load_settings
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.storm.collecting import collect_once
from cynosure.testing.storm.ledger import Done, Failed, Started
from cynosure.testing.storm.writers import MAIN, Storm, open_storm, write_some
from cynosure.testing.workload import ITEM, Item

pytestmark = pytest.mark.anyio

WaitStopped = Callable[[ManagedProcess], Awaitable[None]]

# Everything in its order (see check_lifetimes), and so short that a test can outwait it.
BRIEF = {
    "persistence.commit_deadline": "500ms",
    "persistence.page_token_life": "1s",
    "persistence.gc.grace": "1500ms",
    "persistence.gc.rows_per_second": "0",
    "persistence.node_lease.duration": "1500ms",
    "persistence.node_lease.renewal": "300ms",
    "idempotency.lifetime": "600ms",
    "idempotency.buffer": "200ms",
    "idempotency.lease": "200ms",
}
SETTINGS = load_settings(environment={}, overrides=BRIEF).persistence
FLAGS = [flag for name, value in BRIEF.items() for flag in ("--set", f"{name}={value}")]
OUTWAIT_S = 1.7


async def test_a_writer_stopped_past_lease_and_grace_commits_nothing_stale_and_recovers(
    storms, rng: random.Random, wait_stopped: WaitStopped
) -> None:
    """I9, I14, I15, I16."""
    flags = ("--early-rows", "--stop-before-swap", "12", "--writers", "2")
    frozen = await storms.start("frozen", *flags, *FLAGS, seed=rng.getrandbits(32))
    await wait_stopped(frozen)
    (node,) = (event.node for event in storms.events("frozen") if isinstance(event, Started))

    async with open_storm(storms.url, SETTINGS) as persistence:
        await asyncio.sleep(OUTWAIT_S)
        # Others go on: they commit, collect what the stopped one had prepared, and take its node id.
        ledger, storm = storms.ledger("other"), Storm("other")
        await write_some(persistence, ledger, storm, rng, 3)
        prepared = await list_items(persistence)
        await persistence.collector().run()
        collected = prepared - await list_items(persistence)
        successor = await take_over(persistence, node)

        frozen.sigcont()
        await storms.wait_for("frozen", 5, frozen)
        await write_some(persistence, ledger, storm, rng, 3)
    await frozen.stop()

    assert node in {decompose(obj_id).node for obj_id in collected}
    assert successor == node
    events = storms.events("frozen")
    refused = next(at for at, event in enumerate(events) if isinstance(event, Failed))
    later = [event for event in events[refused:] if isinstance(event, Done)]
    assert node not in {decompose(ObjId(event.commit)).node for event in later}
    verdict = await storms.verify()
    assert verdict.problems == ()
    assert verdict.unknown == 0


async def test_a_collector_stopped_past_its_lease_is_replaced_and_stops_by_itself(
    storms, processes: Processes, tmp_path: Path, rng: random.Random, wait_stopped: WaitStopped
) -> None:
    """I15, I16, I17."""
    async with open_storm(storms.url, SETTINGS) as persistence:
        ledger, storm = storms.ledger("writer"), Storm("writer")
        await write_some(persistence, ledger, storm, rng, 5)
        garbage = await write_garbage(persistence, 1_200)
        argv = [sys.executable, "-m", "cynosure.testing.storm", "collect", "--store", storms.url]
        argv += ["--stop-before-delete", "2", "--lease", "1", *FLAGS]
        frozen = await processes.start("frozen", argv, cwd=tmp_path)
        await wait_stopped(frozen)
        assert garbage & await list_items(persistence)
        await write_some(persistence, ledger, storm, rng, 5)

        record = await collect_when_free(persistence)
        left = garbage & await list_items(persistence)
        await write_some(persistence, ledger, storm, rng, 5)
        frozen.sigcont()
        code = await frozen.wait_exit()
        await write_some(persistence, ledger, storm, rng, 5)

    assert (record.outcome, record.attempt) == ("succeeded", 2)
    assert left == set()
    assert code == 0
    assert "The collection lost" in frozen.log()
    verdict = await storms.verify()
    assert verdict.problems == ()
    assert verdict.committed == verdict.acknowledged > 0


async def list_items(persistence: Persistence) -> set[ObjId]:
    """Ids of all item rows, reachable or not."""
    found: set[ObjId] = set()
    after = None
    while heads := await persistence.backend.scan(after=after, limit=1_000):
        found |= {head.key.id for head in heads if head.key.type == ITEM.name}
        after = heads[-1].key
    return found


async def write_garbage(persistence: Persistence, rows: int) -> set[ObjId]:
    """Old rows that nothing reaches."""
    store, old_us = persistence.store(MAIN.realm, MAIN.catalog), persistence.clock.now_us() - 3_600_000_000
    ids = [persistence.ids.next() for _ in range(rows)]
    blob = seal(ITEM, Item(stable_id=ids[0], location=""))
    await persistence.backend.write([Row(store.key(ITEM, each), blob, created_us=old_us) for each in ids])
    return set(ids)


async def take_over(persistence: Persistence, node: int) -> int:
    """Lease this very node id, which is free because its holder was silent for too long."""

    class Wanting(Random):
        def sample(self, population, k, **_):
            return [node]

    leases = NodeLeases(
        persistence.store(SYSTEM_REALM),
        persistence.clock,
        Wanting(1),
        this_process(persistence.clock),
        skew_margin_s=0,
    )
    return (await leases.acquire()).node


async def collect_when_free(persistence: Persistence):
    async with asyncio.timeout(30):
        while True:
            try:
                return await collect_once(persistence, 1)
            except Conflict:
                await asyncio.sleep(0.1)
