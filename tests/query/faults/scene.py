"""Governed SQL as it is run: a catalog, a gateway, a cluster of Spark with two executors, files on MinIO.

    test ─► gateway ─► driver ─► executors ─► proxy ─► MinIO
                 └────► catalog ─► token service ─► MinIO

Whatever a test breaks, it breaks from outside: processes get signals, the proxy loses and holds requests.
"""

import asyncio
import contextlib
import json
import random
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import psutil
import pyarrow as pa

from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Delay, Request, Respond, Rule
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential
from cynosure.testing.query_server import API, QueryScene, run_to_end, start_query_scene
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.spark_cluster import SparkCluster, start_cluster
from tests.engines.java import SHORT_LIVED
from tests.query.faults.short_tokens import EXPIRED, ShortTokens, key_of, run_short_tokens

FILES = 8
ROWS = 400
"""Of each file; every second one is hidden."""
LARGE_ROWS = 3_000
"""Of one more, whose row groups are large enough for the fast path."""
GROUP_ROWS = 1_000
NOTE_BYTES = 600
"""Random ones, in hexadecimal digits behind each card of that file: a row group has more than a MiB."""
SHOWN = "shown-region-5bd1"
"""The constant of the row filter."""
HIDDEN = "hidden-region-e09c"
CARD = "4000-1234-5678-{:08d}"
"""Masked."""
TABLE = "ns.orders"
ALL = f"SELECT id, card FROM lake.{TABLE}"
SHUFFLED = f"SELECT region, count(*) AS id, max(card) FROM lake.{TABLE} GROUP BY region ORDER BY 2"
"""Rows with the filter's own constant are written to disk on their way."""
PATIENCE_S = 90.0
SOON_S = 20.0
SPYING = Path(__file__).parent / "spying"
JAVA = " ".join((*SHORT_LIVED, "-Xss1m"))


def rows_of(file: int) -> pa.Table:
    """Rows of one file: numbers that no other file has."""
    ids = range(file * ROWS, (file + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": pa.array([SHOWN if each % 2 else HIDDEN for each in ids]),
            "card": pa.array([CARD.format(each) for each in ids]),
        }
    )


def large_rows() -> pa.Table:
    """Those behind them."""
    ids = range(FILES * ROWS, FILES * ROWS + LARGE_ROWS)
    chance = random.Random(7)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": pa.array([SHOWN if each % 2 else HIDDEN for each in ids]),
            "card": pa.array([CARD.format(each) + chance.randbytes(NOTE_BYTES).hex() for each in ids]),
        }
    )


EXPECTED = [each for each in range(FILES * ROWS + LARGE_ROWS) if each % 2]


def is_data(request: Request) -> bool:
    """Whether a file of rows is read."""
    path = request.path.partition("?")[0]
    return request.method == "GET" and path.endswith(".parquet")


def is_fast(request: Request) -> bool:
    """Whether DataFusion reads it: our own client says its name. (On the native leaf, Java does.)"""
    return is_data(request) and b"user-agent: cynosure" not in request.data.lower()


class Answering(NamedTuple):
    """A statement that goes on while the test does something."""

    id: str
    answer: "asyncio.Task[list[int] | dict[str, Any]]"


@dataclass
class FaultScene:
    """What tests break."""

    query: QueryScene
    proxy: FaultProxy
    tokens: ShortTokens
    cluster: SparkCluster
    ann: Credential
    directory: Path
    leaf: str
    """How Spark reads: `isolated` or `native`."""
    spied: Path
    """What the gateway drew by chance: a kind and a word in each line."""
    large_file: str
    """The name of the one with large row groups."""

    def is_small(self, request: Request) -> bool:
        """Whether another file of rows is read, which is one fragment."""
        return is_data(request) and self.large_file not in request.path

    async def begin_reading(
        self,
        seconds: float = 0.5,
        *,
        reads: int = 2,
        sql: str = ALL,
        when: Callable[[Request], bool] = is_data,
        **body: Any,
    ) -> Answering:
        """A statement whose scans have begun, and take their time."""
        held = self.hold(seconds, when=when)

        async def has_begun() -> bool:
            assert not answer.done(), answer.result()
            return held.hits >= reads

        statement_id = str(uuid.uuid4())
        answer = asyncio.create_task(self.try_ids(sql, **{"statement-id": statement_id, **body}))
        await wait_until(has_begun, "a scan that reads")
        return Answering(statement_id, answer)

    def hold(self, seconds: float, when: Callable[[Request], bool] = is_data) -> Rule:
        """Let every read of rows take so long from now on."""
        return self.proxy.add(Delay(request_s=seconds), when=when, times=None)

    def enforce_expiry(self) -> Rule:
        """Have the store refuse sessions that ended."""
        refused = Respond(status=403, body=EXPIRED, headers=(("Content-Type", "application/xml"),))
        return self.proxy.add(refused, when=self.tokens.is_ended, times=None)

    async def ids(self, sql: str = ALL, **body: Any) -> list[int]:
        """What `ann` is shown, sorted, with whatever comes twice."""
        found = await self.query.query(self.ann, sql, **body)
        return sorted(found.column("id").to_pylist())

    async def try_ids(self, sql: str = ALL, **body: Any) -> list[int] | dict[str, Any]:
        """The same, or the error."""
        async with self.query.client(self.ann) as http:
            found = await run_to_end(http, sql, **body)
        return found if isinstance(found, dict) else sorted(found.column("id").to_pylist())

    async def state(self, statement_id: str) -> dict[str, Any]:
        async with self.query.client(self.ann) as http:
            return dict((await http.get(f"{API}/statements/{statement_id}")).json())

    def driver(self) -> psutil.Process:
        """The driver's Java of the gateway."""
        for each in psutil.Process(self.query.gateway.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "java" in each.name():
                    return each
        raise AssertionError("the gateway has no driver")

    def scans(self, *executors: psutil.Process) -> list[psutil.Process]:
        """Python workers of executors (of all, unless some are named) that hold a stream to the broker."""
        gateway = psutil.Process(self.query.gateway.pid)
        listening = {
            each.laddr.port for each in gateway.net_connections("tcp") if each.status == psutil.CONN_LISTEN
        }
        found = []
        for executor in executors or self.cluster.executors():
            for each in executor.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    links = each.net_connections("tcp")
                    if any(link.raddr and link.raddr.port in listening for link in links):
                        found.append(each)
        return found

    def is_reading(self, executor: psutil.Process) -> bool:
        """Whether an executor, or a Python of it, has a connection to the store."""
        for each in (executor, *executor.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                links = each.net_connections("tcp")
                if any(link.raddr and link.raddr.port == self.proxy.port for link in links):
                    return True
        return False

    async def metric(self, name: str, **labels: str) -> float:
        """Of the gateway: the sum of all that have these labels."""
        async with httpx.AsyncClient(trust_env=False) as http:
            text = (await http.get(f"{self.query.url}/metrics")).text
        total = 0.0
        for line in text.splitlines():
            found = re.fullmatch(rf"cynosure_query_{name}(?:_total)?(?:\{{(.*)\}})? ([0-9.e+]+)", line)
            if found and all(f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()):
                total += float(found[2])
        return total

    def keys_of_reads(self) -> set[str]:
        """With which keys files of rows are read; it grows."""
        seen: set[str] = set()

        def note(request: Request) -> bool:
            if is_data(request):
                seen.add(key_of(request))
            return False

        self.proxy.add(Respond(), when=note, times=None)
        return seen

    async def wait_for_workers(self, count: int = 2) -> None:
        async def is_so() -> bool:
            return await self.metric("scan_workers_healthy") >= count

        await wait_until(is_so, f"{count} healthy workers")

    async def check_quiet(self) -> None:
        """Nothing goes on any more: no statement, no stream, no job of Spark."""

        async def is_so() -> bool:
            streams, running = await self.metric("scan_streams"), await self.metric("running")
            return streams == 0 and running == 0 and not self.unfinished_jobs()

        await wait_until(is_so, "that nothing goes on")

    def events(self) -> list[dict[str, Any]]:
        """Spark's event log, of all drivers so far."""
        found = []
        for path in (self.directory / "events").rglob("*"):
            if path.is_file() and path.stat().st_size:
                for line in path.read_text("utf-8").splitlines():
                    with contextlib.suppress(ValueError):
                        found.append(json.loads(line))
        return found

    def executors_of_tasks(self) -> list[str]:
        """Who ran each task that ended so far."""
        ended = [each for each in self.events() if each["Event"] == "SparkListenerTaskEnd"]
        return [each["Task Info"]["Executor ID"] for each in ended]

    def unfinished_jobs(self) -> set[tuple[str, int]]:
        """Of the newest driver: those before it were killed, and wrote no end."""
        open_jobs: set[tuple[str, int]] = set()
        paths = sorted(
            (self.directory / "events").rglob("*.inprogress"), key=lambda each: each.stat().st_ctime
        )
        for path in paths[-1:]:
            for line in path.read_text("utf-8").splitlines():
                kind = line[10:45]
                if "ListenerJob" in kind:
                    event = json.loads(line)
                    job = (path.name, event["Job ID"])
                    if event["Event"] == "SparkListenerJobStart":
                        open_jobs.add(job)
                    else:
                        open_jobs.discard(job)
        return open_jobs


async def wait_until(is_so: Callable[[], Awaitable[object]], what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not await is_so():
        assert time.monotonic() < until_s, f"waited in vain for {what}"
        await asyncio.sleep(0.1)


def find_largest(table: Any) -> str:
    """The name of its largest file. Not in the proxy's thread, which the store is asked through."""
    files = [each.file for each in table.scan().plan_files()]
    return str(max(files, key=lambda file: file.file_size_in_bytes).file_path).rpartition("/")[2]


@contextlib.contextmanager
def soon() -> Iterator[None]:
    """What is in it ends long before a silent store is given up."""
    begun_s = time.monotonic()
    yield
    assert time.monotonic() - begun_s < SOON_S


def gateway_settings(directory: Path, master: str, **changes: str) -> dict[str, str]:
    """Of a gateway on a cluster, impatient where a test would wait."""
    events = directory / "events"
    events.mkdir(exist_ok=True)
    config = {
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.ui.enabled": "true",
    }
    file = directory / "gateway.toml"
    lines = [f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in config.items()]
    file.write_text("".join(["[query.spark.config]\n", *lines]))
    return {
        "CONFIG": str(file),
        "QUERY__LOCAL_EXECUTION": "off",
        "QUERY__SPARK__ENABLED": "on",
        "QUERY__SPARK__MASTER": master,
        "QUERY__SPARK__DRIVER_MEMORY": "768MiB",
        "QUERY__SPARK__SPLIT_SIZE": "1KiB",
        "QUERY__DISTRIBUTE_ABOVE": "0B",
        "QUERY__BROKER__HEARTBEAT": "500ms",
        "STORAGE__OPERATION_TIMEOUT": "5s",
        **changes,
    }


@asynccontextmanager
async def open_scene(directory: Path, minio: S3Server, leaf: str, spied: Path) -> AsyncIterator[FaultScene]:
    """All of it, with one table that is filtered and masked."""
    spied.touch()
    spying = {"PYTHONPATH": str(SPYING), "SPIED_FILE": str(spied)}
    with run_short_tokens(minio.endpoint) as tokens, Processes(directory) as processes:
        async with FaultProxy.to_url(minio.endpoint) as proxy:
            cluster = await start_cluster(processes, directory)
            store = msgspec.structs.replace(minio, endpoint=proxy.url)
            query = await start_query_scene(
                processes,
                directory,
                settings=gateway_settings(directory, cluster.master, QUERY__SPARK__SCAN=leaf),
                environment=spying,
                store=store,
                storage={"stsEndpoint": tokens.url},
            )
            table = await query.make_table(
                TABLE,
                *(rows_of(file) for file in range(FILES)),
                large_rows(),
                properties={"write.parquet.row-group-limit": str(GROUP_ROWS)},
            )
            large_file = await asyncio.to_thread(find_largest, table)
            ann = await query.create_user("ann")
            await query.restrict(TABLE, filter=f"region = '{SHOWN}'")
            await query.restrict(TABLE, columns={"card": "sha-256-query-local"})
            scene = FaultScene(query, proxy, tokens, cluster, ann, directory, leaf, spied, large_file)
            await scene.wait_for_workers()
            yield scene
