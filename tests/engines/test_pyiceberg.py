"""PyIceberg writes, reads and travels in time on tables of ours; see also test_pyiceberg_metadata.py."""

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import StringType

from cynosure.testing.catalog_server import RestCatalog
from tests.engines.pyiceberg_client import SCHEMA, connect, read, rows
from tests.names import unique

BY_CITY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))


@pytest.fixture(scope="module", params=["file", pytest.param("s3", marks=pytest.mark.s3)])
def rest_catalog(request: pytest.FixtureRequest) -> RestCatalog:
    """The same tests on both kinds of storage that a catalog can have."""
    make: Callable[[], RestCatalog] = request.getfixturevalue(
        "make_catalog" if request.param == "file" else "make_s3_catalog"
    )
    return make()


@pytest.fixture(scope="module")
def catalog(rest_catalog: RestCatalog) -> Iterator[Catalog]:
    with connect(rest_catalog) as client:
        yield client


@pytest.fixture(scope="module")
def namespace(catalog: Catalog) -> str:
    name = unique()
    catalog.create_namespace(name)
    return name


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    """Five rows in three cities, partitioned by city."""
    table = catalog.create_table((namespace, unique("t")), SCHEMA, partition_spec=BY_CITY)
    table.append(rows("Oslo", "Rome", "Oslo", "Lima", "Rome"))
    return table


def reload(catalog: Catalog, table: Table) -> Table:
    """The table as another client sees it."""
    return catalog.load_table(table.name())


def test_a_partitioned_and_sorted_table_is_created_as_asked(catalog: Catalog, namespace: str):
    spec = PartitionSpec(
        PartitionField(3, 1000, DayTransform(), "day"),
        PartitionField(1, 1001, BucketTransform(4), "id_bucket"),
    )
    order = SortOrder(SortField(2, IdentityTransform(), SortDirection.DESC))

    created = catalog.create_table(
        (namespace, unique("t")),
        SCHEMA,
        partition_spec=spec,
        sort_order=order,
        properties={"owner": "tester"},
    )

    loaded = reload(catalog, created)
    assert loaded.metadata == created.metadata
    assert [(field.name, str(field.transform)) for field in loaded.spec().fields] == [
        ("day", "day"),
        ("id_bucket", "bucket[4]"),
    ]
    assert [str(field.direction) for field in loaded.sort_order().fields] == ["DESC"]
    assert loaded.properties["owner"] == "tester"
    assert read(loaded) == []
    loaded.append(rows("Oslo", "Rome"))
    assert read(reload(catalog, created)) == [(1, "Oslo"), (2, "Rome")]


def test_appended_rows_are_read_back_by_another_client(catalog: Catalog, table: Table):
    table.append(rows("Bonn", first=6))

    assert read(reload(catalog, table))[-2:] == [(5, "Rome"), (6, "Bonn")]
    assert len(reload(catalog, table).snapshots()) == 2


def test_overwrite_replaces_all_rows(catalog: Catalog, table: Table):
    table.overwrite(rows("Bonn", "Kyiv"))

    assert read(reload(catalog, table)) == [(1, "Bonn"), (2, "Kyiv")]


def test_overwrite_with_a_filter_replaces_what_it_names(catalog: Catalog, table: Table):
    table.overwrite(rows("Rome", first=9), overwrite_filter=EqualTo("city", "Rome"))

    assert read(reload(catalog, table)) == [(1, "Oslo"), (3, "Oslo"), (4, "Lima"), (9, "Rome")]


def test_delete_removes_a_whole_partition_and_single_rows(catalog: Catalog, table: Table):
    table.delete(EqualTo("city", "Oslo"))
    assert read(reload(catalog, table)) == [(2, "Rome"), (4, "Lima"), (5, "Rome")]

    table.delete(GreaterThanOrEqual("id", 5))
    assert read(reload(catalog, table)) == [(2, "Rome"), (4, "Lima")]


def test_dynamic_overwrite_replaces_the_partitions_it_has_rows_for(catalog: Catalog, table: Table):
    table.dynamic_partition_overwrite(rows("Oslo", "Bonn", first=7))

    assert read(reload(catalog, table)) == [(2, "Rome"), (4, "Lima"), (5, "Rome"), (7, "Oslo"), (8, "Bonn")]


def test_upsert_updates_known_rows_and_inserts_new_ones(catalog: Catalog, table: Table):
    done = table.upsert(rows("Kyiv", "Bonn", first=5))

    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert read(reload(catalog, table))[-2:] == [(5, "Kyiv"), (6, "Bonn")]


def test_a_transaction_is_one_commit(catalog: Catalog, table: Table):
    with table.transaction() as transaction:
        transaction.set_properties(stage="done")
        with transaction.update_schema() as schema:
            schema.rename_column("city", "town")
        transaction.append(pa.table(rows("Bonn", first=6)).rename_columns(["id", "town", "at"]))

    loaded = reload(catalog, table)
    assert loaded.properties["stage"] == "done"
    assert loaded.scan(row_filter=EqualTo("town", "Bonn")).to_arrow()["id"].to_pylist() == [6]
    # One metadata file more than the append that made the table's rows.
    assert len(loaded.metadata.metadata_log) == len(table.metadata.metadata_log)
    assert len(loaded.metadata.metadata_log) == 2


def test_a_failed_transaction_changes_nothing(catalog: Catalog, table: Table):
    other = reload(catalog, table)
    other.update_schema().add_column("extra", StringType()).commit()

    transaction = table.transaction().set_properties(stage="done")
    transaction.update_schema().add_column("other", StringType()).commit()
    with pytest.raises(CommitFailedException):
        transaction.commit_transaction()

    loaded = reload(catalog, table)
    assert "stage" not in loaded.properties
    assert loaded.schema().column_names == ["id", "city", "at", "extra"]


def test_a_table_created_in_a_transaction_appears_with_its_rows(catalog: Catalog, namespace: str):
    identifier = (namespace, unique("t"))

    with catalog.create_table_transaction(identifier, SCHEMA, partition_spec=BY_CITY) as transaction:
        assert not catalog.table_exists(identifier)
        transaction.append(rows("Oslo", "Rome"))

    loaded = catalog.load_table(identifier)
    assert read(loaded) == [(1, "Oslo"), (2, "Rome")]
    assert len(loaded.snapshots()) == 1


def test_time_travel_reads_each_state(catalog: Catalog, table: Table):
    first = table.current_snapshot()
    table.delete(EqualTo("city", "Rome"))
    table.append(rows("Bonn", first=6))
    loaded = reload(catalog, table)
    second, third = (entry.snapshot_id for entry in loaded.history()[-2:])

    assert first
    assert len(read(loaded, snapshot_id=first.snapshot_id)) == 5
    assert read(loaded, snapshot_id=second) == [(1, "Oslo"), (3, "Oslo"), (4, "Lima")]
    assert read(loaded, snapshot_id=third) == read(loaded)
    found = loaded.snapshot_as_of_timestamp(first.timestamp_ms)
    assert found
    assert found.snapshot_id == first.snapshot_id


def test_a_client_that_loads_only_referenced_snapshots_can_write(
    rest_catalog: RestCatalog, catalog: Catalog, table: Table
):
    for number in range(6, 9):
        table.append(rows("Bonn", first=number))

    with connect(rest_catalog, **{"snapshot-loading-mode": "refs"}) as lean:
        loaded = lean.load_table(table.name())
        assert len(loaded.snapshots()) == 1
        loaded.append(rows("Kyiv", first=9))

    full = reload(catalog, table)
    assert len(full.snapshots()) == 5
    assert read(full)[-2:] == [(8, "Bonn"), (9, "Kyiv")]


def test_appends_racing_from_two_clients_all_arrive(
    rest_catalog: RestCatalog, catalog: Catalog, namespace: str
):
    properties = {
        "commit.retry.num-retries": "40",
        "commit.retry.min-wait-ms": "5",
        "commit.retry.max-wait-ms": "50",
    }
    table = catalog.create_table((namespace, unique("t")), SCHEMA, properties=properties)
    failures: list[BaseException] = []
    start = threading.Barrier(2)

    def append(first: int) -> None:
        try:
            with connect(rest_catalog) as client:
                mine = client.load_table(table.name())
                start.wait(timeout=30)
                for number in range(first, first + 5):
                    mine.append(rows("Oslo", first=number))
        except BaseException as failed:
            failures.append(failed)
            raise

    threads = [threading.Thread(target=append, args=(first,)) for first in (1, 101)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    loaded = reload(catalog, table)
    assert not failures
    assert [number for number, _ in read(loaded)] == [*range(1, 6), *range(101, 106)]
    assert len(loaded.snapshots()) == 10
    # A straight line: nobody's commit was built beside another's.
    parents = [snapshot.parent_snapshot_id for snapshot in loaded.snapshots()]
    assert parents == [None, *(snapshot.snapshot_id for snapshot in loaded.snapshots()[:-1])]


def test_metadata_tables_and_files_agree_with_what_was_written(catalog: Catalog, table: Table):
    loaded = reload(catalog, table)

    assert pc.sum(loaded.inspect.files()["record_count"]).as_py() == 5
    assert loaded.inspect.snapshots()["operation"].to_pylist() == ["append"]
    assert sorted(loaded.inspect.partitions()["record_count"].to_pylist()) == [1, 2, 2]


def test_files_written_elsewhere_are_added(catalog: Catalog, namespace: str, table: Table):
    import pyarrow.parquet as pq

    other = catalog.create_table((namespace, unique("t")), SCHEMA)
    path = f"{other.location()}/data/elsewhere.parquet"
    with other.io.new_output(path).create() as out:
        pq.write_table(rows("Oslo", "Rome"), out)

    other.add_files([path])

    assert read(reload(catalog, other)) == [(1, "Oslo"), (2, "Rome")]
