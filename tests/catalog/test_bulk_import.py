from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.bulk_import import Imported, ListedTable, import_tables
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import InvalidName, LocationRefused
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import BadInput, Conflict
from cynosure.common.progress import Progress
from cynosure.persistence.history.check import check_reference
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.tables import change, decoded, make, properties

pytestmark = pytest.mark.anyio


@pytest.fixture
async def empty(directory: Directory, tmp_path: Path) -> OpenCatalog:
    return await make_catalog(directory, tmp_path / "files", "empty")


def listed(catalog: OpenCatalog, *path: str, place: str = "") -> ListedTable:
    *namespace, name = path
    directory = f"{catalog.base.text}/{place or '/'.join(path)}"
    return ListedTable(
        Identifier(tuple(namespace), name), f"{directory}/metadata/00000-x.metadata.json", directory
    )


async def test_tables_and_their_namespaces_are_there_after_one_commit(empty: OpenCatalog) -> None:
    tables = [listed(empty, "b", "c", "two"), listed(empty, "a", "one"), listed(empty, "b", "c", "one")]

    imported = await import_tables(empty, ROOT, tables)

    assert imported == Imported(tables=3, namespaces=3)
    assert b'["a"],["b"]' in await list_namespaces(empty, ROOT, (), Paging())
    assert b'["b","c"]' in await list_namespaces(empty, ROOT, ("b",), Paging())
    found = msgspec.json.decode(await list_tables(empty, ROOT, ("b", "c"), Paging()))
    assert [each["name"] for each in found["identifiers"]] == ["one", "two"]
    base = await empty.committer.read()
    record = base.state.commit.record
    assert (record.sequence, [each.operation for each in record.requests]) == (1, ["import-tables"])
    report = await check_reference(empty.store, base.ref)
    assert not report.problems


async def test_an_imported_table_is_read_from_its_file_and_can_be_changed(
    catalog: OpenCatalog, directory: Directory, tmp_path: Path
) -> None:
    made = await make(catalog)
    other = await make_catalog(directory, tmp_path / "files", "other")
    metadata = decoded(made)
    location = f"{other.base.text}/moved"
    metadata["location"] = location
    file = Location.parse(f"{location}/metadata/00003-x.metadata.json")
    await other.files.write(file, msgspec.json.encode(metadata))
    await import_tables(other, ROOT, [ListedTable(Identifier(("ns",), "t"), file.text)])

    changed = await change(other, properties(owner="me"))

    assert decoded(changed)["properties"]["owner"] == "me"
    assert decoded(changed)["table-uuid"] == metadata["table-uuid"]
    assert changed.metadata_location is not None
    assert changed.metadata_location.startswith(f"{location}/metadata/00004-")
    assert (await load_table(other, ROOT, Identifier(("ns",), "t"))).etag == changed.etag


async def test_imported_locations_are_taken(empty: OpenCatalog) -> None:
    await import_tables(empty, ROOT, [listed(empty, "ns", "t", place="x/y")])

    for place in ("x", "x/y", "x/y/z"):
        with pytest.raises(LocationRefused):
            await make(empty, Identifier(("ns",), "u"), location=f"{empty.base.text}/{place}")


async def test_a_catalog_that_is_not_empty_is_refused(catalog: OpenCatalog) -> None:
    with pytest.raises(Conflict):
        await import_tables(catalog, ROOT, [listed(catalog, "ns", "t")])


async def test_a_name_that_is_listed_twice_is_refused(empty: OpenCatalog) -> None:
    tables = [listed(empty, "ns", "t"), listed(empty, "ns", "u"), listed(empty, "ns", "t", place="else")]

    with pytest.raises(BadInput, match="twice"):
        await import_tables(empty, ROOT, tables)

    assert await list_namespaces(empty, ROOT, (), Paging()) == b'{"namespaces":[]}'


@pytest.mark.parametrize("place", ["x", "x/below", "x/below/deep"])
async def test_locations_that_overlap_are_refused(empty: OpenCatalog, place: str) -> None:
    tables = [
        listed(empty, "ns", "a", place="x"),
        listed(empty, "ns", "b", place="x-beside"),
        listed(empty, "ns", "c", place=place),
    ]

    with pytest.raises(LocationRefused, match="overlap"):
        await import_tables(empty, ROOT, tables)


@pytest.mark.parametrize(
    ("namespace", "name"), [(("ns",), ""), (("ns",), "a\x1fb"), ((), "t"), (("a", ""), "t"), (("..",), "t")]
)
async def test_names_nobody_could_create_are_refused(
    empty: OpenCatalog, namespace: tuple[str, ...], name: str
) -> None:
    location = f"{empty.base.text}/t"
    table = ListedTable(Identifier(namespace, name), f"{location}/metadata/1.json", location)

    with pytest.raises(InvalidName):
        await import_tables(empty, ROOT, [table])


async def test_files_outside_the_catalog_are_refused(empty: OpenCatalog) -> None:
    outside = ListedTable(Identifier(("ns",), "t"), "file:///elsewhere/t/metadata/1.json")

    with pytest.raises(LocationRefused):
        await import_tables(empty, ROOT, [outside])


async def test_a_location_that_cannot_be_guessed_must_be_named(empty: OpenCatalog) -> None:
    odd = ListedTable(Identifier(("ns",), "t"), f"{empty.base.text}/t/1.metadata.json")

    with pytest.raises(BadInput, match="does not follow"):
        await import_tables(empty, ROOT, [odd])


async def test_progress_is_told(empty: OpenCatalog) -> None:
    told: list[Progress] = []

    await import_tables(
        empty, ROOT, (listed(empty, "ns", f"t{number}") for number in range(10_000)), report=told.append
    )

    assert told[0] == Progress("tables read", 10_000)
    assert told[-1] == Progress("locations indexed", 10_000, 10_000)


async def test_a_namespace_of_the_import_takes_new_tables_and_keeps_its_id(empty: OpenCatalog) -> None:
    await import_tables(empty, ROOT, [listed(empty, "ns", "t")])

    await make(empty, Identifier(("ns",), "new"))
    await create_namespace(empty, ROOT, ("ns", "inner"), {})

    assert (await load_namespace(empty, ROOT, ("ns",))).properties == {}
    assert b'"new"' in await list_tables(empty, ROOT, ("ns",), Paging())
