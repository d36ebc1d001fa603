"""PyIceberg evolves, names, lists, registers and drops things of ours; rows: test_pyiceberg.py."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, StructType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewRepresentation, ViewVersion

from cynosure.testing.catalog_server import RestCatalog
from tests.engines.pyiceberg_client import SCHEMA, connect, flatten, read, rows
from tests.names import unique

ODD_NAMES = [
    "with.dot",
    "with space",
    "naïve-Ω-表",
    "100%",
    "a+b&c=d?",
    "quote'\"`",
    "with/slash",
    "UPPER",
    "upper",
]


@pytest.fixture(scope="module")
def catalog(make_catalog: Callable[[], RestCatalog]) -> Iterator[Catalog]:
    with connect(make_catalog()) as client:
        yield client


@pytest.fixture(scope="module")
def namespace(catalog: Catalog) -> str:
    name = unique()
    catalog.create_namespace(name)
    return name


@pytest.fixture
def table(catalog: Catalog, namespace: str) -> Table:
    table = catalog.create_table((namespace, unique("t")), SCHEMA)
    table.append(rows("Oslo", "Rome"))
    return table


def reload(catalog: Catalog, table: Table) -> Table:
    return catalog.load_table(table.name())


# --- evolution -----------------------------------------------------------------------------------


def test_a_schema_grows_shrinks_and_changes_under_its_rows(catalog: Catalog, namespace: str):
    first = pa.schema([("id", pa.int32()), ("name", pa.string()), ("gone", pa.string())])
    table = catalog.create_table((namespace, unique("t")), first)
    table.append(pa.table({"id": [1], "name": ["a"], "gone": ["x"]}, schema=first))

    with table.update_schema() as schema:
        schema.add_column("size", IntegerType(), doc="in metres")
        schema.add_column("place", StructType(NestedField(0, "street", StringType(), required=False)))
        schema.add_column("tags", ListType(element_id=0, element=StringType(), element_required=False))
    with table.update_schema() as schema:
        schema.rename_column("name", "title")
        schema.update_column("id", field_type=LongType())
        schema.update_column("name", doc="as printed")
    with table.update_schema() as schema:
        schema.delete_column("gone")
        schema.move_first("title")
        schema.move_after("size", "id")
        schema.add_column(("place", "number"), IntegerType())

    loaded = reload(catalog, table)
    assert [field.name for field in loaded.schema().fields] == ["title", "id", "size", "place", "tags"]
    assert loaded.schema().find_type("id") == LongType()
    assert loaded.schema().find_field("title").doc == "as printed"
    assert len(loaded.schemas()) == 4
    row = loaded.scan().to_arrow().to_pylist()
    assert row == [{"title": "a", "id": 1, "size": None, "place": None, "tags": None}]
    new = pa.table(
        {
            "title": ["b"],
            "id": [2**40],
            "size": [7],
            "place": [{"street": "s", "number": 3}],
            "tags": [["t"]],
        },
        schema=loaded.schema().as_arrow(),
    )
    loaded.append(new)
    assert reload(catalog, table).scan(row_filter="id > 1").to_arrow().to_pylist() == new.to_pylist()


def test_a_column_dropped_and_added_again_is_another_column(catalog: Catalog, table: Table):
    table.update_schema().delete_column("city").commit()
    table.update_schema().add_column("city", StringType()).commit()

    assert read(reload(catalog, table)) == [(1, None), (2, None)]


def test_a_partition_spec_changes_and_old_files_stay_readable(catalog: Catalog, table: Table):
    with table.update_spec() as spec:
        spec.add_field("at", DayTransform(), "day")
        spec.add_field("id", BucketTransform(8), "id_bucket")
    table.append(rows("Lima", first=3))
    with table.update_spec() as spec:
        spec.remove_field("id_bucket")
        spec.rename_field("day", "on_day")
        spec.add_identity("city")
    table.append(rows("Bonn", first=4))

    loaded = reload(catalog, table)
    assert {field.name for field in loaded.spec().fields if str(field.transform) != "void"} == {
        "on_day",
        "city",
    }
    assert len(loaded.specs()) == 3
    assert sorted(set(loaded.inspect.files()["spec_id"].to_pylist())) == [0, 1, 2]
    assert read(loaded) == [(1, "Oslo"), (2, "Rome"), (3, "Lima"), (4, "Bonn")]


def test_a_sort_order_is_added_and_replaced(catalog: Catalog, table: Table):
    table.update_sort_order().asc("city", IdentityTransform()).desc("id", IdentityTransform()).commit()
    assert [str(field.direction) for field in reload(catalog, table).sort_order().fields] == ["ASC", "DESC"]

    table.update_sort_order().desc("at", IdentityTransform()).commit()
    loaded = reload(catalog, table)
    assert [str(field.direction) for field in loaded.sort_order().fields] == ["DESC"]
    assert len(loaded.sort_orders()) == 3


def test_the_format_version_goes_up_and_properties_come_and_go(catalog: Catalog, namespace: str):
    table = catalog.create_table(
        (namespace, unique("t")), SCHEMA, properties={"format-version": "1", "kept": "k"}
    )
    assert table.format_version == 1
    table.append(rows("Oslo"))

    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
        transaction.set_properties({"added": "ä", "commented": "line\nline"})
        transaction.remove_properties("kept")

    loaded = reload(catalog, table)
    assert loaded.format_version == 2
    assert {key: loaded.properties.get(key) for key in ("added", "commented", "kept")} == {
        "added": "ä",
        "commented": "line\nline",
        "kept": None,
    }
    assert read(loaded) == [(1, "Oslo")]


# --- snapshots -----------------------------------------------------------------------------------


def test_branches_and_tags_are_made_written_read_and_removed(catalog: Catalog, table: Table):
    first = table.current_snapshot()
    assert first
    with table.manage_snapshots() as manage:
        manage.create_tag(first.snapshot_id, "v1", max_ref_age_ms=86_400_000)
        manage.create_branch(first.snapshot_id, "audit", min_snapshots_to_keep=2, max_snapshot_age_ms=1_000)
    loaded = reload(catalog, table)
    assert set(loaded.refs()) == {"main", "v1", "audit"}
    assert loaded.refs()["v1"].max_ref_age_ms == 86_400_000
    assert loaded.refs()["audit"].min_snapshots_to_keep == 2
    assert loaded.refs()["audit"].max_snapshot_age_ms == 1_000

    table.append(rows("Lima", first=3), branch="audit")

    loaded = reload(catalog, table)
    assert read(loaded) == [(1, "Oslo"), (2, "Rome")]
    branch = loaded.snapshot_by_name("audit")
    assert branch
    assert read(loaded, snapshot_id=branch.snapshot_id) == [(1, "Oslo"), (2, "Rome"), (3, "Lima")]
    assert loaded.scan().use_ref("v1").to_arrow().num_rows == 2

    loaded.manage_snapshots().remove_tag("v1").remove_branch("audit").commit()
    assert set(reload(catalog, table).refs()) == {"main"}


def test_a_table_is_rolled_back_and_moved_to_a_branch(catalog: Catalog, table: Table):
    first = table.current_snapshot()
    assert first
    table.append(rows("Lima", first=3))
    second = table.current_snapshot()
    assert second

    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert read(reload(catalog, table)) == [(1, "Oslo"), (2, "Rome")]

    table.manage_snapshots().set_current_snapshot(second.snapshot_id).commit()
    loaded = reload(catalog, table)
    assert read(loaded) == [(1, "Oslo"), (2, "Rome"), (3, "Lima")]
    assert [entry.snapshot_id for entry in loaded.history()] == [
        first.snapshot_id,
        second.snapshot_id,
        first.snapshot_id,
        second.snapshot_id,
    ]


def test_expired_snapshots_are_gone_and_referenced_ones_stay(catalog: Catalog, table: Table):
    for number in (3, 4, 5):
        table.append(rows("Lima", first=number))
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    table.manage_snapshots().create_tag(ids[1], "keep").commit()

    table.maintenance.expire_snapshots().by_ids([ids[0], ids[2]]).commit()

    loaded = reload(catalog, table)
    assert [snapshot.snapshot_id for snapshot in loaded.snapshots()] == [ids[1], ids[3]]
    assert len(read(loaded)) == 5
    assert len(read(loaded, snapshot_id=ids[1])) == 3


# --- names and lists -----------------------------------------------------------------------------


def test_namespaces_nest_and_are_listed_in_pages(catalog: Catalog):
    top = unique()
    catalog.create_namespace(top, {"owner": "a"})
    for name in ("one", "two", "three", "four", "five"):
        catalog.create_namespace((top, name))
        catalog.create_namespace((top, name, "deep"))

    assert flatten(catalog.list_namespaces(top)) == ["five", "four", "one", "three", "two"]
    assert catalog.list_namespaces((top, "one")) == [(top, "one", "deep")]
    assert (top,) in catalog.list_namespaces()
    assert all(len(found) == 1 for found in catalog.list_namespaces())
    table = catalog.create_table((top, "one", "deep", "t"), SCHEMA)
    table.append(rows("Oslo"))
    assert read(catalog.load_table((top, "one", "deep", "t"))) == [(1, "Oslo")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace((top, "one"))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace((top, "one", "deep"))


def test_namespace_properties_are_set_updated_and_removed(catalog: Catalog):
    name = unique()
    catalog.create_namespace(name, {"owner": "a", "old": "o"})

    done = catalog.update_namespace_properties(
        name, removals={"old", "never"}, updates={"owner": "b", "new": "ñ"}
    )

    assert (sorted(done.updated), done.removed, done.missing) == (["new", "owner"], ["old"], ["never"])
    found = catalog.load_namespace_properties(name)
    assert {key: found.get(key) for key in ("owner", "new", "old")} == {"owner": "b", "new": "ñ", "old": None}
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(name)
    catalog.drop_namespace(name)
    assert not catalog.namespace_exists(name)
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties(name)


def test_tables_are_listed_in_pages(catalog: Catalog):
    name = unique()
    catalog.create_namespace(name)
    wanted = [f"t{number}" for number in range(7)]
    for table in wanted:
        catalog.create_table((name, table), SCHEMA)

    pages: list[int] = []
    session = catalog._session  # type: ignore[attr-defined]
    session.hooks["response"].append(lambda answer, **_: pages.append(len(answer.json()["identifiers"])))
    try:
        listed = catalog.list_tables(name)
    finally:
        session.hooks["response"].clear()

    assert listed == sorted((name, table) for table in wanted)
    assert pages == [2, 2, 2, 1]
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables(unique("missing"))


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_a_namespace_and_a_table_may_have_an_odd_name(catalog: Catalog, odd: str):
    space = (unique() + odd,)
    catalog.create_namespace(space)
    table = catalog.create_table((*space, odd), SCHEMA)
    table.append(rows("Oslo"))

    assert space in catalog.list_namespaces()
    assert catalog.list_tables(space) == [(*space, odd)]
    assert catalog.table_exists((*space, odd))
    assert catalog.load_table((*space, odd)).name() == (*space, odd)
    assert read(catalog.load_table((*space, odd))) == [(1, "Oslo")]
    renamed = catalog.rename_table((*space, odd), (*space, f"{odd} 2"))
    assert read(renamed) == [(1, "Oslo")]
    catalog.drop_table((*space, f"{odd} 2"))
    catalog.drop_namespace(space)
    assert not catalog.namespace_exists(space)


# --- a table's life ------------------------------------------------------------------------------


def test_a_table_is_renamed_across_namespaces(catalog: Catalog, table: Table):
    other = unique()
    catalog.create_namespace(other)

    moved = catalog.rename_table(table.name(), (other, "moved"))

    assert moved.metadata.table_uuid == table.metadata.table_uuid
    assert read(moved) == [(1, "Oslo"), (2, "Rome")]
    with pytest.raises(NoSuchTableError):
        catalog.load_table(table.name())
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table((other, "moved"), (unique("missing"), "t"))
    taken = catalog.create_table((other, "taken"), SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table((other, "moved"), taken.name())


def test_a_dropped_table_leaves_its_files_and_is_registered_again(
    catalog: Catalog, namespace: str, table: Table
):
    table = reload(catalog, table)
    catalog.drop_table(table.name())
    assert not catalog.table_exists(table.name())

    again = catalog.register_table((namespace, unique("again")), table.metadata_location)

    assert again.metadata.table_uuid == table.metadata.table_uuid
    assert read(again) == [(1, "Oslo"), (2, "Rome")]
    again.append(rows("Lima", first=3))
    assert read(reload(catalog, again)) == [(1, "Oslo"), (2, "Rome"), (3, "Lima")]


def test_registering_over_a_table_needs_to_be_asked_for(catalog: Catalog, table: Table):
    old = reload(catalog, table)
    table.append(rows("Lima", first=3))

    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(table.name(), old.metadata_location)
    catalog.register_table(table.name(), old.metadata_location, overwrite=True)

    assert read(reload(catalog, table)) == [(1, "Oslo"), (2, "Rome")]


def test_a_table_dropped_with_the_purge_flag_is_gone_with_its_files(catalog: Catalog, table: Table):
    files = [task.file.file_path for task in table.scan().plan_files()]
    files += [table.metadata_location, table.current_snapshot().manifest_list]
    assert all(table.io.new_input(each).exists() for each in files)

    catalog.purge_table(table.name())

    assert not catalog.table_exists(table.name())
    assert not any(table.io.new_input(each).exists() for each in files)
    with pytest.raises(NoSuchTableError):
        catalog.drop_table(table.name())


def test_a_taken_name_and_a_missing_namespace_are_refused(catalog: Catalog, table: Table):
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(table.name(), SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table((unique("missing"), "t"), SCHEMA)


# --- views ---------------------------------------------------------------------------------------


def test_views_are_created_loaded_listed_and_dropped(catalog: Catalog):
    name = unique()
    catalog.create_namespace(name)
    for view in ("v1", "v2", "v3"):
        version = ViewVersion(
            version_id=1,
            schema_id=0,
            timestamp_ms=1_700_000_000_000,
            summary={"engine-name": "test"},
            representations=[
                ViewRepresentation(SQLViewRepresentation(type="sql", sql=f"SELECT '{view}'", dialect="spark"))
            ],
            default_namespace=[name],
        )
        created = catalog.create_view((name, view), SCHEMA, version, properties={"comment": "ç"})
        assert created.properties["comment"] == "ç"

    loaded = catalog.load_view((name, "v2"))
    found = loaded.sql_for("spark")
    assert found
    assert found.sql == "SELECT 'v2'"
    assert loaded.schema().column_names == ["id", "city", "at"]
    assert flatten(catalog.list_views(name)) == ["v1", "v2", "v3"]
    assert catalog.list_tables(name) == []
    assert catalog.view_exists((name, "v1"))
    catalog.drop_view((name, "v1"))
    assert not catalog.view_exists((name, "v1"))
    with pytest.raises(NoSuchViewError):
        catalog.load_view((name, "v1"))
