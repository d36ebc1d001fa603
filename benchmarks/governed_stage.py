"""A catalog with TPC-H, gateways of every kind beside each other, and Spark with views.

A maintainer must not break: every way has the same number of threads, the same heap and the same files; and
statements go over HTTP, as anybody's do.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx
import msgspec
import psutil

from benchmarks.measure import Meter, tree_cpu_s
from benchmarks.results_file import ROOT
from benchmarks.tpch_tables import NAMESPACE, make_files, make_tables, restrict_tables
from benchmarks.views_process import Order, Rows
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential
from cynosure.testing.query_server import QueryScene, run_to_end, start_query_scene

CORES: Final = 2
_MASTER: Final = f"local[{CORES}]"
_MEMORY: Final = "2g"
_FIRST: Final = "local"
"""The gateway that is there from the beginning."""
_FREE: Final = "free"
"""Who is under no policy."""
_ANSWER_BYTES: Final = 2**28
_SPARK: Final = {
    "QUERY__LOCAL_EXECUTION": "off",
    "QUERY__SPARK__ENABLED": "on",
    "QUERY__SPARK__MASTER": _MASTER,
    "QUERY__SPARK__IDLE_TIMEOUT": "2h",
}
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "isolated": {**_SPARK, "QUERY__SPARK__SCAN": "isolated"},
    "native": {**_SPARK, "QUERY__SPARK__SCAN": "native"},
    "local": {"QUERY__SPARK__ENABLED": "off", "QUERY__LOCAL__THREADS": str(CORES)},
}
"""Of the gateway of each way."""


class Way:
    """How statements are run."""

    name: str
    pids: tuple[int, ...]

    async def run(self, sql: str) -> list[list[str]]:
        """All rows of a statement, as texts."""
        raise AssertionError("of a way only")

    def spent_s(self) -> float:
        """CPU of all its processes so far."""
        return sum(tree_cpu_s(psutil.Process(pid)) for pid in self.pids)

    def watch(self, meter: Meter) -> None:
        """Charge all its processes to a round."""
        for pid in self.pids:
            meter.watch(pid)


class Gateway(Way):
    """Statements through a gateway, as a user under the policies."""

    def __init__(self, name: str, scene: QueryScene, http: httpx.AsyncClient) -> None:
        self.name = name
        self._http = http
        self.pids = (scene.gateway.pid, scene.catalog.process.pid)

    async def run(self, sql: str) -> list[list[str]]:
        """See `Way`."""
        found = await run_to_end(self._http, sql, catalog="lake", namespace=NAMESPACE)
        if isinstance(found, dict):
            raise SystemExit(f"bench: {self.name}: {found}\n{sql}")
        return [[str(value) for value in row.values()] for row in found.to_pylist()]


class Views(Way):
    """Spark with views, as a user without policies."""

    name = "views"

    def __init__(self, process: Process, catalog: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._answers = process.stdin, process.stdout
        self.pids = (process.pid, catalog)

    async def run(self, sql: str) -> list[list[str]]:
        """See `Way`."""
        return msgspec.json.decode(await self._ask(sql), type=Rows).rows

    async def begin(self, order: Order) -> None:
        """Open the session and make the views."""
        await self._ask(order)

    async def _ask(self, what: object) -> bytes:
        self._orders.write(msgspec.json.encode(what) + b"\n")
        answer = await self._answers.readline()
        if not answer:
            raise SystemExit("bench: Spark with views ended; what it said is above")
        return answer


class Stage:
    """What there is, and how more ways are opened."""

    def __init__(self, scene: QueryScene, stack: AsyncExitStack, user: Credential, free: Credential) -> None:
        self.scene = scene
        self._stack = stack
        self._user = user
        self._free = free

    async def open(self, name: str, settings: Mapping[str, str] | None = None) -> Way:
        """One way; a gateway with Spark may have further settings."""
        if name == Views.name:
            return await self._open_views()
        scene = self.scene
        if name != _FIRST:
            scene = await scene.start_another(name, {**SETTINGS[name], **(settings or {})})
        http = await self._stack.enter_async_context(scene.client(self._user, timeout=600))
        return Gateway(name, scene, http)

    async def _open_views(self) -> Way:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.views_process"),
            stdin=PIPE,
            stdout=PIPE,
            cwd=ROOT,
            limit=_ANSWER_BYTES,
        )
        self._stack.push_async_callback(_end, process)
        views = Views(process, self.scene.catalog.process.pid)
        rest = self.scene.lake.to_rest(self._free)
        catalog = {"type": "rest", "uri": rest.uri, **rest.properties}
        tables = await asyncio.to_thread(self._list)
        await views.begin(Order(_MASTER, _MEMORY, catalog, tables))
        return views

    def _list(self) -> tuple[str, ...]:
        listed: Sequence[Any] = self.scene.pyiceberg().list_tables(NAMESPACE)
        return tuple(sorted(each[-1] for each in listed))


async def _end(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), 20)
    except TimeoutError:
        for each in psutil.Process(process.pid).children(recursive=True):
            each.kill()
        process.kill()
        await process.wait()


@asynccontextmanager
async def open_empty_stage() -> AsyncIterator[Stage]:
    """A catalog without tables, and two users of it."""
    async with AsyncExitStack() as stack:
        here = Path(stack.enter_context(TemporaryDirectory(prefix="cynosure-bench-")))
        processes = stack.enter_context(Processes(here))
        scene = await start_query_scene(processes, here, settings=SETTINGS[_FIRST])
        user = await scene.create_user("reader")
        free = await scene.create_user(_FREE)
        yield Stage(scene, stack, user, free)


@asynccontextmanager
async def open_stage(scale: float, directory: str) -> AsyncIterator[Stage]:
    """A catalog with TPC-H under the policies, and a user who sees what is left."""
    async with open_empty_stage() as stage:
        kept = Path(directory) if directory else stage.scene.directory
        await make_tables(stage.scene, await asyncio.to_thread(make_files, kept, scale))
        await restrict_tables(stage.scene, except_roles=[f"{_FREE}_role"])
        yield stage
