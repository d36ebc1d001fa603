"""Spark through a network that loses every fifth answer after the server acted.

Iceberg's Java client takes keys by itself once the server says that it knows them, and sends a request again
whose connection ended without an answer. Without them, and where it does not send again (answers cut in the
middle, answers that never come), a statement may fail although it has happened; but no table breaks.
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog import Catalog
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import RestCatalog, ServedCatalog
from cynosure.testing.harness.http_proxy import find_header
from tests.engines.lost_answers import ALL_LOSSES, ENDS, GIVES_UP_S, LossyServer, happens
from tests.engines.pyiceberg_client import connect, flatten
from tests.engines.soundness import assert_sound
from tests.engines.spark.conftest import Sql, configure

WRITERS = 2
QUICK_RETRY = """TBLPROPERTIES (
    'commit.retry.num-retries' = '40', 'commit.retry.min-wait-ms' = '5', 'commit.retry.max-wait-ms' = '50')"""
IMPATIENT = {"rest.client.socket-timeout-ms": str(int(GIVES_UP_S * 1000))}

Rows = dict[int, str]


class Writer:
    """Changes a table of its own, appends to one that all share, and makes and drops others."""

    def __init__(
        self, run: Callable[[str], object], truth: Catalog, place: str, number: int, rng: random.Random
    ) -> None:
        self.failed: list[str] = []
        """Statements that failed although they had happened."""
        self.doubtful: set[int] = set()
        self.shared: set[int] = set()
        """Ids that it wrote to the shared table, the doubtful ones apart."""
        self.kept: set[str] = set()
        """Tables that are there in the end."""
        self.doubtful_tables: set[str] = set()
        self._run = run
        self._truth = truth
        self._place = place
        self._namespace = place.split(".")[1]
        self._mine = f"mine_{number}"
        self._rows: Rows = {}
        self._snapshots = 0
        self._number = number
        self._rng = rng

    def write(self, steps: int) -> None:
        self._do(
            f"CREATE TABLE {self._place}.{self._mine} (id INT, data STRING) USING iceberg {QUICK_RETRY}",
            lambda: self._exists(self._mine),
        )
        self.kept.add(self._mine)
        actions = [self.insert, self.insert, self.delete, self.update, self.merge, self.share, self.manage]
        for step in range(steps):
            self._rng.choice(actions)(self._number * 10_000 + step)

    def insert(self, number: int) -> None:
        self._change(f"INSERT INTO {{}} VALUES ({number}, 'new')", {**self._rows, number: "new"})

    def delete(self, number: int) -> None:
        if self._rows:
            chosen = self._rng.choice(list(self._rows))
            left = {key: value for key, value in self._rows.items() if key != chosen}
            self._change(f"DELETE FROM {{}} WHERE id = {chosen}", left)

    def update(self, number: int) -> None:
        if self._rows:
            chosen = self._rng.choice(list(self._rows))
            self._change(
                f"UPDATE {{}} SET data = 'u{number}' WHERE id = {chosen}",
                {**self._rows, chosen: f"u{number}"},
            )

    def merge(self, number: int) -> None:
        chosen = self._rng.choice([*self._rows, number])
        self._change(
            f"""MERGE INTO {{}} t USING (SELECT {chosen} AS id, 'm{number}' AS data) s ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET t.data = s.data WHEN NOT MATCHED THEN INSERT *""",
            {**self._rows, chosen: f"m{number}"},
        )

    def share(self, number: int) -> None:
        """Others write there too, so whether it happened is judged in the end."""
        if self._is_told(f"INSERT INTO {self._place}.shared VALUES ({number}, 'shared')"):
            self.shared.add(number)
        else:
            self.doubtful.add(number)

    def manage(self, number: int) -> None:
        """One table from its birth to its end, unless it may stay."""
        born, renamed = f"born_{number}", f"renamed_{number}"
        # Two requests: when the answer to the first is lost, Spark does not send the second.
        is_told = self._is_told(f"CREATE TABLE {self._place}.{born} USING iceberg AS SELECT {number} AS id")
        if not is_told and not self._exists(born):
            self.doubtful_tables.add(born)
            return
        self._do(
            f"ALTER TABLE {self._place}.{born} RENAME TO {self._namespace}.{renamed}",
            lambda: self._exists(renamed) and not self._exists(born),
        )
        self.kept.add(renamed)
        if self._rng.random() < 0.5:
            self._do(f"DROP TABLE {self._place}.{renamed}", lambda: not self._exists(renamed))
            self.kept.remove(renamed)

    def _change(self, statement: str, rows: Rows) -> None:
        """Change the table of its own."""
        self._rows = rows
        self._snapshots += 1
        self._do(statement.format(f"{self._place}.{self._mine}"), self._is_as_expected)
        assert self._is_as_expected()

    def _is_as_expected(self) -> bool:
        table = self._truth.load_table((self._namespace, self._mine))
        found = table.scan().to_arrow()
        pairs = zip(found["id"].to_pylist(), found["data"].to_pylist(), strict=True)
        return sorted(pairs) == sorted(self._rows.items()) and len(table.snapshots()) == self._snapshots

    def _exists(self, name: str) -> bool:
        return self._truth.table_exists((self._namespace, name))

    def _do(self, statement: str, has_happened: Callable[[], bool]) -> None:
        """Nobody else changes this: only its answer can be lost, so it happens, told or not."""
        if not self._is_told(statement):
            assert happens(has_happened), self.failed[-1]

    def _is_told(self, statement: str) -> bool:
        try:
            self._run(statement)
        except (Py4JJavaError, PySparkException) as failed:
            self.failed.append(f"{statement}: {str(failed)[:300]}")
            return False
        return True


@pytest.fixture
def rest(make_served_catalog: Callable[[], ServedCatalog]) -> RestCatalog:
    return make_served_catalog().to_rest()


def run_writers(
    spark: SparkSession,
    sql: Sql,
    network: LossyServer,
    rest: RestCatalog,
    lose: Callable[[], None],
    steps: int,
    **properties: str,
) -> list[Writer]:
    """Let all of them write at once, and judge what is left: nothing is broken, nothing is there twice."""
    name = f"lossy_{uuid.uuid4().hex[:8]}"
    settings = configure(network.lead(rest), name, **properties)

    def open_session() -> Callable[[str], object]:
        session = spark.newSession()
        for key, value in settings.items():
            session.conf.set(key, value)
        return lambda statement: sql(statement, session)

    place = f"{name}.ns"
    run = open_session()
    run(f"CREATE NAMESPACE {place}")
    run(f"CREATE TABLE {place}.shared (id INT, data STRING) USING iceberg {QUICK_RETRY}")
    lose()

    def write(number: int, seed: int) -> Writer:
        with connect(rest) as truth:
            writer = Writer(open_session(), truth, place, number, random.Random(seed))
            writer.write(steps)
        return writer

    seeds = [network.rng.getrandbits(32) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        writers = list(pool.map(write, range(1, WRITERS + 1), seeds))

    with connect(rest) as truth:
        shared = truth.load_table(("ns", "shared"))
        found = Counter(shared.scan().to_arrow()["id"].to_pylist())
        certain = set[int]().union(*(writer.shared for writer in writers))
        doubtful = set[int]().union(*(writer.doubtful for writer in writers))
        assert certain <= set(found) <= certain | doubtful
        assert set(found.values()) <= {1}
        assert len(shared.snapshots()) == len(found)
        left = set(flatten(truth.list_tables("ns")))
        kept = {"shared"}.union(*(writer.kept for writer in writers))
        assert kept <= left <= kept.union(*(writer.doubtful_tables for writer in writers))
        for table in left:
            assert_sound(truth.load_table(("ns", table)))
    return writers


def test_with_keys_of_its_own_java_does_everything_once_and_knows_it(
    spark: SparkSession, sql: Sql, network: LossyServer, rest: RestCatalog
):
    seen = network.record()

    writers = run_writers(spark, sql, network, rest, lambda: network.lose(ENDS), 8)

    assert network.lost > 0
    sent = Counter(find_header(request, "idempotency-key") for request in seen)
    assert None not in sent
    assert sum(sent.values()) - len(sent) == network.lost
    assert [failed for writer in writers for failed in writer.failed] == []


def test_without_keys_statements_may_fail_but_no_table_breaks(
    spark: SparkSession, sql: Sql, network: LossyServer, rest: RestCatalog
):
    network.hide_keys(rest)
    seen = network.record()

    writers = run_writers(spark, sql, network, rest, lambda: network.lose(ALL_LOSSES), 8, **IMPATIENT)

    assert network.lost > 0
    assert {find_header(request, "idempotency-key") for request in seen} == {None}
    assert [failed for writer in writers for failed in writer.failed]


def test_with_keys_and_answers_that_java_does_not_ask_for_again_no_table_breaks(
    spark: SparkSession, sql: Sql, network: LossyServer, rest: RestCatalog
):
    def lose() -> None:
        network.lose(ALL_LOSSES)
        network.cut_tables(0.1)

    run_writers(spark, sql, network, rest, lose, 5, **IMPATIENT)

    assert network.lost > 0
