"""Sixteen writers on one reference: grouped, serialized, and every writer for itself (naive CAS).

One operation is one durable update of one of `hot` tables among `keys` (an entity of 2 KB, three indexes).
The writers are in one process and each has tables of its own, so that only the reference is contended.

    ./dev bench commit --set databases=sqlite --set seconds=4

A maintainer must not break: after every round the chain holds exactly the acknowledged requests.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from benchmarks.loaded_store import fresh_url, keys_of, load_tables, open_store, table_metadata
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, has, median, rate, ratio
from benchmarks.results_file import Result
from benchmarks.writers import WAYS, Commit, check_chain, current_sequence, requests_since, write_for
from cynosure.persistence.lifecycle import Persistence
from cynosure.testing.workload import Items

_seeds = count(1)


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    databases = options.get("databases", "sqlite,postgres").split(",")
    writers, seconds = options.get("writers", 16), options.get("seconds", 2.0)
    total, directory = options.get("keys", 20_000), options.get("directory", "")
    keys = keys_of(total)[: options.get("hot", 1_000)]
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for database in databases:
            url = await stack.enter_async_context(fresh_url(database, directory))
            persistence = await stack.enter_async_context(open_store(url))
            await load_tables(persistence, total, table_metadata())
            for way, commit_in in WAYS.items():
                candidates[f"{database}, {way}"] = _writing(
                    persistence, commit_in(persistence), keys, writers, seconds
                )
            candidates[f"{database}, one writer"] = _writing(
                persistence, WAYS["grouped"](persistence), keys, 1, seconds
            )
        yield candidates


def _writing(
    persistence: Persistence, commit: Commit, keys: Sequence[bytes], writers: int, seconds: float
) -> Round:
    items = Items(persistence.ids, payload=table_metadata())

    async def write(meter: Meter) -> None:
        sequence = await current_sequence(persistence)
        lost, reads = persistence.counters.lost, persistence.heads.reads
        with meter.measuring():
            latencies_s = await write_for(
                commit, items, keys, range(writers), of=writers, seconds=seconds, seed=next(_seeds)
            )
        meter.count(operations=len(latencies_s))
        commits = await current_sequence(persistence) - sequence
        meter.note("requests per commit", len(latencies_s) / commits)
        meter.note("p99 ms", sorted(latencies_s)[len(latencies_s) * 99 // 100] * 1e3)
        meter.note("head reads", (persistence.heads.reads - reads) / len(latencies_s))
        meter.note("lost swaps", persistence.counters.lost - lost)
        check_chain(in_chain=await requests_since(persistence, sequence), acknowledged=len(latencies_s))

    return write


def promises(result: Result) -> list[Promise]:
    """The figures of group commit."""
    found: list[Promise] = []
    for database, over_serialized, over_naive in (("sqlite", 3, 4), ("postgres", 5, 8)):
        for other, least in (("serialized", over_serialized), ("naive CAS", over_naive)):
            if has(result, f"{database}, grouped", f"{database}, {other}"):
                times = ratio(result, f"{database}, grouped", f"{database}, {other}", rate)
                found.append(Promise(f"{database}: grouped over {other}, times", "≥", least, times))
    for candidate, most_us in (("sqlite, grouped", 200), ("sqlite, one writer", 450)):
        if has(result, candidate):
            used_us = median(result, candidate, lambda each: each.cpu_s * 1e6 / each.operations)
            found.append(Promise(f"{candidate}: CPU per request, µs", "≤", most_us, used_us))
    return found
