"""A process of writers: opens a store, then writes whenever it is told to.

    python -m benchmarks.writer_process URL FIRST END ALL KEYS HOT

Its writers are FIRST to END of ALL, so that every writer of all processes has tables of its own. It reads
lines `SECONDS SEED` from its input and answers each with one line of JSON (`Report`).
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import uvloop
from msgspec import Struct

from benchmarks.loaded_store import keys_of, open_store, table_metadata
from benchmarks.writers import grouped, write_for
from cynosure.testing.workload import Items


class Report(Struct, frozen=True):
    """What one process did in one round."""

    acknowledged: int
    wall_s: float
    p99_s: float
    lost: int
    turns: int


class WriterProcess:
    """The other end: starts the process and talks to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def write(self, seconds: float, seed: int) -> Report:
        """Let it write for this long."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds} {seed}\n".encode())
        return msgspec.json.decode(await self._answer(), type=Report)

    async def ready(self) -> None:
        """Wait until the store is open."""
        await self._answer()

    async def _answer(self) -> bytes:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a writer process ended with {await self._process.wait()}")
        return line


@asynccontextmanager
async def start(url: str, writers: range, *, of: int, keys: int, hot: int) -> AsyncIterator[WriterProcess]:
    """A running process of writers."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.writer_process", url),
        *map(str, (writers.start, writers.stop, of, keys, hot)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield WriterProcess(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


async def _serve(url: str, first: int, end: int, of: int, total: int, hot: int) -> None:
    keys = keys_of(total)[:hot]
    loop = asyncio.get_running_loop()
    async with open_store(url) as persistence:
        items = Items(persistence.ids, payload=table_metadata())
        commit, counters = grouped(persistence), persistence.counters
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            seconds, seed = line.split()
            began_s, lost, turns = time.perf_counter(), counters.lost, counters.turns
            latencies_s = await write_for(
                commit, items, keys, range(first, end), of=of, seconds=float(seconds), seed=int(seed)
            )
            report = Report(
                acknowledged=len(latencies_s),
                wall_s=time.perf_counter() - began_s,
                p99_s=sorted(latencies_s)[len(latencies_s) * 99 // 100],
                lost=counters.lost - lost,
                turns=counters.turns - turns,
            )
            print(msgspec.json.encode(report).decode(), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(sys.argv[1], *map(int, sys.argv[2:])))
