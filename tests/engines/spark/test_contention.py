"""Spark and PyIceberg write to one table at once: appends meet no conflict, whatever else goes on.

Spark appends as it does by default: it merges small manifests (`commit.manifest.min-count-to-merge` is low),
so its snapshots carry files of others, and it deletes what it thinks is not needed any more.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import CatalogServer, RestCatalog, ServedCatalog
from cynosure.testing.harness.faults import Delay, Request
from cynosure.testing.harness.http_proxy import HttpProxy, run_http_proxy
from cynosure.testing.s3_servers import find_s3_servers
from tests.engines.conftest import MakeLake
from tests.engines.contention import (
    NAME,
    REBASED,
    ROUNDS,
    WRITERS,
    Endpoint,
    Task,
    all_ids,
    assert_changed_soundly,
    assert_rows,
    assert_rows_are_numbered,
    assert_whole,
    create_table,
    fetch_metadata,
    ids_of,
    rows,
    run_at_once,
    write_files,
    write_with_pyiceberg,
)
from tests.engines.pyiceberg_client import connect
from tests.engines.spark.conftest import Sql, configure

SLOW_S: Final = 0.2
SPARK_WRITERS = range(WRITERS, WRITERS + 4)
MERGING = {**REBASED, "commit.manifest.min-count-to-merge": "2"}
OLD_ROWS = range(100)
"""Ids that are there before anybody begins; below those of all writers."""


class SlowWay:
    """Spark's way to the server, on which commits take a while: others are faster, and come first.

    Java looks for the newest snapshot right before it commits. On a fast way it would hardly ever lose.
    """

    def __init__(self, proxy: HttpProxy, server: CatalogServer) -> None:
        self._proxy = proxy
        self._server = server
        self._commits = proxy.record(is_commit)
        proxy.add(Delay(request_s=SLOW_S), when=is_commit, times=None)

    def open_in_spark(self, spark: SparkSession, lake: ServedCatalog, **properties: str) -> str:
        """The table's name in Spark."""
        name = f"contended_{uuid.uuid4().hex[:8]}"
        rest = lake.to_rest()
        through = RestCatalog(rest.uri.replace(self._server.url, self._proxy.url), rest.properties)
        for key, value in configure(through, name, **properties).items():
            spark.conf.set(key, value)
        return f"{name}.{'.'.join(NAME)}"

    def find_moved(self, metadata: dict[str, Any]) -> list[dict[str, Any]]:
        """The snapshots, as Spark sent them, that came behind another one than Spark said."""
        parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in metadata["snapshots"]}
        sent = [
            update["snapshot"]
            for request in self._commits
            for update in json.loads(request.data.partition(b"\r\n\r\n")[2])["updates"]
            if update["action"] == "add-snapshot"
        ]
        return [
            each
            for each in sent
            if each["snapshot-id"] in parents
            and parents[each["snapshot-id"]] != each.get("parent-snapshot-id")
        ]


def is_commit(request: Request) -> bool:
    parts = request.path.partition("?")[0].rstrip("/").split("/")
    return request.method == "POST" and parts[-2] == "tables"


@pytest.fixture
def way(catalog_server: CatalogServer) -> Iterator[SlowWay]:
    with run_http_proxy(catalog_server.url) as proxy:
        yield SlowWay(proxy, catalog_server)


def write_with_spark(sql: Sql, table: str, writer: int, rounds: range = range(ROUNDS)) -> Task:
    """One thread of the session."""

    def write(start: threading.Barrier) -> None:
        start.wait(timeout=60)
        for number in rounds:
            values = ", ".join(f"({each}, 'new')" for each in ids_of(writer, number))
            sql(f"INSERT INTO {table} VALUES {values}")

    return write


@pytest.fixture
def on_files(make_served_catalog: Callable[[], ServedCatalog]) -> ServedCatalog:
    return make_served_catalog()


def test_spark_and_pyiceberg_meet_no_conflict_with_vended_credentials(
    spark: SparkSession, sql: Sql, way: SlowWay, make_lake: MakeLake
):
    lake = make_lake(find_s3_servers()["minio"])
    create_table(lake.to_rest(), 2, MERGING)
    table = way.open_in_spark(
        spark,
        lake,
        **{
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        },
    )

    tasks = [write_with_pyiceberg(lake.to_rest(), each) for each in range(WRITERS)]
    tasks += [write_with_spark(sql, table, each) for each in SPARK_WRITERS]
    assert run_at_once(tasks) == [None] * len(tasks)

    with connect(lake.to_rest()) as catalog:
        loaded = catalog.load_table(NAME)
        assert_whole(loaded, all_ids([*range(WRITERS), *SPARK_WRITERS]))
        assert len(loaded.snapshots()) == len(tasks) * ROUNDS
    moved = way.find_moved(fetch_metadata(lake))
    # Their snapshots had merged manifests, with files of others in them.
    assert any(int(each["summary"]["manifests-replaced"]) for each in moved)


def test_rows_of_a_table_of_version_3_are_numbered_once(
    spark: SparkSession, sql: Sql, way: SlowWay, on_files: ServedCatalog
):
    create_table(on_files.to_rest(), 3, MERGING)
    table = way.open_in_spark(spark, on_files)

    tasks = [write_with_spark(sql, table, each) for each in SPARK_WRITERS]
    assert run_at_once(tasks) == [None] * len(tasks)

    ids = all_ids(SPARK_WRITERS)
    with connect(on_files.to_rest()) as catalog:
        assert_whole(catalog.load_table(NAME), ids)
    metadata = fetch_metadata(on_files)
    assert_rows_are_numbered(metadata)
    assert way.find_moved(metadata)
    numbered = sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM {table}")
    assert sorted(number for number, _, _ in numbered) == sorted(ids)
    # Some are left out: where Java merges manifests, it takes new numbers for all rows, and old ones stay.
    assert len({row_id for _, row_id, _ in numbered}) == len(ids)
    assert max(row_id for _, row_id, _ in numbered) < metadata["next-row-id"]
    assert {number for _, _, number in numbered} == {*range(1, len(tasks) * ROUNDS + 1)}


def make_writers(lake: ServedCatalog, kind: str, writers: list[int]) -> list[Task]:
    """Clients that append once each: by commits of PyIceberg's, or by the endpoint."""
    if kind == "pyiceberg":
        return [write_with_pyiceberg(lake.to_rest(), each, 1) for each in writers]
    endpoint = Endpoint(lake)
    with connect(lake.to_rest()) as catalog:
        return [endpoint.write(write_files(catalog, each, 1)) for each in writers]


class Changes:
    """Other statements, each repeated until nobody was faster; only those may meet conflicts."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.conflicts: list[str] = []

    def run(self, statement: str) -> None:
        for _ in range(100):
            try:
                self._sql(statement)
            except (Py4JJavaError, PySparkException) as failed:
                text = str(failed)
                # With a file that is gone, or anything else, it would end here.
                assert "CommitFailedException" in text or "ValidationException" in text, text[:2000]
                self.conflicts.append(statement)
            else:
                return
        raise AssertionError(f"never without a conflict: {statement}")


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def changed(request: pytest.FixtureRequest, on_files: ServedCatalog) -> ServedCatalog:
    """A table with old rows in several files and snapshots, whose changes are made this way."""
    modes = {f"write.{each}.mode": request.param for each in ("delete", "update", "merge")}
    levels = {f"write.{each}.isolation-level": "snapshot" for each in ("delete", "update", "merge")}
    create_table(on_files.to_rest(), 2, {**MERGING, **modes, **levels})
    with connect(on_files.to_rest()) as catalog:
        table = catalog.load_table(NAME)
        for first in range(OLD_ROWS.start, OLD_ROWS.stop, 25):
            table.append(rows(range(first, first + 25), "old"))
    return on_files


@pytest.mark.parametrize("cycle", range(ROUNDS // 3))
@pytest.mark.parametrize("others", ["pyiceberg", "endpoint"])
def test_appends_meet_no_conflict_while_rows_are_changed_and_files_rewritten(
    spark: SparkSession, sql: Sql, changed: ServedCatalog, way: SlowWay, others: str, cycle: int
):
    table = way.open_in_spark(spark, changed)
    catalog_name = table.partition(".")[0]
    with connect(changed.to_rest()) as catalog:
        *expired, _ = [str(each.snapshot_id) for each in catalog.load_table(NAME).snapshots()]
    name = ".".join(NAME)
    statements = [
        f"DELETE FROM {table} WHERE id < 40",
        f"""CALL {catalog_name}.system.rewrite_data_files(table => '{name}',
            options => map('rewrite-all', 'true'))""",
        f"""MERGE INTO {table} t USING (SELECT id FROM range(50, 60)) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET t.data = 'merged'""",
        f"""CALL {catalog_name}.system.expire_snapshots(table => '{name}',
            snapshot_ids => array({", ".join(expired)}))""",
    ]
    changes = Changes(sql)

    def change(statement: str) -> Task:
        def run(start: threading.Barrier) -> None:
            start.wait(timeout=60)
            changes.run(statement)

        return run

    for number, statement in enumerate(statements):
        # Appends race each statement; if the statement loses, it is repeated until they are over.
        tasks = make_writers(changed, others, [writer + 100 * number for writer in range(WRITERS)])
        tasks += [write_with_spark(sql, table, writer + 100 * number, range(1)) for writer in SPARK_WRITERS]
        tasks.append(change(statement))
        assert run_at_once(tasks) == [None] * len(tasks)

    assert statements[-1] not in changes.conflicts
    appended = [
        each
        for number in range(len(statements))
        for writer in [*range(WRITERS), *SPARK_WRITERS]
        for each in ids_of(writer + 100 * number, 0)
    ]
    expected = {each: "old" for each in OLD_ROWS if each >= 40} | dict.fromkeys(range(50, 60), "merged")
    with connect(changed.to_rest()) as catalog:
        loaded = catalog.load_table(NAME)
        assert_changed_soundly(loaded)
        assert_rows(loaded, {**expected, **dict.fromkeys(appended, "new")})
        assert not {int(each) for each in expired} & {each.snapshot_id for each in loaded.snapshots()}
    assert sorted(sql(f"SELECT id FROM {table}")) == sorted((each,) for each in [*expected, *appended])
