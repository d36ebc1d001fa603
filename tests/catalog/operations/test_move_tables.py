"""Drop, rename, register, unregister, export, first load."""

import asyncio
import gzip
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.committing import commit_part
from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused, NoSuchNamespace, NoSuchTable, TableExists
from cynosure.catalog.locations import location_key
from cynosure.catalog.managed.state import POINTER, TablePointer
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.export_table import export_table
from cynosure.catalog.operations.load_table import load_table, load_table_for_data, table_exists
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import AlreadyExists, BadInput
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject
from cynosure.storage.location import Location
from cynosure.testing.small_access import P, People, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, change, decoded, make, properties, updates

pytestmark = pytest.mark.anyio

OTHER = Identifier(("ns",), "other")


async def test_a_dropped_table_is_gone_and_its_files_stay(catalog: OpenCatalog):
    created = await make(catalog)
    await drop_table(catalog, ROOT, T)

    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)
    with pytest.raises(NoSuchTable):
        await drop_table(catalog, ROOT, T)
    assert Path(created.metadata_location.removeprefix("file://")).exists()


async def test_a_dropped_table_can_be_registered_again_and_continues(catalog: OpenCatalog):
    created = await make(catalog)
    changed = await change(catalog, properties(k="v"))
    await drop_table(catalog, ROOT, T)

    registered = (await register_table(catalog, ROOT, OTHER, changed.metadata_location)).answer

    assert registered.metadata == changed.metadata
    after = await change(catalog, properties(k="w"), table=OTHER)
    assert after.metadata_location.rpartition("/")[2].startswith("00002-")
    assert len(decoded(after)["metadata-log"]) == 2
    assert decoded(after)["table-uuid"] == decoded(created)["table-uuid"]


async def test_registering_a_taken_name_needs_overwrite_which_keeps_the_tables_id(catalog: OpenCatalog):
    first = await make(catalog)
    second = await make(catalog, OTHER)
    with pytest.raises(TableExists):
        await register_table(catalog, ROOT, T, second.metadata_location)
    with pytest.raises(LocationRefused):  # The file's location is still the other table's.
        await register_table(catalog, ROOT, T, second.metadata_location, is_overwrite=True)
    await drop_table(catalog, ROOT, OTHER)
    ids = [key for key, _ in await (await catalog.read()).scan("ids", limit=10)]

    taken = (await register_table(catalog, ROOT, T, second.metadata_location, is_overwrite=True)).answer

    assert decoded(taken)["table-uuid"] == decoded(second)["table-uuid"] != decoded(first)["table-uuid"]
    assert [key for key, _ in await (await catalog.read()).scan("ids", limit=10)] == ids
    with pytest.raises(LocationRefused):  # Its files are still there.
        await make(catalog, OTHER, location=decoded(first)["location"])


async def test_overwrite_of_nothing_registers(catalog: OpenCatalog):
    created = await make(catalog)
    await drop_table(catalog, ROOT, T)
    await register_table(catalog, ROOT, OTHER, created.metadata_location, is_overwrite=True)
    await table_exists(catalog, ROOT, OTHER)


async def test_what_cannot_be_registered_is_refused_naming_why(catalog: OpenCatalog):
    base = Path(catalog.base.text.removeprefix("file://"))
    base.mkdir(parents=True, exist_ok=True)
    (base / "bad.metadata.json").write_text('{"format-version": 2}')
    (base / "torn.gz.metadata.json").write_bytes(gzip.compress(b"{}" * 1000)[:20])
    with pytest.raises(BadInput, match="no metadata file"):
        await register_table(catalog, ROOT, T, f"{catalog.base}/absent.metadata.json")
    with pytest.raises(InvalidMetadata):
        await register_table(catalog, ROOT, T, f"{catalog.base}/bad.metadata.json")
    with pytest.raises(BadInput):
        await register_table(catalog, ROOT, T, f"{catalog.base}/torn.gz.metadata.json")
    with pytest.raises(LocationRefused):
        await register_table(catalog, ROOT, T, "file:///etc/passwd")
    with pytest.raises(NoSuchTable):
        await table_exists(catalog, ROOT, T)


async def test_a_file_that_names_a_location_elsewhere_is_refused(catalog: OpenCatalog):
    created = await make(catalog)
    moved = {**decoded(created), "location": "file:///etc"}
    base = Path(catalog.base.text.removeprefix("file://"))
    (base / "moved.metadata.json").write_bytes(msgspec.json.encode(moved))
    with pytest.raises(LocationRefused):
        await register_table(catalog, ROOT, OTHER, f"{catalog.base}/moved.metadata.json")


async def test_unregister_answers_with_the_last_version_and_later_commits_fail(catalog: OpenCatalog):
    await make(catalog)
    last = await change(catalog, properties(k="v"))

    answer = await unregister_table(catalog, ROOT, T)

    assert answer.commit_body() == last.commit_body()
    with pytest.raises(NoSuchTable):
        await change(catalog, properties(k="w"))


async def test_a_rename_keeps_everything_but_the_name(catalog: OpenCatalog):
    await create_namespace(catalog, ROOT, ("elsewhere",), {})
    created = await make(catalog)
    target = Identifier(("elsewhere",), "t2")

    await rename_table(catalog, ROOT, T, target)

    assert (await load_table(catalog, ROOT, target)).load_body() == created.load_body()
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


async def test_a_rename_that_cannot_be_is_refused(catalog: OpenCatalog):
    await make(catalog)
    await make(catalog, OTHER)
    with pytest.raises(AlreadyExists, match=r"^Cannot rename ns\.t to ns\.other\. Table already exists"):
        await rename_table(catalog, ROOT, T, OTHER)
    with pytest.raises(AlreadyExists):
        await rename_table(catalog, ROOT, T, T)
    with pytest.raises(NoSuchNamespace):
        await rename_table(catalog, ROOT, T, Identifier(("nowhere",), "t"))
    with pytest.raises(NoSuchTable):
        await rename_table(catalog, ROOT, Identifier(("ns",), "absent"), OTHER)


async def test_a_vanished_file_is_exported_again_as_it_was(catalog: OpenCatalog):
    created = await make(catalog)
    path = Path(created.metadata_location.removeprefix("file://"))
    path.unlink()

    assert await export_table(catalog, ROOT, T) == created.metadata_location
    assert path.read_bytes() == created.metadata


async def put_pointer(catalog: OpenCatalog, table: Identifier, metadata_location: str, location: str) -> None:
    ids = catalog.shared.persistence.ids

    async def prepare(view: View) -> Prepared[None]:
        pointer = TablePointer(
            id=ids.next(), created_us=1, metadata_location=metadata_location, location=location
        )
        new = NewObject(POINTER, ids.next(), pointer)
        changes = {
            "names": {table_key(table): ObjRef(new.id, POINTER.name).pack()},
            "ids": {encode_id_key(pointer.id): table_key(table)},
            "locations": {location_key(Location.parse(location)): encode_id_key(pointer.id)},
        }
        return Prepared(None, changes, [new])

    await commit_part(catalog.committer, ROOT, "test", prepare)


async def test_a_table_known_by_its_file_only_is_imported_once_by_the_first_load(catalog: OpenCatalog):
    created = await make(catalog)
    await drop_table(catalog, ROOT, T)
    await put_pointer(catalog, OTHER, created.metadata_location, decoded(created)["location"])

    answers = await asyncio.gather(*(load_table(catalog, ROOT, OTHER) for _ in range(8)))

    assert {each.metadata for each in answers} == {created.metadata}
    assert len({each.etag for each in answers}) == 1
    Path(created.metadata_location.removeprefix("file://")).unlink()
    catalog.shared.tables.clear()
    assert (await load_table(catalog, ROOT, OTHER)).metadata == created.metadata


async def test_a_commit_to_a_table_known_by_its_file_only_imports_it_first(catalog: OpenCatalog):
    created = await make(catalog)
    await unregister_table(catalog, ROOT, T)
    await put_pointer(catalog, OTHER, created.metadata_location, f"{catalog.base}/told/wrong")

    changed = decoded(await change(catalog, properties(k="v"), table=OTHER))

    assert changed["properties"]["k"] == "v"
    assert [each["metadata-file"] for each in changed["metadata-log"]] == [created.metadata_location]
    with pytest.raises(LocationRefused):
        await make(catalog, T, location=changed["location"])
    await make(catalog, T, location=f"{catalog.base}/told/wrong")


async def test_a_pointer_to_nothing_is_refused_and_can_be_dropped(catalog: OpenCatalog):
    await put_pointer(catalog, OTHER, f"{catalog.base}/absent.metadata.json", f"{catalog.base}/absent")
    with pytest.raises(BadInput, match="no metadata file"):
        await load_table(catalog, ROOT, OTHER)
    await table_exists(catalog, ROOT, OTHER)
    await drop_table(catalog, ROOT, OTHER)


async def test_only_who_may_have_a_table_makes_it_be_imported(
    directory: Directory, catalog: OpenCatalog
) -> None:
    created = await make(catalog)
    await drop_table(catalog, ROOT, T)
    await put_pointer(catalog, OTHER, created.metadata_location, decoded(created)["location"])
    people = People(directory)
    ann = await people.add("ann", catalog)
    before = (await catalog.read()).commit_id
    change = TableChange(OTHER, [], updates(properties(k="v")))

    for attempt in (
        load_table(catalog, ann, OTHER),
        load_table_for_data(catalog, ann, OTHER),
        export_table(catalog, ann, OTHER),
        unregister_table(catalog, ann, OTHER),
        commit_table(catalog, ann, change),
        commit_transaction(catalog, ann, [change]),
    ):
        with pytest.raises(AccessDenied):
            await attempt
    assert (await catalog.read()).commit_id == before

    await people.grant("ann", catalog, *on_table(OTHER, P.TABLE_READ_PROPERTIES))
    assert (await load_table(catalog, ann, OTHER)).metadata == created.metadata
