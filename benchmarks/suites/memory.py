"""Resident memory of a process that serves a large catalog from a small cache.

One operation is one lookup of a table (head, index, entity) or one update, chosen evenly from all tables, in
a fresh process. The figure is the most resident memory above the configured cache.

    ./dev bench memory --set keys=1000000 --set directory=SOMEWHERE      (kept there for the next run)

A maintainer must not break: the process that is measured has not loaded the store itself.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from benchmarks.loaded_store import kept_url
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, has, median
from benchmarks.results_file import Result
from benchmarks.serving_process import WRITERS, Served

MIB = 1 << 20


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    total, directory = options.get("keys", 1_000_000), options.get("directory", "")
    lookups, updates = options.get("lookups", 20_000), options.get("updates", 500)
    caches_mib = [int(size) for size in options.get("caches_mib", "64,256").split(",")]
    async with kept_url(total, directory) as url:

        def serving(cache_mib: int) -> Round:
            async def serve(meter: Meter) -> None:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "benchmarks.serving_process", url),
                    *map(str, (total, cache_mib * MIB, lookups, updates)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                )
                assert process.stdin is not None
                assert process.stdout is not None
                meter.watch(process.pid)
                with meter.measuring():
                    answer = await process.stdout.readline()
                process.stdin.close()
                await process.wait()
                served = msgspec.json.decode(answer, type=Served)
                meter.count(operations=lookups + WRITERS * updates)
                meter.note("MiB before", served.before_bytes / MIB)
                meter.note("RSS MiB", served.rss_bytes / MIB)
                meter.note("cache MiB", served.cache_bytes / MIB)
                meter.note("cached objects", served.cached_objects)
                meter.note("above cache MiB", served.rss_bytes / MIB - cache_mib)

            return serve

        yield {f"cache of {cache_mib} MiB": serving(cache_mib) for cache_mib in caches_mib}


def promises(result: Result) -> list[Promise]:
    """Resident memory, whatever the cache."""
    return [
        Promise(
            f"{candidate}: resident memory above it, MiB",
            "≤",
            100,
            median(result, candidate, lambda figures: figures.notes["above cache MiB"]),
        )
        for candidate in result.candidates
        if has(result, candidate)
    ]
