"""A process that serves a large catalog: random lookups and updates over all of its tables.

    python -m benchmarks.serving_process URL TABLES CACHE_BYTES LOOKUPS UPDATES

Prints one line of JSON (`Served`) when it is done, and ends with its input.
"""

import asyncio
import random
import sys

import msgspec
import psutil
import uvloop
from msgspec import Struct

from benchmarks.loaded_store import MAIN, incompressible, open_store
from benchmarks.suites.index import table_name
from cynosure.persistence.commit import find_object
from cynosure.persistence.index import encode_key
from cynosure.persistence.settings import PersistenceSettings
from cynosure.testing.workload import ITEM, Items

WRITERS = 8
"""Updates that are made at a time."""
_SAMPLE_EVERY = 500


class Served(Struct, frozen=True):
    """What it took."""

    before_bytes: int
    """Resident memory before the first lookup."""
    rss_bytes: int
    """The most resident memory seen while serving."""
    cache_bytes: int
    """What the cache weighs its content at."""
    cached_objects: int


async def _serve(url: str, total: int, cache_bytes: int, lookups: int, updates: int) -> Served:
    chance = random.Random(11)
    process = psutil.Process()

    def random_key() -> bytes:
        return encode_key(*table_name(chance.randrange(total), total))

    async with open_store(url, PersistenceSettings(cache_bytes=cache_bytes)) as persistence:
        items = Items(persistence.ids, payload=incompressible())
        committer = persistence.committer(MAIN)
        before_bytes = most_bytes = process.memory_info().rss
        for number in range(max(lookups, updates)):
            if number < lookups:
                state = (await committer.read()).state
                if await find_object(state, "names", random_key(), ITEM) is None:
                    raise AssertionError("a table is missing")
            if number < updates:
                changes = [items.add_all([(random_key(), 1)]) for _ in range(WRITERS)]
                await asyncio.gather(*map(committer.commit, changes))
            if number % _SAMPLE_EVERY == 0:
                most_bytes = max(most_bytes, process.memory_info().rss)
        most_bytes = max(most_bytes, process.memory_info().rss)
        return Served(before_bytes, most_bytes, persistence.cache.weight_bytes, len(persistence.cache))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        served = runner.run(_serve(sys.argv[1], *map(int, sys.argv[2:])))
    print(msgspec.json.encode(served).decode(), flush=True)
    sys.stdin.read()
