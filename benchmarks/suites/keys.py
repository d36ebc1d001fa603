"""What idempotency keys add to a commit, and what those that are already there do: CPU, rows and bytes.

One operation is one durable update of one of `hot` tables among `keys` (an entity of 2 KB, three indexes), by
16 writers on one reference in one process: without a key, and with one each on a state that has none, 100,000
or 1,000,000 live ones.

    ./dev bench keys
    ./dev bench keys --set databases=memory --set live=0,1000000

A maintainer must not break: the live keys come in through the production code, only the commits that would
have brought them are left out; and after every round each key of it is found.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.live_keys import load_keys
from benchmarks.loaded_store import MAIN, fresh_url, keys_of, load_tables, open_store, table_metadata
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, ratio
from benchmarks.results_file import Result
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import Backend, Reference, Row
from cynosure.testing.workload import Items

_MOST_CPU, _MOST_CPU_LIVE, _MOST_BYTES_LIVE = 1.25, 1.2, 1.2


class _Written:
    """Counts what swaps write, and passes everything on."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.rows = self.bytes = self.swaps = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._backend, name)

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self.swaps += 1
        self.rows += len(rows)
        self.bytes += sum(len(row.blob) for row in rows)
        return await self._backend.swap_ref(expected, updated, rows)


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """A store for each database and number of live keys; the one without any is also asked without keys."""
    databases = options.get("databases", "memory,sqlite").split(",")
    live = [int(number) for number in options.get("live", "0,100000,1000000").split(",")]
    total, requests = options.get("keys", 20_000), options.get("requests", 2_000)
    names = keys_of(total)[: options.get("hot", 1_000)]
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for database in databases:
            for number in live:
                url = await stack.enter_async_context(fresh_url(database, options.get("directory", "")))
                written: list[_Written] = []

                def counted(backend: Backend, written: list[_Written] = written) -> Backend:
                    written.append(_Written(backend))
                    return written[0]  # type: ignore[return-value]

                persistence = await stack.enter_async_context(open_store(url, wrap=counted))
                await load_tables(persistence, total, table_metadata())
                if number:
                    await load_keys(persistence, MAIN, number)
                for way in ("plain", "keyed") if number == 0 else ("keyed",):
                    name = f"{database}: plain" if way == "plain" else f"{database}: {number} live keys"
                    candidates[name] = _writing(persistence, written[0], names, requests, way == "keyed")
        yield candidates


def _writing(
    persistence: Persistence, written: _Written, names: Sequence[bytes], requests: int, is_keyed: bool
) -> Round:
    items = Items(persistence.ids, payload=table_metadata())
    committer = persistence.committer(MAIN)

    async def write(meter: Meter) -> None:
        keys = [uuid.uuid4().hex * 2 if is_keyed else "" for _ in range(requests)]
        left = list(enumerate(keys))
        written.rows = written.bytes = written.swaps = 0

        async def write_on(number: int) -> None:
            while left:
                at, key = left.pop()
                name = names[(at * 16 + number) % len(names)]
                await committer.commit(items.add_all([(name, 1)], key_hash=key))

        with meter.measuring():
            await asyncio.gather(*(write_on(number) for number in range(16)))
        meter.count(operations=requests, rows=written.rows, bytes=written.bytes)
        meter.note("requests per commit", requests / written.swaps)
        meter.note("runs", len((await committer.read()).state.commit.key_log.runs))
        if is_keyed and None in [await committer.find_key(key) for key in random.sample(keys, 100)]:
            raise AssertionError("A key that was committed is not found")

    return write


def _bytes_each(figures: Figures) -> float:
    return figures.bytes / figures.operations


def promises(result: Result) -> list[Promise]:
    """What keys may cost."""
    found: list[Promise] = []
    for database in ("memory", "sqlite", "postgres"):
        plain, none, many = (f"{database}: {name}" for name in ("plain", "0 live keys", "1000000 live keys"))
        if has(result, plain, none):
            more = ratio(result, none, plain, cpu_us)
            found.append(Promise(f"{database}: CPU with a key over without, times", "≤", _MOST_CPU, more))
        if has(result, none, many):
            more = ratio(result, many, none, cpu_us)
            found.append(Promise(f"{database}: CPU at 1,000,000 live keys, times", "≤", _MOST_CPU_LIVE, more))
            more = ratio(result, many, none, _bytes_each)
            found.append(
                Promise(f"{database}: bytes at 1,000,000 live keys, times", "≤", _MOST_BYTES_LIVE, more)
            )
    return found
