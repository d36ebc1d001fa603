"""The five workloads of polaris-tools, with its parameters, through HTTP.

One operation is one request. *create tree*: namespaces, then tables, then views of a fresh tree, write only.
*read tree*: everything in it is asked for and loaded. *read and update*: four reads for every update, of
namespaces, tables and views. *commits*: properties of tables and of views, at set rates. *weighted*: for a
while 8 readers and 2 writers choose tables by normal distributions (mean 0.3 and 0.7, variance 0.0278).

    ./dev bench polaris_tools --set ours=memory --target polaris=http://127.0.0.1:18184/api/catalog?warehouse=rck
    ./dev bench polaris_tools --set weighted_seconds=300 --set depth=6      as long as polaris-tools

A maintainer must not break: the parameters' defaults are those of polaris-tools, but for how long a round is.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from itertools import count

from benchmarks.catalog_server import Target, find_peer, start_ours
from benchmarks.http_client import Answer
from benchmarks.http_load import percentile
from benchmarks.measure import Meter, Options, Round
from benchmarks.tree_dataset import Leaf, Requests, Tree

_CLIENTS = 8
_READ_SHARE = 0.8
_READERS, _WRITERS = 8, 2
_READ_MEAN, _WRITE_MEAN, _VARIANCE = 0.3, 0.7, 0.0278
_SEED = 42
_roots = count()

Work = Callable[[Requests], Awaitable[Answer | list[Answer]]]


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    ours = [name for name in options.get("ours", "memory,sqlite").split(",") if name]
    peers = [target.split("=", 1) for target in options.get("targets", "").split(",") if target]
    directory = options.get("directory", "")
    shape = Tree(
        width=options.get("width", 2),
        depth=options.get("depth", 4),
        tables=options.get("tables", 5),
        views=options.get("views", 3),
        columns=options.get("columns", 10),
        properties=options.get("properties", 10),
    )
    table_rate, view_rate = options.get("table_commits_per_s", 50), options.get("view_commits_per_s", 50)
    seconds = options.get("commit_seconds", 3.0)
    weighted_s = options.get("weighted_seconds", 3.0)
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(start_ours(store, directory)) for store in ours]
        targets += [await find_peer(name, address) for name, address in peers]
        for target in targets:
            workloads = _Workloads(target, shape)
            await workloads.prepare()
            candidates |= {
                f"{target.name}: create tree": workloads.create,
                f"{target.name}: read tree": workloads.read,
                f"{target.name}: read and update": workloads.read_and_update,
                f"{target.name}: commits": workloads.commits(table_rate, view_rate, seconds),
                f"{target.name}: weighted": workloads.weighted(weighted_s),
            }
        yield candidates


def _fresh(shape: Tree) -> Tree:
    # Another root each time: a tree can be created only once.
    return Tree(
        f"NS_0_{next(_roots)}_{random.getrandbits(32):x}",
        *(shape.width, shape.depth, shape.tables, shape.views, shape.columns, shape.properties),
    )


class _Workloads:
    """The workloads of one target."""

    def __init__(self, target: Target, shape: Tree) -> None:
        self._target = target
        self._shape = shape
        self._tree = _fresh(shape)

    async def prepare(self) -> None:
        """The tree that all but the first workload use."""
        run = _Run(self._target, self._tree)
        await self._create(run, self._tree)
        if run.errors:
            raise SystemExit(f"bench: {self._target.name} refused {run.errors} requests: {run.refusal!r}")

    async def _create(self, run: "_Run", tree: Tree) -> None:
        by_level: dict[int, list[tuple[str, ...]]] = {}
        for levels in tree.namespaces():
            by_level.setdefault(len(levels), []).append(levels)
        for level in by_level.values():  # A namespace after its parent.
            await run.all([_with(Requests.create_namespace, levels) for levels in level])
        await run.all([_with(Requests.create_table, table) for table in tree.all_tables()])
        await run.all([_with(Requests.create_view, view) for view in tree.all_views()])

    async def create(self, meter: Meter) -> None:
        tree = _fresh(self._shape)
        run = _Run(self._target, tree)
        with run.measured(meter):
            await self._create(run, tree)
        run.tell(meter)

    async def read(self, meter: Meter) -> None:
        tree, run = self._tree, _Run(self._target, self._tree)
        leaves = dict.fromkeys(table.namespace for table in tree.all_tables())
        works = [_with(Requests.read_namespace, levels) for levels in tree.namespaces()]
        works += [_with(Requests.list_leaf, levels) for levels in leaves]
        works += [_with(Requests.read_table, table) for table in tree.all_tables()]
        works += [_with(Requests.read_view, view) for view in tree.all_views()]
        with run.measured(meter):
            await run.all(works)
        run.tell(meter)

    async def read_and_update(self, meter: Meter) -> None:
        tree, run, chance = self._tree, _Run(self._target, self._tree), random.Random(_SEED)
        reads = [_with(Requests.read_namespace, levels) for levels in tree.namespaces()]
        reads += [_with(Requests.read_table, table) for table in tree.all_tables()]
        reads += [_with(Requests.read_view, view) for view in tree.all_views()]
        numbers = count()
        works: list[Work] = []
        for read in reads:
            works.append(read)
            if chance.random() < (1 - _READ_SHARE) / _READ_SHARE:
                works.append(self._some_update(chance, next(numbers)))
        with run.measured(meter):
            await run.all(works)
        run.tell(meter)

    def _some_update(self, chance: random.Random, number: int) -> Work:
        tree = self._tree
        kind = chance.randrange(3)
        if kind == 0:
            return _with(Requests.update_namespace, chance.choice(list(tree.namespaces())), number)
        if kind == 1:
            return _with(Requests.update_table, chance.choice(tree.all_tables()), number)
        return _with(Requests.update_view, chance.choice(tree.all_views()), number)

    def commits(self, table_rate: int, view_rate: int, seconds: float) -> Round:
        async def commit(meter: Meter) -> None:
            tree, run = self._tree, _Run(self._target, self._tree)
            tables, views = tree.all_tables(), tree.all_views()
            with run.measured(meter):
                await asyncio.gather(
                    run.at_rate(table_rate, seconds, _in_turn(Requests.update_table, tables)),
                    run.at_rate(view_rate, seconds, _in_turn(Requests.update_view, views)),
                )
            run.tell(meter)

        return commit

    def weighted(self, seconds: float) -> Round:
        async def run_weighted(meter: Meter) -> None:
            tables, run = self._tree.all_tables(), _Run(self._target, self._tree)
            end_s = time.perf_counter() + seconds
            numbers = count()

            async def go_on(number: int, mean: float, make: Callable[[Leaf], Work]) -> None:
                chance = random.Random(_SEED + number)
                requests = Requests(self._target.catalog, self._tree)
                while time.perf_counter() < end_s:
                    await run.one(requests, make(_choose(chance, tables, mean)))
                requests.close()

            def read(table: Leaf) -> Work:
                return _with(Requests.load_table, table)

            def write(table: Leaf) -> Work:
                return _with(Requests.update_table, table, next(numbers))

            readers = [go_on(number, _READ_MEAN, read) for number in range(_READERS)]
            writers = [go_on(_READERS + number, _WRITE_MEAN, write) for number in range(_WRITERS)]
            with run.measured(meter):
                await asyncio.gather(*readers, *writers)
            run.tell(meter)

        return run_weighted


def _choose(chance: random.Random, tables: Sequence[Leaf], mean: float) -> Leaf:
    while True:
        at = chance.gauss(mean, _VARIANCE**0.5)
        if 0 <= at < 1:
            return tables[int(at * len(tables))]


def _with(method: Callable[..., Awaitable[Answer | list[Answer]]], *arguments: object) -> Work:
    return lambda requests: method(requests, *arguments)


def _in_turn(method: Callable[..., Awaitable[Answer]], leaves: Sequence[Leaf]) -> Callable[[int], Work]:
    return lambda number: _with(method, leaves[number % len(leaves)], number)


class _Run:
    """One round: asks, and remembers how long it took and what was refused."""

    def __init__(self, target: Target, tree: Tree) -> None:
        self._target = target
        self._tree = tree
        self._latencies_s: list[float] = []
        self._requests = 0
        self.errors = 0
        self.refusal = b""

    def measured(self, meter: Meter) -> AbstractContextManager[None]:
        meter.watch(self._target.pid)
        return meter.measuring()

    def tell(self, meter: Meter) -> None:
        meter.count(operations=self._requests, requests=self._requests)
        meter.note("p50 ms", percentile(self._latencies_s, 50) * 1e3)
        meter.note("p99 ms", percentile(self._latencies_s, 99) * 1e3)
        meter.note("errors", self.errors)
        meter.note("RSS MiB", self._target.rss_mib())

    async def one(self, requests: Requests, work: Work) -> None:
        began_s = time.perf_counter()
        answers = await work(requests)
        answers = answers if isinstance(answers, list) else [answers]
        spent_s = (time.perf_counter() - began_s) / len(answers)
        for answer in answers:
            self._requests += 1
            self._latencies_s.append(spent_s)
            if not 200 <= answer.status < 300:
                self.errors += 1
                self.refusal = answer.body[:300]

    async def all(self, works: Sequence[Work]) -> None:
        """By several clients, each taking the next."""
        rest = iter(works)

        async def take() -> None:
            requests = Requests(self._target.catalog, self._tree)
            for work in rest:
                await self.one(requests, work)
            requests.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(_CLIENTS):
                group.create_task(take())

    async def at_rate(self, rate: int, seconds: float, make: Callable[[int], Work]) -> None:
        """So many per second, whether those before are answered or not."""
        idle: list[Requests] = []
        began_s = time.perf_counter()

        async def send(number: int) -> None:
            requests = idle.pop() if idle else Requests(self._target.catalog, self._tree)
            await self.one(requests, make(number))
            idle.append(requests)

        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                await asyncio.sleep(max(0.0, began_s + number / rate - time.perf_counter()))
                group.create_task(send(number))
        for requests in idle:
            requests.close()
