"""Purges of a table of many files on an S3 server, beside one process that deletes object by object.

One operation is one file deleted. *in process*, *local Spark* and *cluster* (Spark's own, on this machine)
are the whole job: listings, manifests, the plan, deletion and the final listing, in a session that is warm.
*one by one* is deletion alone, of fewer files, one after the other. CPU is that of all processes, the S3
server's among them.

    ./dev bench purge --save                                              20,000 files on a cluster
    ./dev bench purge --set files=200000 --rounds 1 --warmups 0 --save    one round takes minutes
    ./dev bench purge --set candidates=process,local,cluster,single --set server=seaweedfs

`driver MiB`: the most that the driver's processes, Python and Java, held resident so far. `at a tenth`: after
the purge of a tenth of the files, with which a driver begins.

A maintainer must not break: after a round nothing of the table is left on the server.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from benchmarks.catalog_server import find_listening
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, median, rate, ratio
from benchmarks.purged_table import PurgeContext, PurgedTable
from benchmarks.results_file import Result
from benchmarks.spark_cluster import start_cluster
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.settings import SparkSettings
from cynosure.delegation.jobs.purge.job import PurgeJob
from cynosure.delegation.spark.link import CatalogReach
from cynosure.delegation.spark.runner import ChildSparkRunner
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers

_SINGLE = "one by one"
_HERE = "in process"
_LOCAL = "local Spark"
_CLUSTER = "cluster"
_LARGE = 100_000
"""Files with which one round takes so long that it is enough."""


def least_rounds_to_save(given: Mapping[str, str]) -> int | None:
    """How few rounds with these options may be saved; `None`: as many as of other suites."""
    return 1 if int(given.get("files", 0)) >= _LARGE else None


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """The ways to delete the files of a table."""
    server = find_s3_servers()[options.get("server", "minio")]
    files, single_files = options.get("files", 20_000), options.get("single_files", 2_000)
    wanted = options.get("candidates", "cluster,single").split(",")
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        if "process" in wanted:
            candidates[_HERE] = _Purges(server, files).run
        if "local" in wanted:
            candidates[_LOCAL] = (await _open_spark(stack, server, files, SparkSettings("local[2]"))).run
        if "cluster" in wanted:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cynosure-bench-")))
            processes = stack.enter_context(Processes(directory))
            settings, worker = await start_cluster(processes, directory)
            candidates[_CLUSTER] = (await _open_spark(stack, server, files, settings, worker)).run
        if "single" in wanted:
            candidates[_SINGLE] = _one_by_one(server, single_files)
        yield candidates


async def _open_spark(
    stack: AsyncExitStack, server: S3Server, files: int, settings: SparkSettings, *watched: int
) -> "_Purges":
    runner = ChildSparkRunner(settings, SystemClock(), reach=_nowhere)
    stack.push_async_callback(runner.close)
    purges = _Purges(server, files // 10, runner, settings, *watched)
    # Once, with few files: then the session is warm, and what the driver holds is there to compare with.
    await purges.run(Meter())
    purges.begin(files)
    return purges


def _nowhere(_: TaskOrder) -> CatalogReach:
    raise SystemExit("bench: a purge asked for the catalog")


class _Purges:
    """Rounds of one way to purge."""

    def __init__(
        self,
        server: S3Server,
        files: int,
        runner: ChildSparkRunner | None = None,
        settings: SparkSettings | None = None,
        *watched: int,
    ) -> None:
        self._server = server
        self._files = files
        self._runner = runner
        self._settings = settings
        self._watched = watched
        self._most_bytes = self._tenth_bytes = 0

    def begin(self, files: int) -> None:
        """What comes now are the real rounds."""
        self._files, self._tenth_bytes = files, self._most_bytes

    async def run(self, meter: Meter) -> None:
        """Write a table and purge it."""
        table = PurgedTable(self._server, self._files)
        facts = await table.write()
        context = PurgeContext(table, facts, spark=self._runner, settings=self._settings)
        driver = self._runner.driver_pid if self._runner is not None else None
        _watch_server(meter, self._server)
        for pid in (*self._watched, *filter(None, [driver])):
            meter.watch(pid)
        looking = asyncio.create_task(self._look())
        try:
            with meter.measuring():
                result = await PurgeJob().run(context)
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
        meter.count(operations=result.files_deleted)
        if self._runner is not None:
            meter.note("driver MiB", self._most_bytes / 2**20)
            meter.note("at a tenth", self._tenth_bytes / 2**20)
        if result.files_deleted < self._files or self._server.delete_below(table.location.text):
            raise SystemExit("bench: a purge has left files")

    async def _look(self) -> None:
        """See how much the driver holds."""
        while self._runner is not None:
            if (pid := self._runner.driver_pid) is not None:
                with suppress(psutil.NoSuchProcess):
                    driver = psutil.Process(pid)
                    javas = [each for each in driver.children() if each.name().startswith("java")]
                    now_bytes = sum(each.memory_info().rss for each in (driver, *javas))
                    self._most_bytes = max(self._most_bytes, now_bytes)
            await asyncio.sleep(0.2)


def _watch_server(meter: Meter, server: S3Server) -> None:
    if (pid := find_listening(urlsplit(server.endpoint).port)) is not None:
        meter.watch(pid)


def _one_by_one(server: S3Server, files: int) -> Round:
    async def work(meter: Meter) -> None:
        table = PurgedTable(server, files)
        await table.write()
        _watch_server(meter, server)
        with meter.measuring():
            for location in table.data:
                await table.files.delete(location)
        meter.count(operations=files)
        server.delete_below(table.location.text)

    return work


def promises(result: Result) -> list[Promise]:
    """The rate of each whole purge beside deleting object by object; the memory of a cluster's driver."""
    found = [
        Promise(f"{each} over {_SINGLE}, rate", "≥", 3.0, ratio(result, each, _SINGLE, rate))
        for each in (_HERE, _LOCAL, _CLUSTER)
        if has(result, each, _SINGLE)
    ]
    if has(result, _CLUSTER):
        held_mib = median(result, _CLUSTER, lambda figures: figures.notes["driver MiB"])
        found.append(Promise(f"{_CLUSTER}: driver, MiB", "≤", 512, held_mib))
        growth = median(result, _CLUSTER, _growth)
        found.append(Promise(f"{_CLUSTER}: driver, over what a tenth of the files took", "≤", 1.25, growth))
    return found


def _growth(figures: Figures) -> float:
    return figures.notes["driver MiB"] / figures.notes["at a tenth"]
