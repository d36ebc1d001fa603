"""One table update and one lookup in the index: rows, bytes, fetches and CPU, in memory.

A commit object here holds three indexes, as a catalog's does (name to entity, stable id to name,
location to stable id); an update changes the first and writes all three embedded parts again, plus an
entity row of 2 KB and the reference row. A cold lookup's requests include the reference and the commit.

    ./dev bench index --set keys=1000000 --set built=random
    python -m benchmarks.suites.index [10000 100000 1000000]      the table of all figures

A maintainer must not break: rows, bytes and fetches are exact and must not depend on the machine.
"""

import asyncio
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count

from benchmarks.measure import Meter, Options, Round
from cynosure.persistence.index import (
    BulkLoad,
    Index,
    IndexLimits,
    Node,
    check,
    decode_node,
    encode_id_key,
    encode_key,
)
from cynosure.persistence.spi import ObjId

ENTITY_BYTES = 2048
COMMIT_HEADER_BYTES = 300
HOT_KEYS = 500
HOT_SHARE = 0.8
TABLES_PER_NAMESPACE = 200
SCATTERED_KEYS = 10_000
WORDS = ["sales", "orders", "finance", "marketing", "raw", "curated", "staging", "events", "clicks", "users"]
WORDS += ["billing", "invoices", "payments", "ledger", "people", "logistics", "fleet", "metrics", "audit"]

Figures = dict[str, float]


class NodeStore:
    """Nodes in memory, counting what a database would have been asked."""

    def __init__(self) -> None:
        self.nodes: dict[ObjId, Node] = {}
        self._ids = count(1 << 50)
        self._random = random.Random(7)

    def new_id(self) -> ObjId:
        # As scattered as snowflake ids: time above, node and sequence below.
        return ObjId(next(self._ids) << 12 | self._random.getrandbits(12))

    def write(self, nodes: Iterable[tuple[ObjId, Node]]) -> None:
        for id, node in nodes:
            node.encode()  # as on the way to a row; a second call costs next to nothing
            self.nodes[id] = node

    def get(self, id: ObjId) -> Node | None:
        return self.nodes.get(id)

    async def load(self, id: ObjId) -> Node:
        return self.nodes[id]

    async def load_many(self, ids: Sequence[ObjId]) -> list[Node]:
        return [self.nodes[id] for id in ids]


class ColdStore(NodeStore):
    """The same rows behind an empty cache."""

    def __init__(self, warm: NodeStore) -> None:
        super().__init__()
        self._rows = warm.nodes
        self.fetches = 0

    def get(self, id: ObjId) -> Node | None:
        return None

    async def load(self, id: ObjId) -> Node:
        self.fetches += 1
        return decode_node(self._rows[id].encode())


def table_name(number: int, total: int) -> tuple[str, str, str]:
    """A name of about 45 bytes in a nested namespace; many tables share a namespace."""
    chance = random.Random(number)
    namespace = chance.randrange(max(1, total // TABLES_PER_NAMESPACE))
    inside = random.Random(-1 - namespace)
    return (
        f"{inside.choice(WORDS)}_{namespace % 17}",
        f"{inside.choice(WORDS)}_{namespace:04d}",
        f"{chance.choice(WORDS)}_{chance.choice(WORDS)}_{number:07d}",
    )


def entries_by_name(total: int) -> list[tuple[bytes, bytes]]:
    """Name to entity id, in key order."""
    chance = random.Random(total)
    return sorted((encode_key(*table_name(number, total)), _id_value(chance)) for number in range(total))


def entries_by_id(total: int) -> list[tuple[bytes, bytes]]:
    """Stable id to name."""
    base = 1 << 60
    return [(encode_id_key(base + (at << 14)), encode_key(*table_name(at, total))) for at in range(total)]


def entries_by_location(total: int) -> list[tuple[bytes, bytes]]:
    """Location to stable id, in key order."""
    chance = random.Random(-total)
    entries = []
    for number in range(total):
        path = "/".join(table_name(number, total))
        entries.append((encode_key("s3", "lakehouse-prod", "warehouse", *path.split("/")), _id_value(chance)))
    return sorted(entries)


def _id_value(chance: random.Random) -> bytes:
    return ((chance.getrandbits(30) + (3 << 38)) << 22 | chance.getrandbits(22)).to_bytes(8, "big")


def bulk_loaded(store: NodeStore, entries: Iterable[tuple[bytes, bytes]], limits: IndexLimits) -> Index:
    """By bottom-up load of sorted entries."""
    load = BulkLoad(new_id=store.new_id, limits=limits)
    store.write(load.feed(entries))
    applied = load.finish()
    store.write(applied.nodes)
    return applied.index


async def randomly_inserted(
    store: NodeStore, entries: Sequence[tuple[bytes, bytes]], limits: IndexLimits
) -> Index:
    """By insertion in random order, so that nodes have the fill that splitting leaves behind."""
    shuffled = list(entries)
    random.Random(5).shuffle(shuffled)
    index = Index.EMPTY
    batch = max(100, len(shuffled) // 25)
    for start in range(0, len(shuffled), batch):
        changes: dict[bytes, bytes | None] = dict(shuffled[start : start + batch])
        before = index
        applied = await index.apply(store, changes, new_id=store.new_id, limits=limits)
        index = applied.index
        store.write(applied.nodes)
        await _forget_replaced(store, before, index)
    return index


async def _forget_replaced(store: NodeStore, before: Index, after: Index) -> None:
    dead = (await check(store, before)).node_ids - (await check(store, after)).node_ids
    for id in dead:
        del store.nodes[id]


def update_keys(keys: Sequence[bytes], chance: random.Random, *, is_hot: bool) -> Callable[[], bytes]:
    """A workload: uniformly random, or mostly a few hundred hot tables."""
    hot = chance.sample(keys, min(HOT_KEYS, len(keys)))
    return lambda: chance.choice(hot if is_hot and chance.random() < HOT_SHARE else keys)


async def measure_updates(
    store: NodeStore,
    index: Index,
    keys: Sequence[bytes],
    *,
    other_bytes: int,
    is_hot: bool,
    limits: IndexLimits,
    commits: int = 3000,
) -> Figures:
    """Rows, bytes and CPU of single-table updates in the steady state (after as many warm-up commits)."""
    chance = random.Random(11)
    next_key = update_keys(keys, chance, is_hot=is_hot)
    rows: list[int] = []
    sizes: list[int] = []
    cpu_s = 0.0
    for at in range(2 * commits):
        key, value = next_key(), _id_value(chance)
        began_s = time.process_time()
        applied = await index.apply(store, {key: value}, new_id=store.new_id, limits=limits)
        encoded_bytes = len(applied.index.encode()) + sum(len(node.encode()) for _, node in applied.nodes)
        took_s = time.process_time() - began_s
        index = applied.index
        store.write(applied.nodes)
        if at >= commits:
            cpu_s += took_s
            rows.append(3 + len(applied.nodes))
            sizes.append(encoded_bytes + ENTITY_BYTES + COMMIT_HEADER_BYTES + other_bytes)
    return {
        "rows_mean": statistics.mean(rows),
        "rows_p99": _percentile(rows, 99),
        "rows_max": max(rows),
        "kib_mean": statistics.mean(sizes) / 1024,
        "kib_p99": _percentile(sizes, 99) / 1024,
        "kib_max": max(sizes) / 1024,
        "update_cpu_us": cpu_s / commits * 1e6,
        "embedded_kib": len(index.encode()) / 1024,
    }


async def measure_lookups(store: NodeStore, index: Index, keys: Sequence[bytes]) -> Figures:
    """Fetches of a cold lookup (with the reference and the commit object), CPU of a warm one."""
    chance = random.Random(13)
    cold = ColdStore(store)
    sample = chance.choices(keys, k=200)
    fetches = []
    for key in sample:
        cold.fetches = 0
        if await index.find(cold, key) is None:
            raise AssertionError("a key is missing")
        fetches.append(2 + cold.fetches)
    # The same number of tables at every size, first those a server is asked for all the time, then so
    # many that the processor's caches hold few of their nodes.
    warm_us: dict[int, float] = {}
    for distinct in (HOT_KEYS, SCATTERED_KEYS):
        sample = chance.choices(keys, k=distinct)
        rounds = []
        for _ in range(max(5, SCATTERED_KEYS // distinct)):
            began_s = time.process_time()
            for key in sample:
                await index.find(store, key)
            rounds.append((time.process_time() - began_s) / distinct * 1e6)
        warm_us[distinct] = min(rounds)
    return {
        "cold_fetches_max": max(fetches),
        "warm_hot_cpu_us": warm_us[HOT_KEYS],
        "warm_scattered_cpu_us": warm_us[SCATTERED_KEYS],
    }


async def steady_other_bytes(total: int, limits: IndexLimits) -> int:
    """Embedded size of the two other indexes of a catalog after some hundred creates."""
    size_bytes = 0
    chance = random.Random(17)
    for entries in (entries_by_id(total), entries_by_location(total)):
        store = NodeStore()
        created = set(chance.sample(range(len(entries)), 400))
        index = bulk_loaded(store, (entry for at, entry in enumerate(entries) if at not in created), limits)
        for at in created:
            key, value = entries[at]
            applied = await index.apply(store, {key: value}, new_id=store.new_id, limits=limits)
            index = applied.index
            store.write(applied.nodes)
        size_bytes += len(index.encode())
    return size_bytes


async def measure(total: int, *, limits: IndexLimits | None = None) -> list[dict[str, float | str]]:
    """All figures for one number of keys: both ways of building, both workloads."""
    limits = limits or IndexLimits()
    entries = entries_by_name(total)
    keys = [key for key, _ in entries]
    other_bytes = await steady_other_bytes(total, limits)
    results: list[dict[str, float | str]] = []
    for built in ("bulk", "random"):
        store = NodeStore()
        began_s = time.process_time()
        if built == "bulk":
            index = bulk_loaded(store, entries, limits)
        else:
            index = await randomly_inserted(store, entries, limits)
        build_s = time.process_time() - began_s
        shape = await check(store, index)
        lookups = await measure_lookups(store, index, keys)
        for load in ("hot", "uniform"):
            updates = await measure_updates(
                store, index, keys, other_bytes=other_bytes, is_hot=load == "hot", limits=limits
            )
            results.append(
                {
                    "keys": total,
                    "built": built,
                    "load": load,
                    **updates,
                    **lookups,
                    "height": shape.height,
                    "leaf_fill": shape.entries / max(1, shape.leaf_nodes) / limits.leaf_entries,
                    "others_kib": other_bytes / 1024,
                    "build_s": build_s,
                }
            )
    return results


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    total, built = options.get("keys", 100_000), options.get("built", "bulk")
    commits = options.get("count", 1000)
    limits = IndexLimits(buffer_bytes=options.get("buffer_bytes", IndexLimits().buffer_bytes))
    entries = entries_by_name(total)
    keys = [key for key, _ in entries]
    store = NodeStore()
    loaded = built != "random"
    index = bulk_loaded(store, entries, limits) if loaded else await randomly_inserted(store, entries, limits)
    other_bytes = await steady_other_bytes(total, limits)
    chance = random.Random(11)

    def updating(*, is_hot: bool) -> Round:
        next_key = update_keys(keys, chance, is_hot=is_hot)
        current = index

        async def update(meter: Meter) -> None:
            nonlocal current
            rows: list[int] = []
            sizes: list[int] = []
            changes = [(next_key(), _id_value(chance)) for _ in range(commits)]
            with meter.measuring():
                for key, value in changes:
                    applied = await current.apply(store, {key: value}, new_id=store.new_id, limits=limits)
                    current = applied.index
                    store.write(applied.nodes)
                    rows.append(3 + len(applied.nodes))
                    sizes.append(len(current.encode()) + sum(len(node.encode()) for _, node in applied.nodes))
            fixed_bytes = ENTITY_BYTES + COMMIT_HEADER_BYTES + other_bytes
            meter.count(operations=commits, rows=sum(rows), bytes=sum(sizes) + commits * fixed_bytes)
            meter.note("p99_bytes", _percentile(sizes, 99) + fixed_bytes)
            meter.note("p99_rows", _percentile(rows, 99))

        return update

    async def find_warm(meter: Meter) -> None:
        sample = chance.choices(keys, k=HOT_KEYS) * 4
        for key in sample:
            await index.find(store, key)
        with meter.measuring():
            for key in sample:
                await index.find(store, key)
        meter.count(operations=len(sample))

    async def find_cold(meter: Meter) -> None:
        cold = ColdStore(store)
        sample = chance.choices(keys, k=200)
        with meter.measuring():
            for key in sample:
                await index.find(cold, key)
        meter.count(operations=len(sample), requests=cold.fetches + 2 * len(sample))

    yield {
        "update, hot": updating(is_hot=True),
        "update, uniform": updating(is_hot=False),
        "find, warm": find_warm,
        "find, cold": find_cold,
    }


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def main() -> None:
    """Print the table."""
    totals = [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    header_shown = False
    for total in totals:
        for result in asyncio.run(measure(total)):
            if not header_shown:
                print(" | ".join(result))
                header_shown = True
            cells = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in result.values()]
            print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
