"""Catalog servers through HTTP: load, list and commit, with 1 and 16 clients; ours beside its peers.

One operation is one request. *load*: a table with two columns. *list*: 100 tables. *commit*: one property is
set, by one client on one table or by 16 clients over 100 tables. *snapshots*: load of a table with 2,000
snapshots, all of them or those that refs name. *fdatasync*: the machine's own, on the disk of `directory`.
*bare*: uvicorn with an application that does nothing; 26 us on a quiet machine, so its cost in the same run
tells how much slower the machine is just now. CPU is that of the process that listens and its children.
Requests to our server carry a token, and are authorized; a peer's only if its address names a client.

    ./dev bench catalog                                  ours on the memory store and on SQLite
    scripts/peers/fixture & scripts/peers/nessie &
    ./dev bench catalog --target fixture=http://127.0.0.1:18181 --target nessie=http://127.0.0.1:18182/iceberg
    scripts/peers/commit 3630d25 & ./dev bench catalog --target before=http://127.0.0.1:18185/api/catalog?warehouse=main
    ./dev bench catalog --only 'memory: load, 16 clients' --set ours=memory --set seconds=8

A maintainer must not break: every target gets the same requests; errors are counted and shown.
"""

import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.catalog_server import Target, find_peer, start_bare, start_ours
from benchmarks.http_client import Connection
from benchmarks.http_load import Ask, ask_with_python, ask_with_wrk, has_wrk
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, median, rate, ratio
from benchmarks.results_file import Result

TABLES = 100
SNAPSHOTS = 2_000
_SNAPSHOTS_AT_ONCE = 100
_SYNCS = 200
_COLUMNS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "data", "required": False, "type": "string"},
]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": _COLUMNS}


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    ours = [name for name in options.get("ours", "memory,sqlite").split(",") if name]
    peers = [target.split("=", 1) for target in options.get("targets", "").split(",") if target]
    seconds, directory = options.get("seconds", 3.0), options.get("directory", "")
    # wrk counts in whole seconds.
    is_wrk = seconds == int(seconds) and has_wrk()
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(start_ours(store, directory)) for store in ours]
        targets += [await find_peer(name, address) for name, address in peers]
        for target in targets:
            for name, (ask, clients) in (await _workloads(target)).items():
                candidates[f"{target.name}: {name}"] = asking(target, ask, clients, seconds, is_wrk=is_wrk)
        bare = await stack.enter_async_context(start_bare())
        candidates["bare: 16 clients"] = asking(bare, Ask("/"), 16, seconds, is_wrk=is_wrk)
        if "sqlite" in ours:
            candidates["fdatasync"] = _syncing(directory)
        yield candidates


async def _workloads(target: Target) -> dict[str, tuple[Ask, int]]:
    """What a target can be asked, by name, with the number of clients. Makes the tables for it."""
    connection = target.catalog.connect()
    namespace = target.catalog.namespace("bench")
    tables = f"{namespace}/tables"
    await _send(connection, f"{target.catalog.root}/namespaces", {"namespace": ["bench"], "properties": {}})
    for number in range(TABLES):
        await _send(connection, tables, _new_table(f"t{number:03d}"))
    body = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"{number}"}}]}'
    asked = {
        "load, 1 client": (Ask(f"{tables}/t050"), 1),
        "load, 16 clients": (Ask(f"{tables}/t050"), 16),
        "list, 1 client": (Ask(tables), 1),
        "list, 16 clients": (Ask(tables), 16),
        "commit, 1 client": (Ask(f"{tables}/t000", "POST", body), 1),
        "commit, 16 clients": (Ask(f"{tables}/t{{table}}", "POST", body, tables=TABLES), 16),
    }
    many = await _make_snapshots(connection, target)
    if many:
        asked["snapshots all, 16 clients"] = (Ask(many), 16)
        asked["snapshots refs, 16 clients"] = (Ask(f"{many}?snapshots=refs"), 16)
    connection.close()
    return asked


async def _make_snapshots(connection: Connection, target: Target) -> str:
    """A table with many snapshots; empty when the server does not accept snapshots without files."""
    # Apart, so that the list has as many tables as its name says.
    await _send(connection, f"{target.catalog.root}/namespaces", {"namespace": ["many"], "properties": {}})
    tables = f"{target.catalog.namespace('many')}/tables"
    await _send(connection, tables, _new_table("many"))
    loaded = await connection.request("GET", f"{tables}/many", None)
    location = str(json.loads(loaded.body)["metadata"]["location"])
    now_ms = time.time_ns() // 1_000_000
    for first in range(1, SNAPSHOTS, _SNAPSHOTS_AT_ONCE):
        numbers = range(first, first + _SNAPSHOTS_AT_ONCE)
        updates: list[dict[str, object]] = [
            {"action": "add-snapshot", "snapshot": new_snapshot(number, now_ms + number, location)}
            for number in numbers
        ]
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": numbers[-1]}
        updates.append({"action": "set-snapshot-ref", **ref})
        answer = await connection.request("POST", f"{tables}/many", {"requirements": [], "updates": updates})
        if answer.status != 200:
            print(f"bench: {target.name} has no table with snapshots: {answer.status} {answer.body[:150]!r}")
            return ""
    return f"{tables}/many"


def _new_table(name: str) -> dict[str, object]:
    # Nessie wants to be told that it is not staged.
    return {"name": name, "schema": SCHEMA, "stage-create": False, "properties": {}}


def new_snapshot(number: int, time_ms: int, location: str) -> dict[str, object]:
    """One of a row of snapshots, without files."""
    snapshot: dict[str, object] = {
        "snapshot-id": number,
        "sequence-number": number,
        "timestamp-ms": time_ms,
        "manifest-list": f"{location}/metadata/snap-{number:019d}-1-0b1a.avro",
        "summary": {
            "operation": "append",
            "added-data-files": "4",
            "added-records": str(1_000 + number),
            "total-data-files": str(4 * number),
            "total-records": str(1_000 * number),
        },
        "schema-id": 0,
    }
    return snapshot if number == 1 else {**snapshot, "parent-snapshot-id": number - 1}


async def _send(connection: Connection, path: str, body: object) -> None:
    answer = await connection.request("POST", path, body)
    if answer.status not in (200, 409):
        raise SystemExit(f"bench: {path} answered {answer.status}: {answer.body[:300]!r}")


def asking(target: Target, ask: Ask, clients: int, seconds: float, *, is_wrk: bool) -> Round:
    """A round in which so many clients ask one server for the same."""
    ask_it = ask_with_wrk if is_wrk else ask_with_python

    async def run(meter: Meter) -> None:
        meter.watch(target.pid)
        with meter.measuring():
            told = await ask_it(target.catalog, ask, clients=clients, seconds=seconds)
        meter.count(operations=told.requests, requests=told.requests)
        meter.note("p50 ms", told.p50_ms)
        meter.note("p99 ms", told.p99_ms)
        meter.note("errors", told.errors)
        meter.note("RSS MiB", target.rss_mib())

    return run


def _syncing(directory: str) -> Round:
    async def run(meter: Meter) -> None:
        block = os.urandom(4096)
        with tempfile.TemporaryFile(dir=directory or None, buffering=0) as file, meter.measuring():
            for _ in range(_SYNCS):
                file.write(block)
                os.fdatasync(file.fileno())
        meter.count(operations=_SYNCS)

    return run


def _cpu_ms(figures: Figures) -> float:
    return figures.watched_cpu_s * 1e3 / figures.operations


def promises(result: Result) -> list[Promise]:
    """CPU per request, rates beside a peer and beside the disk, memory, errors."""
    found: list[Promise] = []
    most_ms = {
        "memory: load, 16 clients": 0.08,
        "memory: list, 16 clients": 0.08,
        "memory: snapshots refs, 16 clients": 5 * 0.08,
        "memory: commit, 16 clients": 0.6,
    }
    for candidate, most in most_ms.items():
        if has(result, candidate):
            used_ms = median(result, candidate, _cpu_ms)
            found.append(Promise(f"{candidate}: CPU per request, ms", "≤", most, used_ms))
    for work, most_times in (("load", 3.0), ("list", 3.0), ("commit", 23.0)):
        if has(result, f"memory: {work}, 16 clients", "bare: 16 clients"):
            times = ratio(result, f"memory: {work}, 16 clients", "bare: 16 clients", _cpu_ms)
            found.append(Promise(f"memory: {work}, 16 clients, CPU over bare, times", "≤", most_times, times))
    if has(result, "memory: commit, 16 clients", "nessie: commit, 16 clients"):
        times = ratio(result, "memory: commit, 16 clients", "nessie: commit, 16 clients", rate)
        found.append(Promise("commit, 16 clients, over nessie, times", "≥", 2, times))
    for clients, least in (("1 client", 0.5), ("16 clients", 3)):
        if has(result, f"sqlite: commit, {clients}", "fdatasync"):
            times = ratio(result, f"sqlite: commit, {clients}", "fdatasync", rate)
            found.append(Promise(f"sqlite: commit, {clients}, over fdatasync, times", "≥", least, times))
    for store in ("memory", "sqlite"):
        rounds = [
            each for name, run in result.candidates.items() if name.startswith(f"{store}:") for each in run
        ]
        if rounds:
            found.append(Promise(f"{store}: errors", "≤", 0, sum(each.notes["errors"] for each in rounds)))
            most_mib = max(each.notes["RSS MiB"] for each in rounds)
            found.append(Promise(f"{store}: resident memory, MiB", "≤", 250, most_mib))
    return found
