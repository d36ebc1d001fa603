"""What Iceberg's Java client does when the answer to a commit says that it is still in progress, or is lost.

As a conflict (409) it is a trap: Java takes its files back, and the request that was in progress commits
what refers to them. As an unknown outcome (504) it is safe: Java keeps them. `docs/adr` gives the choice;
these tests are its proof, with the client that people use.
"""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import CatalogServer, RestCatalog, ServedCatalog
from cynosure.testing.harness.faults import LoseAnswer, ReplaceAnswer, Request, Respond
from cynosure.testing.harness.http_proxy import HttpProxy, find_header, run_http_proxy
from tests.engines.pyiceberg_client import connect
from tests.engines.soundness import assert_sound, find_missing
from tests.engines.spark.conftest import Sql, configure

NO_RETRY = "TBLPROPERTIES ('commit.retry.num-retries' = '0')"
QUICK_RETRY = "TBLPROPERTIES ('commit.retry.min-wait-ms' = '1', 'commit.retry.max-wait-ms' = '1')"
IN_PROGRESS = {"message": "The request is in progress", "type": "request_in_progress", "code": 409}
UNKNOWN = {"message": "The request is in progress", "type": "CommitStateUnknownException", "code": 504}


class Door:
    """A catalog of Spark's whose commits can be answered wrongly, and the truth behind it."""

    def __init__(self, name: str, namespace: str, proxy: HttpProxy, truth: Catalog) -> None:
        self.namespace = namespace
        self.table = f"{name}.{namespace}.t"
        self.catalog = name
        self._proxy = proxy
        self._truth = truth

    def watch(self) -> list[Request]:
        """The commits that come from now on."""
        return self._proxy.record(is_commit)

    def lie(self, error: dict[str, Any], *, applies: bool) -> list[Request]:
        """Answer commits so from now on, after the server did them or instead of it; those that came."""
        seen = self.watch()
        body = json.dumps({"error": error}).encode()
        headers = (("content-type", "application/json"), ("retry-after", "1"))
        make = ReplaceAnswer if applies else Respond
        self._proxy.add(make(error["code"], body, headers), when=is_commit, times=None)
        return seen

    def lose_next(self) -> None:
        """Lose the answer to the next commit."""
        self._proxy.add(LoseAnswer(), when=is_commit)

    def be_honest(self) -> None:
        self._proxy.clear()

    def deliver(self, request: Request) -> httpx.Response:
        """Let a request happen that was in progress until now."""
        self.be_honest()
        names = ("authorization", "content-type", "idempotency-key")
        headers = {name: value for name in names if (value := find_header(request, name))}
        body = request.data.partition(b"\r\n\r\n")[2]
        return httpx.request(
            request.method, f"{self._proxy.url}{request.path}", content=body, headers=headers, trust_env=False
        )

    def load(self, table: str = "t") -> Any:
        return self._truth.load_table((self.namespace, table))


def is_commit(request: Request) -> bool:
    parts = request.path.partition("?")[0].rstrip("/").split("/")
    return request.method == "POST" and (parts[-2] == "tables" or parts[-2:] == ["transactions", "commit"])


@pytest.fixture
def door(
    spark: SparkSession, make_served_catalog: Callable[[], ServedCatalog], catalog_server: CatalogServer
) -> Iterator[Door]:
    rest = make_served_catalog().to_rest()
    name, namespace = f"door_{uuid.uuid4().hex[:8]}", "ns"
    with run_http_proxy(catalog_server.url) as proxy, connect(rest) as truth:
        through = RestCatalog(rest.uri.replace(catalog_server.url, proxy.url), rest.properties)
        # With a key of its own Java sends a request again before it gives up; once is enough here.
        for key, value in configure(through, name, **{"rest.client.max-retries": "1"}).items():
            spark.conf.set(key, value)
        truth.create_namespace(namespace)
        yield Door(name, namespace, proxy, truth)


def fails(action: Callable[[], object]) -> str:
    """The class of the exception that Java ends with."""
    with pytest.raises(Py4JJavaError) as failed:
        action()
    return str(failed.value.java_exception.getClass().getSimpleName())


def test_told_of_a_conflict_java_deletes_the_files_of_what_was_committed(sql: Sql, door: Door):
    sql(f"CREATE TABLE {door.table} (id BIGINT) USING iceberg {NO_RETRY}")
    door.lie(IN_PROGRESS, applies=True)

    assert fails(lambda: sql(f"INSERT INTO {door.table} VALUES (1)")) == "CommitFailedException"

    door.be_honest()
    assert len(door.load().snapshots()) == 1
    assert len(find_missing(door.load())) == 1
    assert fails(lambda: sql(f"SELECT * FROM {door.table}")) == "NotFoundException"


STATEMENTS = {
    "INSERT INTO {} VALUES (3, 'c')": [(1, "a"), (2, "b"), (3, "c")],
    "DELETE FROM {} WHERE id = 1": [(2, "b")],
    "CREATE OR REPLACE TABLE {} USING iceberg AS SELECT 4 AS id, 'd' AS data": [(4, "d")],
}
all_statements = pytest.mark.parametrize("statement", STATEMENTS, ids=lambda text: text.split()[0])


def make_table(sql: Sql, door: Door) -> None:
    sql(f"CREATE TABLE {door.table} (id INT, data STRING) USING iceberg {QUICK_RETRY}")
    sql(f"INSERT INTO {door.table} VALUES (1, 'a'), (2, 'b')")


@all_statements
def test_told_of_a_conflict_java_deletes_the_files_of_what_is_committed_later(
    sql: Sql, door: Door, statement: str
):
    """Also with its usual retries: each of them is answered so while the first request goes on."""
    make_table(sql, door)
    sent = door.lie(IN_PROGRESS, applies=False)

    assert fails(lambda: sql(statement.format(door.table))) == "CommitFailedException"

    assert len(sent) == 5
    assert door.deliver(sent[0]).is_success
    assert len(door.load().snapshots()) == 2
    assert find_missing(door.load())
    assert fails(lambda: sql(f"SELECT * FROM {door.table}")) == "NotFoundException"


def test_told_of_an_unknown_outcome_java_looks_and_finds_its_commit(sql: Sql, door: Door):
    sql(f"CREATE TABLE {door.table} (id BIGINT) USING iceberg {NO_RETRY}")
    door.lie(UNKNOWN, applies=True)

    sql(f"INSERT INTO {door.table} VALUES (1)")

    door.be_honest()
    assert_sound(door.load())
    assert sql(f"SELECT * FROM {door.table}") == [(1,)]


@all_statements
def test_told_of_an_unknown_outcome_java_keeps_the_files_of_what_is_committed_later(
    sql: Sql, door: Door, statement: str
):
    make_table(sql, door)
    sent = door.lie(UNKNOWN, applies=False)

    assert fails(lambda: sql(statement.format(door.table))) == "CommitStateUnknownException"

    # Another attempt would be another commit; all that Java may repeat is the same request with its key.
    assert len({(find_header(request, "idempotency-key"), request.data) for request in sent}) == 1
    assert door.deliver(sent[0]).is_success
    assert len(door.load().snapshots()) == 2
    assert find_missing(door.load()) == []
    assert sql(f"SELECT * FROM {door.table} ORDER BY id") == STATEMENTS[statement]


@pytest.mark.parametrize(
    ("error", "raised"),
    [(IN_PROGRESS, "AlreadyExistsException"), (UNKNOWN, "CommitStateUnknownException")],
    ids=["conflict", "unknown"],
)
def test_the_files_of_a_table_that_is_created_later_stay(
    sql: Sql, door: Door, error: dict[str, Any], raised: str
):
    """The one commit where a conflict destroys nothing; but it tells the user of a table of somebody else."""
    sent = door.lie(error, applies=False)

    assert fails(lambda: sql(f"CREATE TABLE {door.table} USING iceberg AS SELECT 1 AS id")) == raised

    assert door.deliver(sent[0]).is_success
    assert_sound(door.load())


def java_append(spark: SparkSession, door: Door) -> tuple[Any, Any]:
    """Java's own catalog, and a commit of two tables that it has not sent yet."""
    jvm: Any = spark._jvm
    catalog = (
        spark._jsparkSession.sessionState().catalogManager().catalog(door.catalog).icebergCatalog()  # type: ignore[attr-defined]
    )
    iceberg = jvm.org.apache.iceberg
    commits = jvm.java.util.ArrayList()
    for name in ("a", "b"):
        identifier = iceberg.catalog.TableIdentifier.parse(f"{door.namespace}.{name}")
        table = catalog.loadTable(identifier)
        path = f"{table.location()}/data/{name}.parquet"
        file = (
            iceberg.DataFiles.builder(table.spec())
            .withPath(path)
            .withFormat("parquet")
            .withFileSizeInBytes(10)
            .withRecordCount(1)
            .build()
        )
        transaction = table.newTransaction()
        transaction.newAppend().appendFile(file).commit()
        commits.add(
            iceberg.catalog.TableCommit.create(
                identifier, transaction.startMetadata(), transaction.currentMetadata()
            )
        )
    return catalog, commits


@pytest.mark.parametrize(
    ("error", "raised", "may_clean"),
    [(IN_PROGRESS, "CommitFailedException", True), (UNKNOWN, "CommitStateUnknownException", False)],
    ids=["conflict", "unknown"],
)
def test_a_transaction_of_two_tables_tells_its_caller_whether_files_may_go(
    spark: SparkSession, sql: Sql, door: Door, error: dict[str, Any], raised: str, may_clean: bool
):
    """Java deletes nothing by itself here: whoever built the commits does, if the exception allows it."""
    for name in ("a", "b"):
        sql(f"CREATE TABLE {door.catalog}.{door.namespace}.{name} (id BIGINT) USING iceberg")
    catalog, commits = java_append(spark, door)
    door.lie(error, applies=True)

    with pytest.raises(Py4JJavaError) as failed:
        catalog.commitTransaction(commits)

    exception = failed.value.java_exception
    assert exception.getClass().getSimpleName() == raised
    interfaces = [each.getSimpleName() for each in exception.getClass().getInterfaces()]
    assert ("CleanableFailure" in interfaces) == may_clean
    door.be_honest()
    assert [len(door.load(name).snapshots()) for name in ("a", "b")] == [1, 1]


def test_a_commit_that_the_network_delivers_once_more_changes_nothing(sql: Sql, door: Door):
    """Java's own key: what was lost on the way may still arrive, also when others have committed since."""
    make_table(sql, door)
    sent = door.watch()
    sql(f"INSERT INTO {door.table} VALUES (3, 'c')")
    sql(f"DELETE FROM {door.table} WHERE id = 1")
    first, _ = sent

    again = door.deliver(first)

    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert len(again.json()["metadata"]["snapshots"]) == 2
    assert len(door.load().snapshots()) == 3
    assert sql(f"SELECT id FROM {door.table} ORDER BY id") == [(2,), (3,)]


def test_a_transaction_of_two_tables_whose_answer_is_lost_is_sent_again_and_happens_once(
    spark: SparkSession, sql: Sql, door: Door
):
    for name in ("a", "b"):
        sql(f"CREATE TABLE {door.catalog}.{door.namespace}.{name} (id BIGINT) USING iceberg")
    catalog, commits = java_append(spark, door)
    sent = door.watch()
    door.lose_next()

    catalog.commitTransaction(commits)

    first, second = (find_header(request, "idempotency-key") for request in sent)
    assert first is not None
    assert first == second
    assert [len(door.load(name).snapshots()) for name in ("a", "b")] == [1, 1]
