"""Several processes on one reference: one process with 16 writers against four with 4 each.

One operation is one durable update of one of `hot` tables among `keys`; every writer has tables of its own.
The processes write at the same time; CPU is that of all of them together.

    ./dev bench processes --set databases=postgres --set seconds=4

A maintainer must not break: after every round the chain holds exactly the acknowledged requests.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from benchmarks import writer_process
from benchmarks.loaded_store import fresh_url, load_tables, open_store, table_metadata
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, has, rate, ratio
from benchmarks.results_file import Result
from benchmarks.writer_process import WriterProcess
from benchmarks.writers import check_chain, current_sequence, requests_since
from cynosure.persistence.lifecycle import Persistence

_seeds = count(1)


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    databases = options.get("databases", "sqlite,postgres").split(",")
    writers, seconds = options.get("writers", 16), options.get("seconds", 3.0)
    total, hot = options.get("keys", 20_000), options.get("hot", 1_000)
    directory = options.get("directory", "")
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for database in databases:
            url = await stack.enter_async_context(fresh_url(database, directory))
            persistence = await stack.enter_async_context(open_store(url))
            await load_tables(persistence, total, table_metadata())
            for processes in (1, 4):
                each = writers // processes
                started = [
                    await stack.enter_async_context(
                        writer_process.start(url, range(first, first + each), of=writers, keys=total, hot=hot)
                    )
                    for first in range(0, writers, each)
                ]
                await asyncio.gather(*(process.ready() for process in started))
                candidates[_name(database, processes)] = _writing(persistence, started, seconds)
        yield candidates


def _name(database: str, processes: int) -> str:
    return f"{database}, {processes} process{'es' if processes > 1 else ''}"


def _writing(persistence: Persistence, processes: Sequence[WriterProcess], seconds: float) -> Round:
    async def write(meter: Meter) -> None:
        sequence = await current_sequence(persistence)
        for process in processes:
            meter.watch(process.pid)
        with meter.measuring():
            reports = await asyncio.gather(*(process.write(seconds, next(_seeds)) for process in processes))
        acknowledged = [report.acknowledged for report in reports]
        meter.count(operations=sum(acknowledged))
        commits = await current_sequence(persistence) - sequence
        meter.note("requests per commit", sum(acknowledged) / commits)
        meter.note("lost per commit", sum(report.lost for report in reports) / commits)
        meter.note("turns per commit", sum(report.turns for report in reports) / commits)
        meter.note("p99 ms", max(report.p99_s for report in reports) * 1e3)
        meter.note("least share", min(acknowledged) * len(acknowledged) / sum(acknowledged))
        check_chain(in_chain=await requests_since(persistence, sequence), acknowledged=sum(acknowledged))

    return write


def promises(result: Result) -> list[Promise]:
    """The figure of several processes. (A lost update would have ended the run.)"""
    one, four = _name("postgres", 1), _name("postgres", 4)
    if not has(result, one, four):
        return []
    share = ratio(result, four, one, rate)
    return [Promise("postgres: 4 processes with 4 writers each over 1 with 16, times", "≥", 0.4, share)]
