"""PyIceberg through a network that loses every fifth answer after the server acted.

With a key held across retries each change happens exactly once and the client knows it. Without one the
client may not know; but no table is ever broken, no change happens twice, and no file of a table is gone.
"""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.expressions import EqualTo
from requests.adapters import HTTPAdapter

from cynosure.testing.catalog_server import RestCatalog, ServedCatalog
from tests.engines.lost_answers import (
    ALL_LOSSES,
    NO_ANSWER,
    HoldsKeys,
    Impatient,
    LossyServer,
    connect_with,
    happens,
)
from tests.engines.pyiceberg_client import SCHEMA, connect, flatten, read, rows
from tests.engines.soundness import assert_sound
from tests.names import unique

WRITERS = 3
RETRIES = {
    "commit.retry.num-retries": "40",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "50",
}
UNKNOWN = (*NO_ANSWER, CommitStateUnknownException)
"""How PyIceberg says that it does not know: for an answer that does not come it has no word of its own."""


@dataclass
class Told:
    """What one writer was told, and what it had to look up."""

    rows: list[int] = field(default_factory=list)
    """Ids of rows that were appended to the shared table for sure."""
    doubtful_rows: list[int] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    """Of the shared table."""
    tables: dict[str, list[int]] = field(default_factory=dict)
    """Its own ones, with the ids of their rows."""
    namespaces: set[str] = field(default_factory=set)
    doubts: int = 0
    """Outcomes that it was not told."""


class Writer:
    """Changes a table that all share, and tables and namespaces of its own."""

    def __init__(self, catalog: Catalog, namespace: str, number: int, rng: random.Random) -> None:
        self.told = Told()
        self._catalog = catalog
        self._namespace = namespace
        self._number = number
        self._rng = rng

    def run(self, steps: int) -> Told:
        for step in range(steps):
            action = self._rng.choice([self.append, self.append, self.set_property, self.manage, self.nest])
            action(self._number * 10_000 + step)
        return self.told

    def append(self, number: int) -> None:
        table = self._catalog.load_table((self._namespace, "shared"))
        is_told = self._is_told(lambda: table.append(rows("Oslo", first=number)))
        (self.told.rows if is_told else self.told.doubtful_rows).append(number)

    def set_property(self, number: int) -> None:
        table = self._catalog.load_table((self._namespace, "shared"))
        name, value = f"p{number}", str(number)
        self._change(
            lambda: table.transaction().set_properties({name: value}).commit_transaction(),
            lambda: table.refresh().properties.get(name) == value,
        )
        self.told.properties[name] = value

    def manage(self, number: int) -> None:
        """One table from its birth to its end, unless it may stay."""
        catalog, tables = self._catalog, self.told.tables
        born, renamed = (self._namespace, f"born_{number}"), (self._namespace, f"renamed_{number}")
        self._change(lambda: catalog.create_table(born, SCHEMA), lambda: catalog.table_exists(born))
        table = catalog.load_table(born)
        self._change(
            lambda: table.append(rows("Oslo", "Rome", "Lima", first=number)),
            lambda: len(table.refresh().snapshots()) == 1,
        )
        self._change(
            lambda: table.delete(EqualTo("id", number + 1)), lambda: len(table.refresh().snapshots()) == 2
        )
        self._change(
            lambda: catalog.rename_table(born, renamed),
            lambda: catalog.table_exists(renamed) and not catalog.table_exists(born),
        )
        tables[renamed[-1]] = [number, number + 2]
        if self._rng.random() < 0.5:
            self._change(lambda: catalog.drop_table(renamed), lambda: not catalog.table_exists(renamed))
            del tables[renamed[-1]]

    def nest(self, number: int) -> None:
        """One namespace from its birth to its end, unless it may stay."""
        catalog, name = self._catalog, (self._namespace, f"inner_{number}")
        self._change(lambda: catalog.create_namespace(name), lambda: catalog.namespace_exists(name))
        self._change(
            lambda: catalog.update_namespace_properties(name, updates={"a": "b"}),
            lambda: catalog.load_namespace_properties(name).get("a") == "b",
        )
        self.told.namespaces.add(name[-1])
        if self._rng.random() < 0.5:
            self._change(lambda: catalog.drop_namespace(name), lambda: not catalog.namespace_exists(name))
            self.told.namespaces.remove(name[-1])

    def _change(self, change: Callable[[], object], has_happened: Callable[[], bool]) -> None:
        """Nobody else changes this: only its answer can be lost, so it happens, told or not."""
        if not self._is_told(change):
            assert happens(has_happened)

    def _is_told(self, change: Callable[[], object]) -> bool:
        try:
            change()
        except UNKNOWN:
            self.told.doubts += 1
            return False
        return True


def run_writers(
    network: LossyServer, rest: RestCatalog, make_adapter: Callable[[], HTTPAdapter]
) -> tuple[str, list[Told]]:
    """Let all of them write at once; the namespace that they wrote to, and what they were told."""
    namespace = unique()
    with connect(rest) as catalog:
        catalog.create_namespace(namespace)
        catalog.create_table((namespace, "shared"), SCHEMA, properties=RETRIES)
    network.lose(ALL_LOSSES)
    network.cut_tables(0.05)

    def write(number: int, seed: int) -> Told:
        with connect_with(network.lead(rest), make_adapter()) as catalog:
            return Writer(catalog, namespace, number, random.Random(seed)).run(15)

    seeds = [network.rng.getrandbits(32) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        return namespace, list(pool.map(write, range(1, WRITERS + 1), seeds))


def assert_all_is_well(rest: RestCatalog, namespace: str, told: list[Told]) -> None:
    """What writers were told is true, what they were not told happened at most once, nothing is broken."""
    with connect(rest) as catalog:
        shared = catalog.load_table((namespace, "shared"))
        found = Counter(number for number, _ in read(shared))
        certain = [number for each in told for number in each.rows]
        doubtful = [number for each in told for number in each.doubtful_rows]
        assert set(certain) <= set(found) <= {*certain, *doubtful}
        assert {number for number, times in found.items() if times > 1} == set()
        # One snapshot per append: none is empty, none holds what another brought already.
        assert len(shared.snapshots()) == len(found)
        for each in told:
            assert each.properties.items() <= shared.properties.items()
            for name, ids in each.tables.items():
                assert [number for number, _ in read(catalog.load_table((namespace, name)))] == ids
        left = {"shared"}.union(*(each.tables for each in told))
        assert set(flatten(catalog.list_tables(namespace))) == left
        inner = set[str]().union(*(each.namespaces for each in told))
        assert set(flatten(catalog.list_namespaces(namespace))) == inner
        for name in left:
            assert_sound(catalog.load_table((namespace, name)))


def test_with_keys_every_change_happens_once_and_is_known(
    make_served_catalog: Callable[[], ServedCatalog], network: LossyServer
):
    rest = make_served_catalog().to_rest()
    adapters: list[HoldsKeys] = []

    def hold_keys() -> HoldsKeys:
        adapters.append(HoldsKeys())
        return adapters[-1]

    namespace, told = run_writers(network, rest, hold_keys)

    assert network.lost > 0
    assert sum(adapter.resent for adapter in adapters) > 0
    assert [each for adapter in adapters for each in adapter.done_again] == []
    assert sum(each.doubts for each in told) == 0
    assert_all_is_well(rest, namespace, told)


def test_without_keys_some_outcomes_are_unknown_but_nothing_breaks(
    make_served_catalog: Callable[[], ServedCatalog], network: LossyServer
):
    rest = make_served_catalog().to_rest()

    namespace, told = run_writers(network, rest, Impatient)

    assert network.lost > 0
    assert sum(each.doubts for each in told) > 0
    assert_all_is_well(rest, namespace, told)
