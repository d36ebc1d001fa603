"""One table update and one lookup on the whole path: rows, bytes, fetches and CPU, per size of the catalog.

The catalog is a SQLite store made by bulk load, each table an entity of 2 KB that does not compress, with
an entry in each of three indexes. *update*: one durable commit of one table, chosen evenly from all; rows
and bytes are those handed to the database, the reference's own row among them. *find, cold*: with an empty
cache, from the reference to the index value; a request is one fetch. *find, warm*: a name in a state whose
nodes are in the cache. *read*: the same behind a fresh read of the head, as a request does it.

    ./dev bench store --set sizes=10000,1000000 --set directory=SOMEWHERE      (kept there for the next run)

A maintainer must not break: rows, bytes and fetches are counted at the backend, below everything.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.loaded_store import MAIN, incompressible, kept_url, keys_of, open_store
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median
from benchmarks.results_file import Result
from cynosure.persistence.backends.sqlite.backend import SqliteBackend
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import Backend, ObjKey, Reference, RefKey, Row
from cynosure.testing.workload import Items

SIZES = (10_000, 100_000, 1_000_000)
DISTINCT_LOOKUPS = 2_000


class CountingBackend(SqliteBackend):
    """Counts what the database is asked."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.updates: list[tuple[int, int]] = []
        """Rows and bytes of each swap."""
        self.fetches = 0

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        self.fetches += 1
        return await super().fetch(keys)

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        self.fetches += 1
        return await super().fetch_refs(keys)

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        found = super().fetch_refs_now(keys)
        self.fetches += found is not None
        return found

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        ref_bytes = len("".join(updated.key)) + 8 * (3 + len(updated.recent))
        self.updates.append((1 + len(rows), ref_bytes + sum(len(row.blob) for row in rows)))
        return await super().swap_ref(expected, updated, rows)


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    sizes = [int(size) for size in options.get("sizes", ",".join(map(str, SIZES))).split(",")]
    updates, directory = options.get("updates", 300), options.get("directory", "")
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for size in sizes:
            url = await stack.enter_async_context(kept_url(size, directory))
            counted = CountingBackend(Path(url.removeprefix("sqlite:")))
            opened = open_store(url, wrap=_instead(counted))
            persistence = await stack.enter_async_context(opened)
            keys = keys_of(size)
            candidates[f"update, {size}"] = _updating(persistence, counted, keys, updates)
            candidates[f"find warm, {size}"] = _finding(persistence, keys)
            candidates[f"read warm, {size}"] = _reading(persistence, keys)
            candidates[f"find cold, {size}"] = _finding_cold(persistence, counted, keys)
        yield candidates


def _instead(backend: Backend) -> Callable[[Backend], Backend]:
    return lambda unused: backend


def _updating(
    persistence: Persistence, counted: CountingBackend, keys: Sequence[bytes], updates: int
) -> Round:
    items = Items(persistence.ids, payload=incompressible())
    commit = persistence.committer(MAIN).commit
    chance = random.Random(3)

    async def update(meter: Meter) -> None:
        counted.updates.clear()
        with meter.measuring():
            for _ in range(updates):
                await commit(items.add_all([(chance.choice(keys), 1)]))
        rows, sizes = zip(*counted.updates, strict=True)
        meter.count(operations=updates, rows=sum(rows), bytes=sum(sizes))
        meter.note("p99 rows", _percentile(rows, 99))
        meter.note("p99 KiB", _percentile(sizes, 99) / 1024)

    return update


def _finding(persistence: Persistence, keys: Sequence[bytes]) -> Round:
    # As many distinct keys at every size: this is about the tree, not about the processor's caches.
    sample = random.Random(5).sample(keys, min(DISTINCT_LOOKUPS, len(keys)))

    async def find(meter: Meter) -> None:
        state = (await persistence.committer(MAIN).read()).state
        for key in sample:
            if await state.find("names", key) is None:
                raise AssertionError("a table is missing")
        with meter.measuring():
            for _ in range(5):
                for key in sample:
                    await state.find("names", key)
        meter.count(operations=5 * len(sample))

    return find


def _reading(persistence: Persistence, keys: Sequence[bytes]) -> Round:
    sample = random.Random(5).sample(keys, min(DISTINCT_LOOKUPS, len(keys)))

    async def read(meter: Meter) -> None:
        committer = persistence.committer(MAIN)
        with meter.measuring():
            for key in sample:
                await (await committer.read()).state.find("names", key)
        meter.count(operations=len(sample))

    return read


def _finding_cold(persistence: Persistence, counted: CountingBackend, keys: Sequence[bytes]) -> Round:
    chance = random.Random(7)

    async def find_cold(meter: Meter) -> None:
        most = 0
        sample = chance.choices(keys, k=100)
        before = counted.fetches
        with meter.measuring():
            for key in sample:
                persistence.cache.clear()
                began = counted.fetches
                await (await persistence.committer(MAIN).read()).state.find("names", key)
                most = max(most, counted.fetches - began)
        meter.count(operations=len(sample), requests=counted.fetches - before)
        meter.note("most fetches", most)

    return find_cold


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def promises(result: Result) -> list[Promise]:
    """The figures of a large catalog, and that they hardly depend on its size."""
    measured: dict[str, tuple[str, float, Callable[[Figures], float]]] = {
        "rows of an update, p99": ("update", 5, lambda each: each.notes["p99 rows"]),
        "KiB of an update, p99": ("update", 32, lambda each: each.notes["p99 KiB"]),
        "fetches of a cold lookup, most": ("find cold", 4, lambda each: each.notes["most fetches"]),
        "CPU of a warm lookup, µs": ("find warm", 5, cpu_us),
    }
    found: list[Promise] = []
    for figure, (candidate, most, of) in measured.items():
        values = {
            size: median(result, f"{candidate}, {size}", of)
            for size in SIZES
            if has(result, f"{candidate}, {size}")
        }
        for size, value in values.items():
            found.append(Promise(f"{size:,} tables: {figure}", "≤", most, value))
        if len(values) > 1:
            growth = values[max(values)] / values[min(values)]
            found.append(Promise(f"{figure}: {max(values):,} over {min(values):,} tables", "≤", 1.5, growth))
    return found
