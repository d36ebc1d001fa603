"""Commits with an Idempotency-Key beside the same ones without, through HTTP.

One operation is one request that sets a property of a table: by one client on one table, or by 16 clients
over 100 tables. Each keyed request has a key of its own, so each is reserved, committed and noted. *live*:
the same on SQLite, where 1,000,000 other keys are in the catalog's state and as many records in the store.

    ./dev bench idempotency                          ours on the memory store and on SQLite
    ./dev bench idempotency --set ours=sqlite --set live=0

A maintainer must not break: both kinds are asked of the same server, in turn.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.catalog_server import Target, start_ours
from benchmarks.http_load import Ask, has_wrk
from benchmarks.live_keys import load_keys, load_records
from benchmarks.measure import Figures, Options, Round
from benchmarks.promises import Promise, has, ratio
from benchmarks.results_file import Result
from benchmarks.suites.catalog import SCHEMA, asking
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM

TABLES = 100
_LIVE = "sqlite, live: keyed, 16 clients"
_BODY = '{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"{number}"}}]}'


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """A server for each store, asked with and without keys."""
    ours = [name for name in options.get("ours", "memory,sqlite").split(",") if name]
    seconds = options.get("seconds", 3.0)
    is_wrk = seconds == int(seconds) and has_wrk()
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for store in ours:
            target = await stack.enter_async_context(start_ours(store))
            for name, (ask, clients) in (await _workloads(target)).items():
                candidates[f"{store}: {name}"] = asking(target, ask, clients, seconds, is_wrk=is_wrk)
        if live := options.get("live", 1_000_000):
            target = await stack.enter_async_context(start_ours("sqlite"))
            asked = await _workloads(target)
            await _load_live(target, live)
            ask, clients = asked["keyed, 16 clients"]
            candidates[_LIVE] = asking(target, ask, clients, seconds, is_wrk=is_wrk)
        yield candidates


async def _load_live(target: Target, count: int) -> None:
    async with open_persistence(f"sqlite:{target.data}/store.db") as persistence:
        references = await persistence.backend.list_refs(DEFAULT_REALM)
        (main,) = [ref.key for ref in references if ref.key.name == "main"]
        await load_keys(persistence, main, count)
        await load_records(persistence, count)


async def _workloads(target: Target) -> dict[str, tuple[Ask, int]]:
    connection = target.catalog.connect()
    tables = f"{target.catalog.namespace('bench')}/tables"
    namespace = {"namespace": ["bench"], "properties": {}}
    answers = [await connection.request("POST", f"{target.catalog.root}/namespaces", namespace)]
    for number in range(TABLES):
        wanted = {"name": f"t{number:03d}", "schema": SCHEMA}
        answers.append(await connection.request("POST", tables, wanted))
    connection.close()
    if failed := [answer for answer in answers if answer.status != 200]:
        raise SystemExit(f"bench: {failed[0].status} {failed[0].body[:300]!r}")
    asked: dict[str, tuple[Ask, int]] = {}
    for kind, is_keyed in (("plain", False), ("keyed", True)):
        one = Ask(f"{tables}/t000", "POST", _BODY, is_keyed=is_keyed)
        many = Ask(f"{tables}/t{{table}}", "POST", _BODY, tables=TABLES, is_keyed=is_keyed)
        asked[f"{kind}, 1 client"] = (one, 1)
        asked[f"{kind}, 16 clients"] = (many, 16)
    return asked


def _cpu_ms(figures: Figures) -> float:
    return figures.watched_cpu_s * 1e3 / figures.operations


def promises(result: Result) -> list[Promise]:
    """CPU of a keyed commit beside a plain one."""
    found: list[Promise] = []
    for store in ("memory", "sqlite"):
        for clients, most in (("16 clients", 1.25), ("1 client", 2.0)):
            names = f"{store}: keyed, {clients}", f"{store}: plain, {clients}"
            if has(result, *names):
                times = ratio(result, *names, _cpu_ms)
                found.append(Promise(f"{store}: keyed over plain, {clients}, CPU", "≤", most, times))
    if has(result, _LIVE, "sqlite: keyed, 16 clients"):
        times = ratio(result, _LIVE, "sqlite: keyed, 16 clients", _cpu_ms)
        found.append(Promise("sqlite: 1,000,000 live keys over none, 16 clients, CPU", "≤", 1.2, times))
    return found
