"""Appends of 16 clients to one table on MinIO: standard, rebased, by the endpoint; beside Iceberg's server.

Data files are written beforehand, and committers are as thin as they can be (`benchmarks/append_clients.py`).
One operation is one committed append. The candidates:

- *fixture*: standard commits to Iceberg's own REST server; after a conflict clients load and try again
- *standard*: the same clients against ours
- *rebase*: the same, on a table with `cynosure.commit.rebase-appends`
- *endpoint*: the files are sent to the append endpoint

Columns: *CPU* is the clients', *watched CPU* the server's; *retries*, *client requests* and *server requests*
to the object store are per append. The server's are what MinIO counted in a run before the rounds, less ours.

    ./dev bench appends
    ./dev bench appends --set wait_ms=10               hasty clients, which meet more conflicts
    ./dev bench appends --set clients=16 --set appends=10 --only rebase --only fixture

A maintainer must not break: every round has a fresh table and the same work; and no append is counted that is
not in the table's last snapshot; and all clients are at work until the measured time ends.
"""

import asyncio
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from msgspec import Struct

from benchmarks.append_clients import (
    WAIT_MS,
    Committer,
    EndpointCommitter,
    Files,
    MetadataOf,
    StandardCommitter,
    Tally,
    create_table,
    load,
    make_file,
)
from benchmarks.append_stage import (
    Stage,
    count_requests,
    find_minio,
    make_bucket,
    open_fixture,
    open_ours,
    start_our_server,
)
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, rate, ratio
from benchmarks.results_file import Result
from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.manifests.manifest_list import read_manifest_list

FIXTURE, STANDARD, REBASE, ENDPOINT = "fixture", "standard", "rebase", "endpoint"
WAYS: Final = (FIXTURE, STANDARD, REBASE, ENDPOINT)
_CONTENT: Final = b"PAR1" + bytes(2040) + b"PAR1"


class Load(Struct, frozen=True):
    """How much is appended in one round."""

    clients: int
    appends: int
    """Of each client, on average."""
    wait_ms: int
    """How long a client waits after its first conflict."""


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """Servers, buckets, and one run of each candidate in which requests are counted."""
    size = Load(options.get("clients", 16), options.get("appends", 10), options.get("wait_ms", WAIT_MS))
    ways = [way for way in options.get("ways", ",".join(WAYS)).split(",") if way]
    is_counted = options.get("count", 1)
    minio = find_minio()
    async with AsyncExitStack() as stack:
        stages: dict[str, Stage] = {}
        buckets = {way: stack.enter_context(make_bucket(minio, way)) for way in ways}
        if FIXTURE in ways:
            stages[FIXTURE] = await stack.enter_async_context(open_fixture(buckets[FIXTURE]))
        if ours := [way for way in ways if way != FIXTURE]:
            server = await stack.enter_async_context(start_our_server())
            for way in ours:
                stages[way] = await open_ours(server, way, buckets[way])
        served = await _count(stages, size) if is_counted else {}
        yield {way: _appending(way, stages[way], size, served.get(way)) for way in ways}


async def _count(stages: Mapping[str, Stage], size: Load) -> dict[str, float]:
    """Requests of servers to the object store, per append."""
    prepared = {way: await _prepare(way, stage, size) for way, stage in stages.items()}
    before = await count_requests(find_minio())
    own: dict[str, int] = {}
    for way, each in prepared.items():
        own[way] = (await each.run()).store_requests
        each.close()
    after = await count_requests(find_minio())
    found: dict[str, float] = {}
    for way, stage in stages.items():
        bucket = stage.server.bucket
        asked = after[bucket] - before[bucket] - own[way]
        found[way] = asked / (size.clients * size.appends)
    return found


def _appending(way: str, stage: Stage, size: Load, served: float | None) -> Round:
    async def run(meter: Meter) -> None:
        prepared = await _prepare(way, stage, size)
        meter.watch(stage.pid)
        with meter.measuring():
            tally = await prepared.run()
        prepared.close()
        await prepared.check(tally.appends)
        figures = sorted(tally.latencies_s)
        meter.count(operations=tally.appends)
        meter.note("retries", tally.conflicts / tally.appends)
        meter.note("client requests", tally.store_requests / tally.appends)
        if served is not None:
            meter.note("server requests", served)
        meter.note("p50 ms", statistics.median(figures) * 1e3)
        meter.note("p99 ms", figures[int(0.99 * (len(figures) - 1))] * 1e3)

    return run


class _Prepared:
    """A fresh table, its files written, and clients that have loaded it."""

    def __init__(
        self, stage: Stage, table: str, committers: list[Committer], files: list[ContentFile]
    ) -> None:
        self._stage = stage
        self._table = table
        self._committers = committers
        self._files = files

    async def run(self) -> Tally:
        """All clients at once, until only those files are left that somebody is at."""
        tally = Tally()
        left = iter(self._files)
        wanted = len(self._files) - len(self._committers)
        is_done = asyncio.Event()

        async def append(committer: Committer) -> None:
            for file in left:
                begin = time.perf_counter()
                await committer.append(file, tally)
                if tally.appends < wanted:
                    tally.latencies_s.append(time.perf_counter() - begin)
                    tally.appends += 1
                if tally.appends == wanted:
                    is_done.set()

        # Whoever still waits after a conflict when nobody else appends says nothing about many clients.
        clients = [asyncio.ensure_future(append(each)) for each in self._committers]
        ending = asyncio.ensure_future(is_done.wait())
        while not is_done.is_set():
            working = [ending, *(each for each in clients if not each.done())]
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for each in clients:
                if each.done():
                    each.result()
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        return tally

    def close(self) -> None:
        for committer in self._committers:
            committer.close()

    async def check(self, told: int) -> None:
        """What was told is in the table, and no file more than was sent."""
        metadata: MetadataOf = await load(self._stage.catalog, self._table)
        head = metadata.head()
        assert head is not None
        data = await Files(self._stage.server).read(head.manifest_list)
        listed = read_manifest_list(data, path=head.manifest_list).manifests
        found = sum((one.added_files or 0) + (one.existing_files or 0) for one in listed)
        if not told <= found <= len(self._files):
            raise AssertionError(f"{self._table} has {found} files of {len(self._files)}, and told of {told}")


async def _prepare(way: str, stage: Stage, size: Load) -> _Prepared:
    table = f"t{uuid.uuid4().hex[:12]}"
    properties = {"cynosure.commit.rebase-appends": "true"} if way == REBASE else {}
    loaded = await create_table(stage.catalog, table, properties)
    files = Files(stage.server)
    paths = [
        f"{loaded.location}/data/{uuid.uuid4()}.parquet" for _ in range(size.clients * (size.appends + 1))
    ]
    for first in range(0, len(paths), 16):
        await asyncio.gather(*(files.write(path, _CONTENT) for path in paths[first : first + 16]))
    committers: list[Committer] = [
        EndpointCommitter(stage.catalog, table)
        if way == ENDPOINT
        else StandardCommitter(stage.catalog, table, Files(stage.server), loaded, size.wait_ms)
        for _ in range(size.clients)
    ]
    return _Prepared(stage, table, committers, [make_file(path, len(_CONTENT)) for path in paths])


def _retries(figures: Figures) -> float:
    return figures.notes["retries"]


def promises(result: Result) -> list[Promise]:
    """Appends per second over those of the fixture, and that nobody retries."""
    found: list[Promise] = []
    for way, least in ((REBASE, 5), (ENDPOINT, 10)):
        if has(result, way, FIXTURE):
            times = ratio(result, way, FIXTURE, rate)
            found.append(Promise(f"{way}: appends/s over fixture, times", "≥", least, times))
        if has(result, way):
            most = max(map(_retries, result.candidates[way]))
            found.append(Promise(f"{way}: retries of clients per append", "≤", 0, most))
    return found
