"""What the judge of tables sees: each kind of damage that a lost answer could leave behind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table

from cynosure.testing.catalog_server import RestCatalog
from tests.engines.pyiceberg_client import SCHEMA, connect, rows
from tests.engines.soundness import added_files, assert_sound, find_damage, find_missing


@pytest.fixture
def catalog(make_catalog: Callable[[], RestCatalog]) -> Iterator[Catalog]:
    with connect(make_catalog()) as client:
        client.create_namespace("ns")
        yield client


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Three snapshots."""
    table = catalog.create_table("ns.t", SCHEMA)
    table.append(rows("Oslo", "Rome"))
    table.append(rows("Lima", first=3))
    table.delete(EqualTo("id", 1))
    return table


def delete(location: str) -> None:
    Path(location.removeprefix("file:").replace("//", "/")).unlink()


def test_an_empty_table_and_one_with_a_history_are_sound(catalog: Catalog, table: Table):
    assert_sound(table)
    assert_sound(catalog.create_table("ns.empty", SCHEMA))


def test_a_file_that_only_an_old_snapshot_needs_is_missed(table: Table):
    [file] = added_files(table, table.snapshots()[0])
    delete(file.file_path)

    assert find_missing(table) == [file.file_path]
    with pytest.raises(AssertionError, match="missing"):
        assert_sound(table)


def test_a_manifest_and_a_manifest_list_are_missed(table: Table):
    first, second, _ = table.snapshots()
    [manifest] = first.manifests(table.io)
    delete(manifest.manifest_path)
    delete(second.manifest_list)

    assert find_missing(table) == sorted([manifest.manifest_path, second.manifest_list])


def test_a_file_that_was_added_twice_is_seen(table: Table):
    [file] = added_files(table, table.snapshots()[1])
    table.add_files([file.file_path], check_duplicate_files=False)

    assert find_damage(table) == [f"added 2 times: {file.file_path}"]


def test_a_history_that_was_bent_is_seen(table: Table):
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()

    assert find_damage(table) == [
        "the history does not name each snapshot once",
        "the last snapshot is not the current one",
    ]
