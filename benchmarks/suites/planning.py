"""Scan planning through HTTP: CPU of our server for a whole plan beside PyIceberg's own planning.

A table of 100,000 files (`manifest_table.py`) is registered in a server of ours, its files on this machine.
One operation is one file of the table, whether the plan has it or not:

- *all*, *a month*, *a value*: a plan from the request to the last page of tasks. CPU is that of the server
  (`watched`); what the client uses to read the answers is beside it
- *all, PyIceberg* and so on: the local planning of PyIceberg, from the same metadata and files

The manifests are in memory, except for the first plan of all, which happens before the rounds: how often and
how much it reads from storage is noted with every round of *all*.

    ./dev bench planning --set files=20000

A maintainer must not break: before anything is measured, each plan has exactly the files of PyIceberg's.
"""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from benchmarks.catalog_server import CATALOG, Target, start_ours
from benchmarks.http_client import Connection
from benchmarks.manifest_table import DAY_US, FIRST_DAY, LIST, SNAPSHOT, ManifestTable
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, median
from benchmarks.results_file import Result
from cynosure.iceberg.manifests.write_manifest import spec_fields_json, write_manifest_list
from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import TIMESTAMP

MONTH: Final = (FIRST_DAY + 100) * DAY_US, (FIRST_DAY + 130) * DAY_US - 1
VALUE: Final = 500_000_000
PLANS: Final = ("all", "a month", "a value")
BOUND: Final = 10
READ: Final = "cynosure_catalog_manifest_reads_total"
READ_BYTES: Final = "cynosure_catalog_manifest_read_bytes_total"
HELD_BYTES: Final = "cynosure_catalog_manifest_bytes"


class Served:
    """The table behind a server, and whoever asks for plans of it."""

    def __init__(self, target: Target, table: ManifestTable, folder: Path) -> None:
        self.target = target
        self.files = table.files
        self.metadata = folder / "metadata" / "v1.metadata.json"
        self._table = table
        self._folder = folder
        self._connection: Connection = target.catalog.connect()
        self._path = f"{target.catalog.namespace('sales')}/tables/orders"
        self.cold: dict[str, float] = {}

    async def register(self) -> None:
        """Write the table's files and make it known."""
        self.metadata.parent.mkdir(parents=True)
        paths = {}
        for old, data in self._table.contents.items():
            if old != LIST:
                path = self.metadata.with_name(old.rpartition("/")[2])
                path.write_bytes(data)
                paths[old] = path.as_uri()
        list_, _, _ = write_manifest_list(
            [replace(one, path=paths[one.path]) for one in self._table.listed],
            format_version=2,
            snapshot_id=SNAPSHOT,
            parent_snapshot_id=None,
            sequence_number=1,
        )
        self.metadata.with_name("list.avro").write_bytes(list_)
        self.metadata.write_bytes(msgspec.json.encode(self._document()))
        catalog = self.target.catalog
        await self._ask(f"{catalog.root}/namespaces", {"namespace": ["sales"]})
        named = {"name": "orders", "metadata-location": self.metadata.as_uri()}
        await self._ask(f"{catalog.namespace('sales')}/register", named)

    async def plan(self, filter_: Any) -> tuple[list[bytes], float]:
        """All answers of a plan, and the seconds until the first of them."""
        begin_s = time.perf_counter()
        answers = [await self._ask(f"{self._path}/plan", {} if filter_ is None else {"filter": filter_})]
        first_s = time.perf_counter() - begin_s
        waiting = _plan_tasks(answers[0])
        while waiting:
            answers.append(await self._ask(f"{self._path}/tasks", {"plan-task": waiting.pop(0)}))
            waiting += _plan_tasks(answers[-1])
        return answers, first_s

    async def metric(self, name: str) -> float:
        """A figure of the server's own metrics."""
        body = (await self._connection.request("GET", "/metrics")).body.decode()
        lines = [line for line in body.splitlines() if line.startswith((f"{name} ", f"{name}{{"))]
        return sum(float(line.split()[-1]) for line in lines)

    def close(self) -> None:
        self._connection.close()

    async def _ask(self, path: str, body: Any) -> bytes:
        answer = await self._connection.request("POST", path, body)
        if answer.status != 200:
            raise SystemExit(f"bench: {path} answered {answer.status}: {answer.body[:500]!r}")
        return answer.body

    def _document(self) -> dict[str, Any]:
        table = self._table
        snapshot = {
            "snapshot-id": SNAPSHOT,
            "sequence-number": 1,
            "timestamp-ms": 1_760_000_000_000,
            "manifest-list": self.metadata.with_name("list.avro").as_uri(),
            "summary": {"operation": "append"},
            "schema-id": 0,
        }
        return {
            "format-version": 2,
            "table-uuid": "9d0f1ad2-7c1c-4b3e-9d00-5f2b4d0c9e5f",
            "location": self._folder.as_uri(),
            "last-sequence-number": 1,
            "last-updated-ms": 1_760_000_000_000,
            "last-column-id": len(table.schema.fields),
            "schemas": [msgspec.Raw(table.schema_json)],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": msgspec.Raw(spec_fields_json(table.spec))}],
            "default-spec-id": 0,
            "last-partition-id": 1001,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "current-snapshot-id": SNAPSHOT,
            "refs": {"main": {"type": "branch", "snapshot-id": SNAPSHOT}},
            "snapshots": [snapshot],
        }


def _plan_tasks(answer: bytes) -> list[str]:
    # The pages are long, and what is asked for next is small and at their end.
    at = answer.rfind(b'"plan-tasks":')
    if at < 0:
        return []
    found: list[str] = msgspec.json.decode(answer[at + 13 : answer.index(b"]", at) + 1])
    return found


def _filters() -> dict[str, tuple[Any, Any]]:
    """As JSON, and for PyIceberg."""
    # Untyped: the constructors of its models take other arguments than their types say.
    theirs: Any = import_module("pyiceberg.expressions")
    literals: Any = import_module("pyiceberg.expressions.literals")
    first, last = (write_value(TIMESTAMP, one) for one in MONTH)
    month = {
        "type": "and",
        "left": {"type": "gt-eq", "term": "c3", "value": first},
        "right": {"type": "lt-eq", "term": "c3", "value": last},
    }
    return {
        "all": (None, theirs.AlwaysTrue()),
        "a month": (
            month,
            theirs.And(
                theirs.GreaterThanOrEqual("c3", literals.TimestampLiteral(MONTH[0])),
                theirs.LessThanOrEqual("c3", literals.TimestampLiteral(MONTH[1])),
            ),
        ),
        "a value": ({"type": "eq", "term": "c1", "value": VALUE}, theirs.EqualTo("c1", VALUE)),
    }


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    from pyiceberg.table import StaticTable

    table = ManifestTable(options.get("files", 100_000), options.get("per_manifest", 10_000))
    async with start_ours("memory") as target:
        served = Served(target, table, Path(target.data) / "warehouse" / CATALOG / "sales" / "orders")
        await served.register()
        theirs = StaticTable.from_metadata(served.metadata.as_uri())
        await _plan_cold(served)
        candidates: dict[str, Round] = {}
        for name, (ours, other) in _filters().items():
            await _check(served, ours, theirs.scan(row_filter=other))
            candidates[name] = _planning(served, name, ours)
            candidates[f"{name}, PyIceberg"] = _planning_by_pyiceberg(served.files, theirs, other)
        yield candidates
        served.close()


async def _plan_cold(served: Served) -> None:
    before = [await served.metric(READ), await served.metric(READ_BYTES)]
    begin_s = time.perf_counter()
    _, first_s = await served.plan(None)
    served.cold = {
        "cold: ms until the first page": first_s * 1e3,
        "cold: ms until complete": (time.perf_counter() - begin_s) * 1e3,
        "cold: files read from storage": await served.metric(READ) - before[0],
        "cold: bytes read per file": (await served.metric(READ_BYTES) - before[1]) / served.files,
        "in memory: bytes per file": await served.metric(HELD_BYTES) / served.files,
    }


async def _check(served: Served, ours: Any, scan: Any) -> None:
    answers, _ = await served.plan(ours)
    found = [
        one["data-file"]["file-path"]
        for answer in answers
        for one in msgspec.json.decode(answer).get("file-scan-tasks", ())
    ]
    assert sorted(found) == sorted(task.file.file_path for task in scan.plan_files())
    assert found


def _planning(served: Served, name: str, filter_: Any) -> Round:
    async def run(meter: Meter) -> None:
        meter.watch(served.target.pid)
        begin_s = time.perf_counter()
        with meter.measuring():
            answers, first_s = await served.plan(filter_)
        meter.note("ms until the first page", first_s * 1e3)
        meter.note("ms until complete", (time.perf_counter() - begin_s) * 1e3)
        if name == "all":
            for note, value in served.cold.items():
                meter.note(note, value)
        meter.count(operations=served.files, requests=len(answers), bytes=sum(map(len, answers)))

    return run


def _planning_by_pyiceberg(files: int, table: Any, filter_: Any) -> Round:
    async def run(meter: Meter) -> None:
        with meter.measuring():
            list(table.scan(row_filter=filter_).plan_files())
        meter.count(operations=files)

    return run


def _server_us(figures: Figures) -> float:
    return figures.watched_cpu_s * 1e6 / figures.operations


def _own_us(figures: Figures) -> float:
    return figures.cpu_s * 1e6 / figures.operations


def promises(result: Result) -> list[Promise]:
    """What issue F promises of planning."""
    judged: list[Promise] = []
    for name in PLANS:
        other = f"{name}, PyIceberg"
        if has(result, name, other):
            times = median(result, other, _own_us) / max(median(result, name, _server_us), 1e-9)
            judged.append(Promise(f"{name}: CPU of the server below PyIceberg's, times", "≥", BOUND, times))
    if has(result, "all"):
        share = median(
            result, "all", lambda one: one.notes["ms until the first page"] / one.notes["ms until complete"]
        )
        judged.append(Promise("all: time until the first page, of that until the last", "≤", 0.5, share))
    return judged
