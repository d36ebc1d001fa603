"""Real catalogs and delegation services on a real S3 server, for tests that kill, stop and starve them.

    async with open_scene(processes, directory, minio) as scene:
        service = await scene.pair.start_service()
        table = await scene.make_table("t", files=1_300)
        scene.gate.arm(7)
        drop = asyncio.create_task(scene.drop(table))
        await scene.gate.wait_reached(drop)                  # the 7th request of the purge is under way
        service.kill9()

All requests to the S3 server, and all of the services to the catalog, pass proxies (`scene.storage`,
`scene.catalog_calls`). What a test looks at itself does not.

A maintainer must not break: what is compared are listings by the owner of the S3 server; nothing that the
product says of itself is taken for a fact about files.
"""

import asyncio
import itertools
import threading
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import msgspec
import obstore
import psutil
import pyarrow as pa

from cynosure.client.appends import append
from cynosure.client.profiles import Profile
from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.delegation_server import PREFIX, Pair, start_pair
from cynosure.testing.harness.faults import Delay, Fault, Request
from cynosure.testing.harness.http_proxy import HttpProxy, run_http_proxy
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.s3_servers import S3Server

SCHEMA: Final = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
LEASE_S: Final = 3.0
BRISK: Final = {
    f"{PREFIX}OUTBOX_INTERVAL": "1s",
    f"{PREFIX}SERVICE__POLLING": "100ms",
    f"{PREFIX}TASK__LEASE__LOST_TIMEOUT": f"{LEASE_S:g}s",
    f"{PREFIX}RETRY__TABLE_PURGE__INITIAL_BACKOFF": "200ms",
    f"{PREFIX}RETRY__TABLE_PURGE__MAX_BACKOFF": "1s",
}
"""Settings of both sides with which a test need not wait for hours."""
PATIENCE_S: Final = 120.0
_PUTS_AT_ONCE: Final = 32
_HOLD_S: Final = 1.0
_DRIVER: Final = "cynosure.spark.driver"


class Objects(dict[str, int]):
    """Objects of a bucket: their keys and sizes."""

    def below(self, location: str) -> "Objects":
        """Those below a location of the same bucket."""
        prefix = f"{location.split('/', 3)[3].rstrip('/')}/"
        return Objects({key: size for key, size in self.items() if key.startswith(prefix)})

    def without(self, other: Iterable[str]) -> "Objects":
        """Those that the other has not."""
        gone = set(other)
        return Objects({key: size for key, size in self.items() if key not in gone})

    @property
    def bytes(self) -> int:
        """All of them together."""
        return sum(self.values())


class Table(NamedTuple):
    """A table that a test made."""

    name: str
    location: str
    key: str
    """The Idempotency-Key with which it is dropped."""
    objects: Objects
    """All that it consists of."""


class Gate:
    """Holds the n-th request that passes one of some proxies, and says so."""

    def __init__(self, proxies: Sequence[HttpProxy]) -> None:
        self._proxies = proxies
        self._reached = threading.Event()
        self._numbers = itertools.count(1)
        self.passed = 0
        """Requests since it was armed."""

    def arm(
        self,
        wanted: int,
        *,
        fault: Fault | None = None,
        when: Callable[[Request], bool] = lambda _: True,
    ) -> None:
        """Begin to count; of the wanted one (0: none) the answer is held back, or the fault is done."""
        self._reached.clear()
        self._numbers = itertools.count(1)
        self.passed = 0

        def is_it(request: Request) -> bool:
            if not when(request):
                return False
            number = self.passed = next(self._numbers)
            if number == wanted:
                self._reached.set()
            return number == wanted

        for proxy in self._proxies:
            proxy.clear()
            proxy.add(fault or Delay(answer_s=_HOLD_S), when=is_it, times=None)

    def disarm(self) -> None:
        """Let everything pass."""
        for proxy in self._proxies:
            proxy.clear()

    @property
    def is_reached(self) -> bool:
        """Whether the wanted request has come."""
        return self._reached.is_set()

    async def wait_reached(self, *instead: "asyncio.Task[Any]") -> bool:
        """Until the wanted request has come, or one of these has ended first: false."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not self._reached.is_set():
            if any(task.done() for task in instead):
                return False
            assert time.monotonic() < give_up_s, "the request never came"
            await asyncio.sleep(0.002)
        return True


@dataclass
class Scene:
    """A catalog on an S3 server, services beside it, and what passes between them."""

    pair: Pair
    store: S3Server
    lake: ServedCatalog
    base: str
    """Where the catalog is."""
    storage: HttpProxy
    catalog_calls: HttpProxy
    gate: Gate
    answers: list[int] = field(default_factory=list)
    """To all drops."""

    @property
    def services(self) -> list[ManagedProcess]:
        """Those that were started."""
        return self.pair.services

    # --- objects and tables ----------------------------------------------------------------------------

    def see(self, location: str = "") -> Objects:
        """All objects of the catalog, or below a location, as the owner of the S3 server sees them."""
        found = obstore.list(self.store.open_bucket(), self._prefix(location or self.base))
        return Objects({each["path"]: each["size"] for batch in found for each in batch})

    async def put(self, keys: Iterable[str], data: bytes = b"x") -> None:
        """Write objects as the owner of the S3 server."""
        store, rest = self.store.open_bucket(), iter(keys)

        async def some() -> None:
            for key in rest:
                await obstore.put_async(store, key, data, use_multipart=False)

        await asyncio.gather(*(some() for _ in range(_PUTS_AT_ONCE)))

    async def make_table(
        self, name: str, *, files: int = 0, rows: int = 1, lake: ServedCatalog | None = None
    ) -> Table:
        """A table with a snapshot for each row, and as many further files in its place."""
        lake = lake or self.lake
        async with lake.client() as http:
            await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
            made = await http.post(f"{lake.url}/namespaces/ns/tables", json={"name": name, "schema": SCHEMA})
        assert made.status_code == 200, made.text
        location: str = made.json()["metadata"]["location"]
        for number in range(rows):
            data = pa.table({"id": pa.array([number], pa.int64())})
            await asyncio.to_thread(append, f"ns.{name}", data, catalog=lake.name, server=self.profile)
        prefix = self._prefix(location)
        # Sizes differ, so that a sum of bytes says more than a sum of files.
        for remainder in range(3):
            keys = (f"{prefix}data/part-{number:05d}.parquet" for number in range(remainder, files, 3))
            await self.put(keys, b"x" * (remainder + 1))
        return Table(name, location, str(uuid.uuid4()), self.see(location))

    @property
    def profile(self) -> Profile:
        """As which files are appended."""
        server = self.pair.catalog
        return Profile(
            url=server.url, client_id=server.credential.client_id, client_secret=server.credential.secret
        )

    def _prefix(self, location: str) -> str:
        return f"{location.removeprefix(f's3://{self.store.bucket}/').rstrip('/')}/"

    # --- drops and tasks -------------------------------------------------------------------------------

    async def drop_once(self, table: Table, *, key: str = "", url: str = "") -> httpx.Response:
        """One request to drop a table with its files."""
        async with self.lake.client(timeout=90) as http:
            answer = await http.delete(
                f"{url or self.lake.url}/namespaces/ns/tables/{table.name}",
                params={"purgeRequested": "true"},
                headers={"Idempotency-Key": key or table.key},
            )
        self.answers.append(answer.status_code)
        return answer

    async def drop(self, table: Table) -> None:
        """Ask for a table to be dropped, as a client does that wants it gone, until it hears 204.

        At that moment nothing of it may be left.
        """
        give_up_s, key = time.monotonic() + PATIENCE_S, table.key
        while True:
            try:
                answer = await self.drop_once(table, key=key)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 204:
                left = await asyncio.to_thread(self.see, table.location)
                assert not left, f"204, and there are {len(left)} files"
                return
            if await self.is_put_back(table):
                # So what the key stands for has ended.
                key = str(uuid.uuid4())
            elif answer is not None:
                assert answer.status_code in (503, 504), answer.text
            assert time.monotonic() < give_up_s, answer.text if answer else "no answer"
            await asyncio.sleep(0.1)

    async def is_put_back(self, table: Table) -> bool:
        """Whether the very table is there."""
        try:
            found = await self.load(table.name)
        except httpx.TransportError:
            return False
        return found is not None and found["metadata"]["location"] == table.location

    async def load(self, name: str) -> dict[str, Any] | None:
        """A table as the catalog tells of it; `None` when there is none."""
        async with self.lake.client() as http:
            answer = await http.get(f"{self.lake.url}/namespaces/ns/tables/{name}")
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def tombstones(self, table: Table | None = None) -> list[dict[str, Any]]:
        """All that the catalog still has, or those of a table."""
        async with self.lake.client() as http:
            answer = await http.get(f"{self.lake.root}/cynosure/v1/{self.lake.name}/tombstones")
        found = answer.raise_for_status().json()["tombstones"]
        return [each for each in found if table is None or each["location"] == table.location]

    async def tasks(self, table: Table) -> list[dict[str, Any]]:
        """All tasks about what was under this table's name, the newest first."""
        async with self.pair.catalog.client() as http:
            answer = await http.get(
                "/api/management/v1/tasks", params={"catalog": self.lake.name, "pageSize": 1000}
            )
        wanted = f"{self.lake.name}.ns.{table.name}"
        return [each for each in answer.raise_for_status().json()["tasks"] if each["table"] == wanted]

    async def history(self, task_id: str) -> list[dict[str, Any]]:
        """All versions of a task."""
        async with self.pair.catalog.client() as http:
            answer = await http.get(f"/api/management/v1/tasks/{task_id}/history")
        return list(answer.raise_for_status().json()["versions"])

    async def ask_task(self, task_id: str, action: str) -> httpx.Response:
        """`retry` or `cancel`, as an operator."""
        async with self.pair.catalog.client() as http:
            return await http.post(f"/api/management/v1/tasks/{task_id}/{action}")

    async def until(self, condition: Callable[[], Awaitable[bool]], why: str) -> None:
        """Wait for something that nobody tells; not connecting counts as no."""
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                if await condition():
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < give_up_s, why
            await asyncio.sleep(0.05)

    async def check_purged(self, table: Table, others: Objects) -> dict[str, Any]:
        """A table was purged, wholly, alone and once, and the task's receipts say so; the task."""
        left = self.see()
        assert not left.below(table.location)
        missing = others.without(left)
        assert not missing, f"{len(missing)} files of others are gone: {sorted(missing)[:5]}"
        assert {key: left[key] for key in others} == others, "files of others were changed"

        async def is_dropped() -> bool:
            return not await self.tombstones(table)

        await self.until(is_dropped, "the final drop was not committed")
        done = [each for each in await self.tasks(table) if each["status"] == "SUCCESS"]
        assert len(done) == 1, done
        result = done[0]["execution_result"]
        counted = (result["files_deleted"], result["bytes_deleted"])
        assert counted == (len(table.objects), table.objects.bytes), result
        check_history(await self.history(done[0]["task_id"]))
        return done[0]

    @asynccontextmanager
    async def beside(
        self,
        name: str,
        store: S3Server,
        *,
        seed: int = 0,
        storage: Mapping[str, Any] | None = None,
        has_rights: bool = True,
    ) -> "AsyncIterator[Scene]":
        """Another catalog of the same servers, with a proxy of its own before its storage."""
        with run_http_proxy(store.endpoint, seed=seed) as proxy:
            base = store.fresh_location("delegated")
            definition = {"endpoint": proxy.url, "stsEndpoint": store.endpoint, **(storage or {})}
            lake = await self.pair.catalog.create_catalog_on(store, name, location=base, storage=definition)
            if has_rights:
                await self.pair.init()
            gate = Gate([proxy])
            yield replace(self, store=store, lake=lake, base=base, storage=proxy, gate=gate, answers=[])
            await asyncio.to_thread(store.delete_below, base)

    # --- processes -------------------------------------------------------------------------------------

    def spark_driver(self) -> psutil.Process | None:
        """The Python process of the first service's driver."""
        return next((each for each in self._children() if _DRIVER in each.cmdline()), None)

    def java(self) -> psutil.Process | None:
        """The driver's Java."""
        return next((each for each in self._children() if each.name() == "java"), None)

    def _children(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.services[0].pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []


def check_history(versions: Sequence[Mapping[str, Any]]) -> None:
    """No two had a task at once: whoever took it had seen it free, or its lease over."""
    assert [each["version"] for each in versions] == list(range(1, len(versions) + 1))
    assert versions[0]["status"] == "SUBMITTED"
    ends = [each["status"] in ("SUCCESS", "FAILURE") for each in versions]
    assert ends[-1]
    worker: str | None = None
    for before, after in itertools.pairwise(versions):
        if after["status"] == "ACQUIRING_RESOURCES":
            worker = after.get("worker")
            was_leased = before["status"] in ("ACQUIRING_RESOURCES", "RUNNING")
            if was_leased and before.get("worker") != worker:
                waited = _moment(after["lease_acquired_ts"]) - _moment(before["lease_acquired_ts"])
                assert waited >= LEASE_S - 0.1, (before, after)
        elif after["status"] in ("RUNNING", "SUCCESS") and after.get("worker") is not None:
            assert after["worker"] == worker, (before, after)


def _moment(text: str) -> float:
    return msgspec.convert(text, datetime).timestamp()


@asynccontextmanager
async def open_scene(
    processes: Processes,
    directory: Path,
    store: S3Server,
    *,
    seed: int = 0,
    env: Mapping[str, str] | None = None,
    service_env: Mapping[str, str] | None = None,
    storage: Mapping[str, Any] | None = None,
) -> AsyncIterator[Scene]:
    """A catalog, the service's principal, and both proxies; start services with `scene.pair`."""
    pair = await start_pair(
        processes, directory, env={**BRISK, **(env or {})}, service_env={**BRISK, **(service_env or {})}
    )
    with (
        run_http_proxy(store.endpoint, seed=seed) as to_storage,
        run_http_proxy(pair.catalog.url, seed=seed) as to_catalog,
    ):
        pair.catalog_url = to_catalog.url
        base = store.fresh_location("delegated")
        definition = {"endpoint": to_storage.url, "stsEndpoint": store.endpoint, **(storage or {})}
        lake = await pair.catalog.create_catalog_on(store, location=base, storage=definition)
        await pair.init()
        scene = Scene(pair, store, lake, base, to_storage, to_catalog, Gate([to_storage, to_catalog]))
        try:
            yield scene
        finally:
            await asyncio.to_thread(store.delete_below, base)
