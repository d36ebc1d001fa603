"""What a catalog does while its delegation service purges a table on an S3 server.

One operation is one load of another table, by 4 clients; CPU is the catalog's alone. *purging*: a drop with
`purgeRequested=true` waits for its task meanwhile, which deletes all the time; *quiet*: nothing else. All
three are processes as users run them, with mutual TLS between catalog and service.

    ./dev bench purge_beside [--set files=8000] [--set seconds=1] [--set server=minio]

`bare CPU µs`: in the same round, of a web server that has nothing to do with all this. A busy machine makes
every process need more CPU for the same; so `beyond bare` is what is left of the ratio when that is divided
by the same ratio of the bare one.

`file operations`: of the catalog on any storage, from the order to its end, by its own count. Neither the
files of the metadata, which it writes when tables change, nor credentials are among what a purge needs.

A maintainer must not break: the purge is under way from the first load of a round to the last, else the round
does not count.
"""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
import obstore

from benchmarks.catalog_server import Target, start_bare
from benchmarks.http_client import Catalog
from benchmarks.http_load import Ask, ask_with_python, ask_with_wrk, has_wrk
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, median, ratio
from benchmarks.results_file import Result
from benchmarks.suites.catalog import SCHEMA
from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.delegation_server import Pair, start_pair
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers

_CLIENTS: Final = 4
_WRITERS: Final = 48
_QUIET: Final = "load, quiet"
_PURGING: Final = "load, purging"
_COUNTED: Final = re.compile(r"^cynosure_storage_operations_total\{[^}]*\} (\S+)", re.MULTILINE)
_POLLING: Final = "100ms"
"""How often the service looks for work: a round does not wait for it."""


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """A catalog with its service, asked in quiet and while there is a purge."""
    server = find_s3_servers()[options.get("server", "minio")]
    files, seconds = options.get("files", 8_000), options.get("seconds", 1.0)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="cynosure-bench-")))
        processes = stack.enter_context(Processes(directory))
        pair = await start_pair(
            processes, directory, service_env={"CYNOSURE_DELEGATION__SERVICE__POLLING": _POLLING}
        )
        lake = await pair.catalog.create_catalog_on(server, "bench")
        await pair.init()
        await pair.start_service()
        bare = await stack.enter_async_context(start_bare())
        beside = await _Beside.open(pair, lake, server, files, seconds, bare)
        try:
            yield {_QUIET: beside.load, _PURGING: beside.load_while_purging}
        finally:
            await asyncio.to_thread(server.delete_below, beside.location)


class _Beside:
    """The rounds."""

    def __init__(
        self,
        pair: Pair,
        lake: ServedCatalog,
        server: S3Server,
        files: int,
        seconds: float,
        bare: Target,
        address: Catalog,
    ) -> None:
        self._pair = pair
        self._lake = lake
        self._server = server
        self._files = files
        self._seconds = seconds
        self._bare = bare
        self._address = address
        self._tables = f"{lake.url}/namespaces/ns/tables"
        self._ask = ask_with_wrk if seconds == int(seconds) and has_wrk() else ask_with_python
        self.location = ""

    @classmethod
    async def open(
        cls, pair: Pair, lake: ServedCatalog, server: S3Server, files: int, seconds: float, bare: Target
    ) -> "_Beside":
        """With the table that is loaded."""
        login = f"{pair.catalog.credential.text}@"
        address = await Catalog.find(f"{lake.root.replace('://', f'://{login}')}?warehouse={lake.name}")
        beside = cls(pair, lake, server, files, seconds, bare, address)
        async with lake.client() as http:
            (await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})).raise_for_status()
            location = await beside._make_table(http, "loaded")
        beside.location = location.rsplit("/", 2)[0]
        return beside

    async def load(self, meter: Meter) -> None:
        """A round in quiet."""
        await self._measure(meter)

    async def load_while_purging(self, meter: Meter) -> None:
        """A round beside a purge."""
        async with self._lake.client(timeout=300) as http:
            name = f"purged_{uuid.uuid4().hex[:8]}"
            location = await self._make_table(http, name)
            await self._fill(location)
            before = await self._count()
            drop = asyncio.create_task(
                http.delete(f"{self._tables}/{name}", params={"purgeRequested": "true"})
            )
            # From the first file that is gone: by then there is a tombstone, a task and a plan.
            while not drop.done() and await asyncio.to_thread(self._has_all, location):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await self._measure(meter)
            meter.note("still purging", float(not drop.done()))
            answer = await drop
            if answer.status_code not in (204, 504):
                raise SystemExit(f"bench: the drop was answered {answer.status_code}: {answer.text[:300]}")
            meter.note("file operations", await self._count() - before)

    async def _measure(self, meter: Meter) -> None:
        meter.watch(self._pair.catalog.process.pid)
        ask = Ask(f"{self._address.namespace('ns')}/tables/loaded")
        with meter.measuring():
            told = await self._ask(self._address, ask, clients=_CLIENTS, seconds=self._seconds)
        meter.count(operations=told.requests, requests=told.requests)
        meter.note("p99 ms", told.p99_ms)
        meter.note("errors", told.errors)
        bare = Meter()
        bare.watch(self._bare.pid)
        with bare.measuring():
            told = await self._ask(self._bare.catalog, Ask("/"), clients=_CLIENTS, seconds=self._seconds)
        bare.count(operations=told.requests)
        meter.note("bare CPU µs", _cpu_us(bare.figures()))

    async def _make_table(self, http: httpx.AsyncClient, name: str) -> str:
        made = await http.post(self._tables, json={"name": name, "schema": SCHEMA})
        location: str = made.raise_for_status().json()["metadata"]["location"]
        return location

    async def _fill(self, location: str) -> None:
        bucket, prefix = self._server.open_bucket(), self._key(location)
        rest = iter(range(self._files))

        async def write() -> None:
            for number in rest:
                await obstore.put_async(bucket, f"{prefix}/data/{number:06}.parquet", b"row")

        await asyncio.gather(*(write() for _ in range(_WRITERS)))

    def _has_all(self, location: str) -> bool:
        """Whether the first file is there: files go in the order of their names."""
        found = obstore.list(self._server.open_bucket(), f"{self._key(location)}/data/", chunk_size=1)
        return any(each["path"].endswith("/000000.parquet") for each in next(iter(found), ()))

    def _key(self, location: str) -> str:
        return location.removeprefix(f"s3://{self._server.bucket}/").rstrip("/")

    async def _count(self) -> float:
        """Operations of the catalog on files so far."""
        async with self._pair.catalog.client() as http:
            told = (await http.get("/metrics")).raise_for_status().text
        counts = [float(each) for each in _COUNTED.findall(told)]
        if not counts:
            raise SystemExit("bench: the catalog, which has written metadata files, does not count them")
        return sum(counts)


def _cpu_us(figures: Figures) -> float:
    return figures.watched_cpu_s * 1e6 / figures.operations


def _beyond_bare(result: Result) -> float:
    def to_bare(figures: Figures) -> float:
        return _cpu_us(figures) / figures.notes["bare CPU µs"]

    return ratio(result, _PURGING, _QUIET, to_bare)


def promises(result: Result) -> list[Promise]:
    """The catalog's CPU per load beside a quiet one, and what it asked of storages."""
    if not has(result, _QUIET, _PURGING):
        return []
    rounds = result.candidates[_PURGING]
    asked = median(result, _PURGING, lambda figures: figures.notes["file operations"])
    return [
        Promise("load beside a purge, CPU over quiet", "≤", 1.2, ratio(result, _PURGING, _QUIET, _cpu_us)),
        Promise("load beside a purge, CPU over quiet, beyond bare", "≤", 1.2, _beyond_bare(result)),
        Promise("operations of the catalog on files for a purge", "≤", 0, asked),
        Promise("rounds whose purge lasted", "≥", len(rounds), sum(e.notes["still purging"] for e in rounds)),
    ]
