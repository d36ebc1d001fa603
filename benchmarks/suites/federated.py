"""What federated catalogs cost: loads that are cached, checked or taken in anew, lists, and idle ones.

Through HTTP, with two servers of ours on the memory store; the second owns the tables (`federated_stage.py`).
CPU is that of the first one alone; `remote CPU µs` is the second one's share. One operation is:

- *native load*: a table of the first server's own, one of 64 in turn, by 4 clients
- *cached load*: the same of a federated catalog, in which what was seen counts for an hour
- *checked load*: the same where every load asks the remote whether the table has changed (304)
- *changed load*: a table that its owner has just changed, so that it is taken into the mirror; by one client.
  Its owner's change is made by another connection, at the second server only
- *changed load, 100 snapshots*: the same of a table with as many snapshots
- *list*: one page of 500 out of 10,000 tables of a federated catalog, read from the first to the last by a
  fresh server. `peak MiB` is what became resident meanwhile, `asked` are requests to the remote
- *whole list*: the same in one answer, which has to be held: what that is in `peak MiB`
- *100 native catalogs*, *100 federated catalogs*: one catalog, made on a fresh server, one table of it loaded
  once, then left alone. `grown MiB` is what the process has grown by, all of them together

    ./dev bench federated [--set seconds=2] [--set tables=10000] [--set catalogs=100] [--set snapshots=100]

A maintainer must not break: the tables, requests and rights of native and federated candidates are the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count as counting
from typing import Final

from benchmarks.federated_stage import (
    Pair,
    Stage,
    Tables,
    ask,
    create_federated,
    forget_peak,
    open_stage,
    open_tables,
    peak_mib,
    rss_mib,
    send,
)
from benchmarks.http_load import Ask, ask_with_python, ask_with_wrk, has_wrk
from benchmarks.measure import Figures, Meter, Options, Round
from benchmarks.promises import Promise, has, median, ratio
from benchmarks.results_file import Result
from cynosure.testing.catalog_server import CatalogServer

NATIVE, CACHED, CHECKED = "native load", "cached load", "checked load"
CHANGED, LIST, WHOLE = "changed load", "list", "whole list"
MANY = "100 federated catalogs"
_LOADED: Final = 64
_CLIENTS: Final = 4
_WARM: Final = 3
_SETTLE_S: Final = 1.5
"""After which a process has published what it counts, and freed what it was about to."""
_CACHED: Final = {"cynosure.federation.max-staleness": "1h"}


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """All of them, on one pair of servers."""
    seconds, tables = options.get("seconds", 2.0), options.get("tables", 10_000)
    catalogs, snapshots = options.get("catalogs", 100), options.get("snapshots", 100)
    changes, page = options.get("changes", 100), options.get("page", 500)
    async with open_stage(options.get("directory", "")) as stage:
        names = [f"t{number:03d}" for number in range(_LOADED)]
        native, cached = await stage.make_native("native"), await stage.federate("cached", _CACHED)
        checked, listed = await stage.federate("checked"), await stage.federate("listed")
        for each in (native, cached.owner, checked.owner):
            await each.make_tables("ns", names)
        await checked.owner.make_tables("changed", ["small", "large"])
        await checked.owner.add_snapshots("changed", "large", snapshots)
        await listed.owner.make_tables("many", _many(tables))
        idle = await _Idle.open(stage, catalogs)
        is_wrk = seconds == int(seconds) and has_wrk()
        yield {
            NATIVE: _loading(stage, native, seconds, is_wrk=is_wrk),
            CACHED: _loading(stage, cached.near, seconds, is_wrk=is_wrk),
            CHECKED: _loading(stage, checked.near, seconds, is_wrk=is_wrk),
            CHANGED: _changing(stage, checked, "small", changes),
            f"{CHANGED}, {snapshots} snapshots": _changing(stage, checked, "large", changes),
            LIST: _listing(stage, listed, tables, page),
            WHOLE: _listing(stage, listed, tables, None),
            f"{catalogs} native catalogs": idle.make_native,
            f"{catalogs} federated catalogs": idle.make_federated,
        }


def _loading(stage: Stage, tables: Tables, seconds: float, *, is_wrk: bool) -> Round:
    ask_it = ask_with_wrk if is_wrk else ask_with_python
    wanted = Ask(tables.path("ns", "t{table}"), tables=_LOADED)

    async def run(meter: Meter) -> None:
        before = await stage.count_asked("loadTable")
        remote_s = stage.remote_cpu_s()
        meter.watch(stage.near.process.pid)
        with meter.measuring():
            told = await ask_it(tables.catalog, wanted, clients=_CLIENTS, seconds=seconds)
        meter.count(operations=told.requests, requests=told.requests)
        meter.note("remote CPU µs", (stage.remote_cpu_s() - remote_s) * 1e6 / told.requests)
        meter.note("p50 ms", told.p50_ms)
        meter.note("errors", told.errors)
        meter.note("asked", (await stage.count_asked("loadTable") - before) / told.requests)

    return run


def _changing(stage: Stage, pair: Pair, table: str, changes: int) -> Round:
    numbers = counting(1)

    async def run(meter: Meter) -> None:
        owner, near = pair.owner.catalog.connect(), pair.near.catalog.connect()
        wanted, path = pair.near.path("changed", table), pair.owner.path("changed", table)
        meter.watch(stage.near.process.pid)
        with meter.measuring():
            for number in (str(next(numbers)) for _ in range(changes)):
                properties = {"action": "set-properties", "updates": {"number": number}}
                await send(owner, path, {"requirements": [], "updates": [properties]})
                seen = (await ask(near, wanted))["metadata"]["properties"]["number"]
                if seen != number:
                    raise SystemExit(f"bench: version {seen} was loaded, and the owner has {number}")
        meter.count(operations=changes, requests=changes)
        owner.close()
        near.close()

    return run


def _listing(stage: Stage, pair: Pair, expected: int, size: int | None) -> Round:
    """All pages of so many names; without a size, the whole list in one answer."""

    async def run(meter: Meter) -> None:
        # A fresh one has no freed memory in which a list could hide.
        async with stage.starting_another() as server:
            await create_federated(server, stage.far, "listed", "listed", pair.location)
            await _list(stage, server, meter, expected, size)

    return run


async def _list(stage: Stage, server: CatalogServer, meter: Meter, expected: int, size: int | None) -> None:
    tables, pid = await open_tables(server, "listed"), server.process.pid
    connection = tables.catalog.connect()
    await ask(connection, f"{tables.path('many')}?pageSize={_WARM}&pageToken=")
    asked, before_mib = await stage.count_asked("listTables"), rss_mib(pid)
    forget_peak(pid)
    meter.watch(pid)
    names, pages, token = 0, 0, ""
    with meter.measuring():
        while token or not pages:
            paging = "" if size is None else f"?pageSize={size}&pageToken={token}"
            answer = await ask(connection, f"{tables.path('many')}{paging}")
            names, pages = names + len(answer["identifiers"]), pages + 1
            token = answer.get("next-page-token") or ""
    if names != expected:
        raise SystemExit(f"bench: {names} names in the list, and there are {expected} tables")
    meter.count(operations=pages, rows=names)
    meter.note("peak MiB", peak_mib(pid) - before_mib)
    meter.note("asked", (await stage.count_asked("listTables") - asked) / pages)
    connection.close()


def _many(count: int) -> list[str]:
    return [f"table_{number:06d}" for number in range(count)]


_Make = Callable[[CatalogServer, int], Awaitable[None]]
"""Makes one catalog."""


class _Idle:
    """Rounds in which a fresh server gets many catalogs that nobody uses afterwards."""

    def __init__(self, stage: Stage, owner: Tables, count: int) -> None:
        self._stage = stage
        self._owner = owner
        self._count = count

    @classmethod
    async def open(cls, stage: Stage, count: int) -> "_Idle":
        """With a catalog of the remote in which there is a namespace for each."""
        await stage.far.create_catalog("idle")
        owner = await open_tables(stage.far, "idle")
        for number in range(count + _WARM):
            await owner.make_tables(_space(number), ["t"])
        return cls(stage, owner, count)

    async def make_native(self, meter: Meter) -> None:
        """Catalogs of its own."""

        async def make(server: CatalogServer, number: int) -> None:
            await server.create_catalog(_space(number))
            tables = await open_tables(server, _space(number))
            await tables.make_tables(_space(number), ["t"])
            await _load_once(tables, _space(number))

        await self._run(meter, make)

    async def make_federated(self, meter: Meter) -> None:
        """Federated ones, of as many places of one remote."""

        async def make(server: CatalogServer, number: int) -> None:
            space = _space(number)
            location = (self._stage.far.warehouse / "idle" / space).as_uri()
            await create_federated(server, self._stage.far, space, "idle", location)
            await _load_once(await open_tables(server, space), space)

        await self._run(meter, make)

    async def _run(self, meter: Meter, make: _Make) -> None:
        async with self._stage.starting_another() as server:
            # What is there for the first one of them is no cost of being many.
            for number in range(_WARM):
                await make(server, self._count + number)
            await asyncio.sleep(_SETTLE_S)
            before_mib = rss_mib(server.process.pid)
            meter.watch(server.process.pid)
            with meter.measuring():
                for number in range(self._count):
                    await make(server, number)
            await asyncio.sleep(_SETTLE_S)
            meter.count(operations=self._count)
            meter.note("grown MiB", rss_mib(server.process.pid) - before_mib)


def _space(number: int) -> str:
    return f"idle{number:04d}"


async def _load_once(tables: Tables, namespace: str) -> None:
    connection = tables.catalog.connect()
    await ask(connection, tables.path(namespace, "t"))
    connection.close()


def _cpu_ms(figures: Figures) -> float:
    return figures.watched_cpu_s * 1e3 / figures.operations


def promises(result: Result) -> list[Promise]:
    """CPU of loads, what a list keeps and asks for, memory of idle catalogs, errors."""
    found: list[Promise] = []
    if has(result, NATIVE, CACHED):
        times = ratio(result, CACHED, NATIVE, _cpu_ms)
        found.append(Promise("cached load, CPU over a native one, times", "≤", 2, times))
    if has(result, CHANGED):
        added_ms = median(result, CHANGED, _cpu_ms)
        found.append(Promise("CPU that a changed load adds to the remote's, ms", "≤", 5, added_ms))
    if has(result, LIST):
        asked = max(figures.notes["asked"] for figures in result.candidates[LIST])
        found.append(Promise("requests to the remote per page of a list", "≤", 1, asked))
        held_mib = median(result, LIST, lambda figures: figures.notes["peak MiB"])
        found.append(Promise("memory that a list of all pages needs, MiB", "≤", 1, held_mib))
    if has(result, MANY):
        grown_mib = median(result, MANY, lambda figures: figures.notes["grown MiB"])
        found.append(Promise(f"memory of {MANY}, MiB", "≤", 50, grown_mib))
    loads = [each for name in (NATIVE, CACHED, CHECKED) for each in result.candidates.get(name, ())]
    if loads:
        found.append(Promise("errors of loads", "≤", 0, sum(each.notes["errors"] for each in loads)))
    return found
