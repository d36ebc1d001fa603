"""Ways to commit: grouped, serialized, and every writer for itself.

A maintainer must not break: all three are made of the same production parts and differ only in who swaps
when; and what was acknowledged is counted here, to be compared with the chain.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from benchmarks.loaded_store import MAIN
from cynosure.common.retry import Backoff
from cynosure.persistence.commit import Committer, Request, State
from cynosure.persistence.commit.build import build_commit
from cynosure.persistence.commit.view import Draft
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import INDEXES
from cynosure.testing.workload import Items

Commit = Callable[[Request[int]], Awaitable[object]]
"""Commits one request; returns when it is durable."""


def grouped(persistence: Persistence) -> Commit:
    """As a server commits: one queue, one swap for all that wait."""
    return persistence.committer(MAIN).commit


def serialized(persistence: Persistence) -> Commit:
    """The same queue, one swap per request."""
    limits = replace(persistence.limits, group_requests=1)
    return Committer(
        MAIN,
        store=persistence.store(MAIN.realm, MAIN.catalog),
        heads=persistence.heads,
        ids=persistence.ids,
        clock=persistence.clock,
        rng=persistence.rng,
        limits=limits,
        counters=persistence.counters,
        indexes=INDEXES[MAIN.name],
    ).commit


def naive(persistence: Persistence) -> Commit:
    """Every writer for itself: read the head, apply, swap; when lost, wait a random while and start again."""
    store = persistence.store(MAIN.realm, MAIN.catalog)
    limits = persistence.limits

    async def commit(request: Request[int]) -> None:
        backoff = Backoff(persistence.clock, persistence.rng, deadline_s=limits.deadline_s)
        while True:
            ref = await persistence.heads.load(MAIN)
            state = await State.load(store, ref.head)
            prepared = await request.prepare(state)
            objects = [store.encode(new) for new in prepared.objects]
            draft = Draft(state)
            draft.add(prepared.changes, prepared.objects)
            built = await build_commit(
                draft,
                ref,
                [(request, prepared)],
                ids=persistence.ids,
                now_us=persistence.clock.now_us(),
                limits=limits,
                indexes=INDEXES[MAIN.name],
            )
            objects += built.objects
            rows = [row for each in objects for row in each.rows]
            if await store.backend.swap_ref(ref, built.ref, rows):
                for each in objects:
                    store.remember(each)
                return
            if not await backoff.wait():
                raise TimeoutError("a writer got no commit through before its deadline")

    return commit


WAYS: dict[str, Callable[[Persistence], Commit]] = {
    "grouped": grouped,
    "serialized": serialized,
    "naive CAS": naive,
}


async def write_for(
    commit: Commit, items: Items, keys: Sequence[bytes], writers: range, *, of: int, seconds: float, seed: int
) -> list[float]:
    """Let some `of` all writers update random tables, for this long. The latency of every commit, in s.

    Every writer has tables of its own: this is about contention on the reference only.
    """
    end_s = time.perf_counter() + seconds
    latencies_s: list[float] = []

    async def write_on(number: int) -> None:
        chance = random.Random(seed * 1000 + number)
        while (began_s := time.perf_counter()) < end_s:
            at = chance.randrange(number, len(keys), of)
            await commit(items.add_all([(keys[at], 1)]))
            latencies_s.append(time.perf_counter() - began_s)

    async with asyncio.TaskGroup() as group:
        for number in writers:
            group.create_task(write_on(number))
    return latencies_s


async def requests_since(persistence: Persistence, sequence: int) -> int:
    """How many requests the reference's history holds after the commit with this sequence number."""
    store = persistence.store(MAIN.realm, MAIN.catalog)
    requests = 0
    async for entry in walk_log(store, (await persistence.heads.load(MAIN)).head):
        if entry.record.sequence <= sequence:
            break
        requests += len(entry.record.requests)
    return requests


async def current_sequence(persistence: Persistence) -> int:
    """The sequence number of the reference's head."""
    return (await persistence.committer(MAIN).read()).state.commit.record.sequence


def check_chain(*, in_chain: int, acknowledged: int) -> None:
    """Every acknowledged request is in the chain, once, and nothing else is."""
    if in_chain != acknowledged:
        raise AssertionError(f"{acknowledged} commits were acknowledged, but the chain holds {in_chain}")
