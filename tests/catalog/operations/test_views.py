import asyncio
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.errors import LocationRefused, NoSuchView, TableExists, ViewExists
from cynosure.catalog.managed.view_state import ViewState
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.load_view import load_view, view_exists
from cynosure.catalog.operations.register_view import register_view
from cynosure.catalog.operations.rename_view import rename_view
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.iceberg.errors import InvalidMetadata, RequirementFailed
from cynosure.iceberg.views import ViewRequirement, ViewUpdate
from cynosure.persistence.commit import Change
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.testing.small_catalog import ROOT, SCHEMA

pytestmark = pytest.mark.anyio

V = Identifier(("ns",), "v")
VERSION = Raw(
    b'{"version-id":1,"timestamp-ms":1750000000000,"schema-id":0,"summary":{},"extra":"kept",'
    b'"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}],"default-namespace":["ns"]}'
)


def wanted(name: Identifier = V, **changes: object) -> CreateView:
    return msgspec.structs.replace(CreateView(name, SCHEMA, VERSION), **changes)


def update(**values: str) -> list[ViewUpdate]:
    body = msgspec.json.encode([{"action": "set-properties", "updates": values}])
    return msgspec.json.decode(body, type=list[ViewUpdate])


def metadata_of(state: ViewState) -> dict:
    return msgspec.json.decode(state.json)


def files_of(catalog: OpenCatalog, tmp_path: Path) -> set[str]:
    return {path.as_uri() for path in tmp_path.rglob("*.metadata.json")}


async def settle(catalog: OpenCatalog) -> None:
    await catalog.shared.background.close()


async def newest_changes(catalog: OpenCatalog) -> list[Change]:
    record = (await catalog.read()).commit.record
    return [change for request in record.requests for change in request.changes]


async def test_a_view_is_exported_as_it_is_stored(catalog: OpenCatalog, tmp_path: Path) -> None:
    state = await create_view(catalog, ROOT, wanted())

    file = Path(state.metadata_location.removeprefix("file://"))
    assert file.read_bytes() == state.json
    assert metadata_of(state)["versions"][0]["extra"] == "kept"
    assert await load_view(catalog, ROOT, V) == state
    assert files_of(catalog, tmp_path) == {state.metadata_location}


async def test_the_feed_tells_what_became_of_a_view(catalog: OpenCatalog) -> None:
    created = await create_view(catalog, ROOT, wanted())
    told = await newest_changes(catalog)
    await replace_view(catalog, ROOT, ViewChange(V, [], update(k="v")))
    told += await newest_changes(catalog)
    await rename_view(catalog, ROOT, V, Identifier(("ns",), "w"))
    told += await newest_changes(catalog)
    await drop_view(catalog, ROOT, Identifier(("ns",), "w"))
    told += await newest_changes(catalog)

    assert [change.kind for change in told] == [
        "view-created",
        "view-updated",
        "view-renamed",
        "view-dropped",
    ]
    details = [msgspec.msgpack.decode(change.detail) for change in told]
    assert {detail["id"] for detail in details} == {created.id}
    assert [detail["path"] for detail in details] == [["ns", "v"], ["ns", "v"], ["ns", "w"], ["ns", "w"]]


async def test_a_view_keeps_its_id_through_versions_and_names(catalog: OpenCatalog) -> None:
    created = await create_view(catalog, ROOT, wanted())
    moved = Identifier(("ns",), "w")

    await replace_view(catalog, ROOT, ViewChange(V, [], update(k="v")))
    await rename_view(catalog, ROOT, V, moved)

    state = await load_view(catalog, ROOT, moved)
    assert (state.id, state.created_us, state.file_number) == (created.id, created.created_us, 1)
    assert metadata_of(state)["view-uuid"] == metadata_of(created)["view-uuid"]
    assert await (await catalog.read()).find("ids", encode_id_key(created.id)) == view_key(moved)
    with pytest.raises(NoSuchView):
        await view_exists(catalog, ROOT, V)


async def test_concurrent_replacements_are_all_kept_and_leave_one_file_each(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    await create_view(catalog, ROOT, wanted())

    states = await asyncio.gather(
        *(replace_view(catalog, ROOT, ViewChange(V, [], update(**{f"k{n}": "v"}))) for n in range(6))
    )
    await settle(catalog)

    final = await load_view(catalog, ROOT, V)
    assert metadata_of(final)["properties"] == {f"k{n}": "v" for n in range(6)}
    assert final.file_number == 6
    assert {state.metadata_location for state in states} <= files_of(catalog, tmp_path)
    assert len(files_of(catalog, tmp_path)) == 7


async def test_a_refused_replacement_leaves_nothing_behind(catalog: OpenCatalog, tmp_path: Path) -> None:
    created = await create_view(catalog, ROOT, wanted())
    other = ViewRequirement(uuid="00000000-0000-0000-0000-000000000000")

    with pytest.raises(RequirementFailed):
        await replace_view(catalog, ROOT, ViewChange(V, [other], update(k="v")))
    await settle(catalog)

    assert await load_view(catalog, ROOT, V) == created
    assert files_of(catalog, tmp_path) == {created.metadata_location}


async def test_of_a_table_and_a_view_racing_for_a_name_one_wins(catalog: OpenCatalog, tmp_path: Path) -> None:
    for number in range(10):
        name = Identifier(("ns",), f"race{number}")
        outcomes = await asyncio.gather(
            create_view(catalog, ROOT, wanted(name)),
            create_table(catalog, ROOT, CreateTable(name.namespace, name.name, SCHEMA)),
            return_exceptions=True,
        )

        refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(refused) == 1
        assert isinstance(refused[0], (TableExists, ViewExists))
    await settle(catalog)
    assert len(files_of(catalog, tmp_path)) == 10


async def test_a_dropped_view_can_be_found_for_undrop_and_frees_name_and_location(
    catalog: OpenCatalog,
) -> None:
    created = await create_view(catalog, ROOT, wanted())
    live = await (await catalog.read()).find("names", view_key(V))

    await drop_view(catalog, ROOT, V)

    state = await catalog.read()
    ((_, value),) = await state.scan("dropped", limit=10)
    (dropped,) = await state.load_many(DROPPED, [ObjRef.unpack(value).id])
    assert (dropped.kind, dropped.entity_id, dropped.path) == ("view", created.id, ("ns", "v"))
    assert (dropped.state.pack(), dropped.location) == (live, created.location)
    assert await state.find("ids", encode_id_key(created.id)) is None
    again = await create_view(catalog, ROOT, wanted(location=created.location))
    assert again.id != created.id


async def test_a_view_does_not_lie_in_a_table(catalog: OpenCatalog) -> None:
    table = (await create_table(catalog, ROOT, CreateTable(("ns",), "t", SCHEMA))).answer
    location = msgspec.json.decode(table.metadata)["location"]

    with pytest.raises(LocationRefused):
        await create_view(catalog, ROOT, wanted(location=f"{location}/data"))


async def test_metadata_goes_where_a_property_sends_it_and_packed_if_asked(
    catalog: OpenCatalog, tmp_path: Path
) -> None:
    elsewhere = f"{catalog.entity.base_location}/elsewhere"
    properties = {"write.metadata.path": elsewhere, "write.metadata.compression-codec": "gzip"}

    state = await create_view(catalog, ROOT, wanted(properties=properties))
    await drop_view(catalog, ROOT, V)
    registered = await register_view(catalog, ROOT, V, state.metadata_location)

    assert state.metadata_location.startswith(f"{elsewhere}/00000-")
    assert state.metadata_location.endswith(".gz.metadata.json")
    assert registered.json == state.json


async def test_metadata_is_not_sent_outside_the_catalog(catalog: OpenCatalog, tmp_path: Path) -> None:
    properties = {"write.metadata.path": "file:///elsewhere"}

    with pytest.raises(LocationRefused):
        await create_view(catalog, ROOT, wanted(properties=properties))
    await create_view(catalog, ROOT, wanted())
    with pytest.raises(LocationRefused):
        await replace_view(catalog, ROOT, ViewChange(V, [], update(**properties)))

    assert len(files_of(catalog, tmp_path)) == 1


async def test_a_registered_view_goes_on_with_its_file_numbers(catalog: OpenCatalog) -> None:
    await create_view(catalog, ROOT, wanted())
    replaced = await replace_view(catalog, ROOT, ViewChange(V, [], update(k="v")))
    await drop_view(catalog, ROOT, V)

    registered = await register_view(catalog, ROOT, V, replaced.metadata_location)
    next_one = await replace_view(catalog, ROOT, ViewChange(V, [], update(k="w")))

    assert (registered.file_number, next_one.file_number) == (1, 2)
    assert registered.json == replaced.json


async def test_a_file_of_a_table_is_not_registered_as_a_view(catalog: OpenCatalog) -> None:
    table = (await create_table(catalog, ROOT, CreateTable(("ns",), "t", SCHEMA))).answer
    assert table.metadata_location is not None

    with pytest.raises(LocationRefused):  # Not even read while it is the table's.
        await register_view(catalog, ROOT, V, table.metadata_location)
    await drop_table(catalog, ROOT, Identifier(("ns",), "t"))
    with pytest.raises(InvalidMetadata):
        await register_view(catalog, ROOT, V, table.metadata_location)
