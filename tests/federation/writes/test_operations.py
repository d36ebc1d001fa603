"""Each change goes to the remote, and the mirror has what the remote answered."""

import json
import uuid
from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.errors import (
    LocationRefused,
    NoSuchTable,
    NoSuchView,
    OwnedElsewhere,
    TableExists,
    ViewExists,
)
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.operations.replace_view import ViewChange
from cynosure.catalog.operations.update_namespace_properties import PropertiesUpdate
from cynosure.catalog.staged import find_own_staged
from cynosure.common.errors import BadInput, Forbidden, NotFound
from cynosure.federation.errors import DoneUnseen, NotOffered, ReadOnly, RemoteConflict
from cynosure.federation.remote import Abilities, NewTable, RemoteTable
from cynosure.iceberg.errors import InvalidMetadata, RequirementFailed
from cynosure.iceberg.requirements import AssertCreate, AssertTableUuid
from cynosure.iceberg.views import decode_view_updates
from cynosure.testing.metadata_files import write_metadata
from cynosure.testing.remote_samples import SCHEMA, creating, version_of
from cynosure.testing.small_access import P, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.external import write_metadata as write_table
from tests.federation.seen_world import NS, T, answer_of
from tests.federation.writes.changes import (
    Passing,
    appending,
    change,
    creation,
    make_namespace,
    make_table,
    put_view_file,
    setting,
    view_creation,
)

pytestmark = pytest.mark.anyio
U = Identifier(NS, "other")
V = Identifier(NS, "v")


async def test_a_namespace_is_made_changed_and_dropped_there_and_here(here: Passing) -> None:
    catalog, remote = here.far.catalog, here.remote

    made = await here.writes.create_namespace(catalog, ROOT, NS, {"owner": "a", "old": "x"})
    assert remote.namespaces[NS] == {"owner": "a", "old": "x"} == made.properties

    wanted = PropertiesUpdate(("old", "none"), {"owner": "b"})
    done = await here.writes.update_namespace_properties(catalog, ROOT, NS, wanted)
    assert (done.updated, done.removed, done.missing) == (["owner"], ["old"], ["none"])
    assert remote.namespaces[NS] == {"owner": "b"}
    assert (await load_namespace(catalog, ROOT, NS)).properties == {"owner": "b"}

    await here.writes.drop_namespace(catalog, ROOT, NS)
    assert NS not in remote.namespaces
    assert await here.far.disagreements() == []


async def test_a_created_table_is_the_remotes_and_can_be_loaded(here: Passing) -> None:
    await make_namespace(here)

    made = await here.writes.create_table(here.far.catalog, ROOT, creation(properties={"a": "b"}))

    there = here.remote.tables[T].metadata
    assert answer_of(made.answer)["table-uuid"] == there.table_uuid
    assert answer_of(await load_table(here.far.catalog, ROOT, T))["properties"]["a"] == "b"
    assert await here.far.disagreements() == []


async def test_a_commit_is_the_remotes_and_is_answered(here: Passing) -> None:
    location = await make_table(here)

    answer = await here.writes.commit_table(here.far.catalog, ROOT, appending(location))

    there = here.remote.tables[T]
    assert answer_of(answer)["current-snapshot-id"] == there.metadata.current_snapshot_id
    assert json.loads(answer.commit_body())["metadata-location"] == there.tag.metadata_location
    assert await here.far.disagreements() == []


async def test_a_commit_goes_on_what_the_remote_has_now(here: Passing) -> None:
    location = await make_table(here)
    there = here.remote.tables[T].metadata
    here.remote.put(T, msgspec.structs.replace(there, properties={"theirs": "1"}))

    answer = await here.writes.commit_table(here.far.catalog, ROOT, setting(ours="2"))

    assert answer_of(answer)["properties"] == {"theirs": "1", "ours": "2"}
    assert location == answer_of(answer)["location"]


async def test_of_two_who_change_the_same_one_loses(here: Passing) -> None:
    location = await make_table(here)
    await here.writes.commit_table(here.far.catalog, ROOT, appending(location))

    with pytest.raises(RequirementFailed):
        await here.writes.commit_table(here.far.catalog, ROOT, appending(location, snapshot=17))
    assert here.remote.done.count("commit_table") == 1


async def test_a_conflict_that_only_the_remote_sees_is_its_conflict(
    here: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = await make_table(here)
    theirs = here.remote.commit_table

    async def beaten(wanted, *, key=None):
        monkeypatch.undo()
        direct = appending(location, snapshot=17)
        wins = msgspec.structs.replace(wanted, requirements=direct.requirements, updates=direct.updates)
        await theirs(wins)
        return await theirs(wanted)

    monkeypatch.setattr(here.remote, "commit_table", beaten, raising=False)
    monkeypatch.setattr(type(here.remote), "__getattribute__", object.__getattribute__)

    with pytest.raises(RemoteConflict):
        await here.writes.commit_table(here.far.catalog, ROOT, appending(location))
    assert here.remote.tables[T].metadata.current_snapshot_id == 17


async def test_a_staged_table_is_reserved_and_made_by_its_commit(here: Passing) -> None:
    await make_namespace(here)

    staged = await here.writes.create_table(
        here.far.catalog, ROOT, creation(is_staged=True), delegation=ANY_WAY
    )
    assert T not in here.remote.tables
    state = await here.far.catalog.read()
    assert await find_own_staged(here.far.catalog, state, ROOT, T) is not None

    metadata = here.far.metadata()
    told = answer_of(staged.answer)
    planned = msgspec.structs.replace(metadata, table_uuid=told["table-uuid"], location=told["location"])
    sent = creating(T, here.remote.put(Identifier(("x",), "x"), planned))
    answer = await here.writes.commit_table(
        here.far.catalog,
        ROOT,
        change_of(sent),
    )

    assert answer_of(answer)["table-uuid"] == told["table-uuid"]
    assert here.remote.tables[T].metadata.location == told["location"]
    state = await here.far.catalog.read()
    assert await find_own_staged(here.far.catalog, state, ROOT, T) is None
    assert await here.far.disagreements() == []


def change_of(sent):
    found = change(table=sent.table, requires=tuple(sent.requirements))
    return msgspec.structs.replace(found, updates=sent.updates)


async def test_a_table_that_is_there_is_not_made_by_a_commit(here: Passing) -> None:
    await make_table(here)

    with pytest.raises(RequirementFailed, match="already exists"):
        await here.writes.commit_table(here.far.catalog, ROOT, change(requires=(AssertCreate(),)))


async def test_several_tables_are_changed_at_once_or_none(here: Passing) -> None:
    await make_table(here)
    await make_table(here, U)
    both = [setting(a="1"), setting(U, b="2")]

    await here.writes.commit_transaction(here.far.catalog, ROOT, both)
    assert answer_of(await load_table(here.far.catalog, ROOT, T))["properties"]["a"] == "1"
    assert answer_of(await load_table(here.far.catalog, ROOT, U))["properties"]["b"] == "2"

    wrong = change(
        {"action": "set-properties", "updates": {"c": "3"}},
        table=U,
        requires=(AssertTableUuid(str(uuid.uuid4())),),
    )
    with pytest.raises(RequirementFailed):
        await here.writes.commit_transaction(here.far.catalog, ROOT, [setting(a="4"), wrong])
    assert here.remote.tables[T].metadata.properties["a"] == "1"
    assert await here.far.disagreements() == []


async def test_a_dropped_table_is_gone_there_and_here(here: Passing) -> None:
    await make_table(here)

    await here.writes.drop_table(here.far.catalog, ROOT, T)

    assert T not in here.remote.tables
    with pytest.raises(NoSuchTable):
        await load_table(here.far.catalog, ROOT, T)
    with pytest.raises(NoSuchTable):
        await here.writes.drop_table(here.far.catalog, ROOT, T)
    assert await here.far.disagreements() == []


async def test_an_unregistered_table_is_answered_with_its_last_version(here: Passing) -> None:
    await make_table(here)
    last = here.remote.tables[T].tag.metadata_location

    answer = await here.writes.unregister_table(here.far.catalog, ROOT, T)

    assert json.loads(answer.commit_body())["metadata-location"] == last
    assert T not in here.remote.tables


async def test_a_renamed_table_keeps_its_id_and_grants(here: Passing) -> None:
    await make_table(here)
    before = await here.far.id_of()
    await here.far.people.root()
    reader = await here.far.people.add("reader", here.far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

    await here.writes.rename_table(here.far.catalog, ROOT, T, U)

    assert set(here.remote.tables) == {U}
    assert await here.far.id_of(U) == before
    await load_table(here.far.catalog, reader, U)
    assert await here.far.disagreements() == []


@pytest.mark.parametrize("home", [None, "elsewhere"])
async def test_a_table_that_takes_a_renamed_ones_name_is_not_put_where_that_one_is(
    here: Passing, home: str | None
) -> None:
    """Where remotes put tables that nobody placed: below their namespace, by their names."""
    catalog, base = here.far.catalog, here.far.catalog.base.text
    place = f"{base}/ns/orders" if home is None else f"{base}/{home}/orders"
    here.remote.namespaces[NS] = {} if home is None else {"location": f"{base}/{home}"}
    await here.far.federation.see_namespace(catalog, ROOT, NS)
    await here.writes.create_table(catalog, ROOT, creation(location=place), delegation=ANY_WAY)
    await here.writes.rename_table(catalog, ROOT, T, U)
    placed: list[bool] = []
    create = here.remote.create_table

    async def watch(wanted: NewTable, *, key: str | None = None) -> RemoteTable:
        placed.append(wanted.is_placed)
        return await create(wanted, key=key)

    here.remote.create_table = watch  # type: ignore[method-assign]
    await here.writes.create_table(catalog, ROOT, creation(), delegation=ANY_WAY)
    await here.writes.create_table(catalog, ROOT, creation(Identifier(NS, "new")), delegation=ANY_WAY)

    assert placed == [True, False]
    assert here.remote.tables[T].metadata.location != place
    assert await here.far.disagreements() == []


async def test_a_file_is_registered_at_the_remote_by_our_rules(here: Passing, tmp_path: Path) -> None:
    await make_namespace(here)
    folder = Path(here.far.catalog.base.text.removeprefix("file://")) / "taken"
    file = write_metadata(folder, str(uuid.uuid4()), SCHEMA)
    here.remote.files[file] = here.far.metadata("taken")

    made = await here.writes.register_table(here.far.catalog, ROOT, T, file)

    assert here.remote.tables[T].tag.metadata_location == file
    assert answer_of(made.answer)["location"] == here.far.metadata("taken").location
    outside = write_metadata(tmp_path / "outside", str(uuid.uuid4()), SCHEMA)
    with pytest.raises(LocationRefused):
        await here.writes.register_table(here.far.catalog, ROOT, U, outside)
    await make_table(here, U)
    # The file is at a free place, and the table that it is of has another one in it.
    above = await write_table(here.far.catalog, at=NS[0])
    with pytest.raises(LocationRefused):
        await here.writes.register_table(here.far.catalog, ROOT, V, above)
    assert here.remote.done.count("register_table") == 1


async def test_a_file_of_the_same_table_is_registered_over_it(here: Passing) -> None:
    catalog = here.far.catalog
    await make_namespace(here)
    for version in ("v1", "v2"):
        file = await write_table(catalog, version, at="taken")
        here.remote.files[file] = here.far.metadata("taken", name=version)
        await here.writes.register_table(catalog, ROOT, T, file, is_overwrite=True)
        assert answer_of(await load_table(catalog, ROOT, T))["properties"]["version"] == version
    assert await here.far.disagreements() == []


async def test_a_file_of_an_earlier_version_is_registered_over_a_later_one(here: Passing) -> None:
    catalog, files = here.far.catalog, {}
    await make_namespace(here)
    for at, version in enumerate(("v1", "v2")):
        files[version] = await write_table(catalog, version, at="taken")
        metadata = here.far.metadata("taken", name=version)
        here.remote.files[files[version]] = msgspec.structs.replace(metadata, last_updated_ms=1_000 + at)

    for version in ("v1", "v2", "v1"):
        made = await here.writes.register_table(catalog, ROOT, T, files[version], is_overwrite=True)

        assert answer_of(made.answer)["properties"]["version"] == version
        assert answer_of(await load_table(catalog, ROOT, T))["properties"]["version"] == version
    assert await here.far.disagreements() == []


async def test_a_view_is_registered_at_the_remote_by_our_rules(here: Passing, tmp_path: Path) -> None:
    location = await make_table(here)
    catalog, file = here.far.catalog, await put_view_file(here)

    made = await here.writes.register_view(catalog, ROOT, V, file)

    assert here.remote.views[V].tag.metadata_location == file == made.metadata_location
    assert (await load_view(catalog, ROOT, V)).load_body() == made.load_body()
    refused = {
        f"{tmp_path.as_uri()}/outside/metadata/v1.metadata.json": LocationRefused,
        f"{catalog.base.text}/none/metadata/v1.metadata.json": BadInput,
        # Not even read, as another table holds it.
        f"{location}/metadata/v1.metadata.json": LocationRefused,
        await write_table(catalog, at="free"): InvalidMetadata,
        # The file is at a free place, and the view that it is of has a table in it.
        await put_view_file(here, at=NS[0]): LocationRefused,
        await put_view_file(here, at="out", location="file:///outside"): LocationRefused,
        await put_view_file(here, at="own", properties={"cynosure.x": "y"}): BadInput,
    }
    for named, error in refused.items():
        with pytest.raises(error):
            await here.writes.register_view(catalog, ROOT, U, named)
    with pytest.raises(ViewExists):
        await here.writes.register_view(catalog, ROOT, V, file)
    with pytest.raises(TableExists):
        await here.writes.register_view(catalog, ROOT, T, file)
    assert here.remote.done.count("register_view") == 1
    assert await here.far.disagreements() == []


async def test_a_view_that_the_remote_makes_of_something_else_is_told_as_done(here: Passing) -> None:
    await make_namespace(here)
    file = await put_view_file(here)
    foreign = msgspec.structs.replace(here.remote.view_files[file], location="file:///outside")
    here.remote.view_files[file] = foreign

    with pytest.raises(DoneUnseen):
        await here.writes.register_view(here.far.catalog, ROOT, V, file)
    with pytest.raises(NoSuchView):
        await load_view(here.far.catalog, ROOT, V)


async def test_views_are_made_replaced_renamed_and_dropped_there_and_here(here: Passing) -> None:
    catalog, remote = here.far.catalog, here.remote
    await make_namespace(here)

    made = await here.writes.create_view(catalog, ROOT, view_creation(V))
    assert remote.views[V].metadata.view_uuid == json.loads(made.load_body())["metadata"]["view-uuid"]

    updates = [
        {"action": "add-view-version", "view-version": version_of("SELECT 2 AS id", 2)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    decoded = decode_view_updates(json.dumps(updates).encode())
    await here.writes.replace_view(catalog, ROOT, ViewChange(V, [], decoded))
    assert "SELECT 2" in (await load_view(catalog, ROOT, V)).load_body().decode()

    await here.writes.rename_view(catalog, ROOT, V, U)
    assert set(remote.views) == {U}
    await here.writes.drop_view(catalog, ROOT, U)
    assert remote.views == {}
    assert await here.far.disagreements() == []


async def test_what_a_remote_cannot_is_refused_before_it_is_asked(here: Passing) -> None:
    location = await make_table(here)
    here.remote.abilities = Abilities(
        has_views=False, has_nested_namespaces=False, has_transactions=False, names="lower"
    )
    done, catalog = len(here.remote.done), here.far.catalog

    with pytest.raises(NotOffered):
        await here.writes.create_view(catalog, ROOT, view_creation(V))
    with pytest.raises(NotOffered):
        await here.writes.commit_transaction(catalog, ROOT, [appending(location)])
    with pytest.raises(NotOffered):
        await here.writes.register_view(catalog, ROOT, V, f"{location}/v.json")
    with pytest.raises(BadInput, match="inside others"):
        await here.writes.create_namespace(catalog, ROOT, (*NS, "below"), {})
    with pytest.raises(BadInput, match="lower case"):
        await here.writes.create_table(catalog, ROOT, creation(Identifier(NS, "Orders")))
    with pytest.raises(BadInput, match="lower case"):
        await here.writes.rename_table(catalog, ROOT, T, Identifier(NS, "Orders"))
    assert len(here.remote.done) == done


async def test_views_are_registered_only_where_the_remote_does_it(here: Passing) -> None:
    await make_namespace(here)
    file, asked = await put_view_file(here), len(here.remote.asked)
    here.remote.abilities = msgspec.structs.replace(here.remote.abilities, registers_views=False)

    with pytest.raises(NotOffered) as refused:
        await here.writes.register_view(here.far.catalog, ROOT, V, file)
    assert refused.value.fix == "Create the view from its SQL."
    assert len(here.remote.asked) == asked


async def test_a_read_only_catalog_passes_nothing_on(here: Passing) -> None:
    await make_table(here)
    await here.far.set_properties(read_only="true")
    asked = len(here.remote.asked)

    with pytest.raises(ReadOnly):
        await here.writes.commit_table(here.far.catalog, ROOT, setting(a="b"))
    with pytest.raises(ReadOnly):
        await here.writes.drop_table(here.far.catalog, ROOT, T)
    with pytest.raises(ReadOnly):
        await here.writes.register_view(here.far.catalog, ROOT, V, "file:///m.json")
    assert len(here.remote.asked) == asked


async def test_who_has_no_right_causes_no_question(here: Passing) -> None:
    await make_table(here)
    await here.far.people.root()
    nobody = await here.far.people.add("nobody")
    # May make tables, and nothing with those of others.
    maker = await here.far.people.add("maker", here.far.catalog, *on_namespace(NS, P.TABLE_CREATE))
    asked = len(here.remote.asked)

    for caller in (nobody, maker):
        for refused in (
            here.writes.commit_table(here.far.catalog, caller, setting(a="b")),
            here.writes.drop_table(here.far.catalog, caller, T),
            here.writes.rename_table(here.far.catalog, caller, T, U),
            here.writes.drop_namespace(here.far.catalog, caller, NS),
            here.writes.create_namespace(here.far.catalog, caller, ("x",), {}),
            here.writes.register_view(here.far.catalog, caller, V, "file:///m.json"),
        ):
            with pytest.raises((Forbidden, NotFound)):
                await refused
    assert len(here.remote.asked) == asked


async def test_a_table_made_anew_at_the_remote_is_not_changed_by_old_grants(here: Passing) -> None:
    await make_table(here)
    await here.far.people.root()
    writer = await here.far.people.add("writer", here.far.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))
    await here.writes.commit_table(here.far.catalog, writer, setting(a="b"))
    here.far.put(at="elsewhere", uuid=str(uuid.uuid4()))

    with pytest.raises((Forbidden, NotFound)):
        await here.writes.commit_table(here.far.catalog, writer, setting(c="d"))
    assert "c" not in here.remote.tables[T].metadata.properties


async def test_a_location_outside_is_refused_before_and_told_behind(
    here: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_table(here)
    foreign = change({"action": "set-location", "location": "file:///somewhere/else"})
    done = len(here.remote.done)

    with pytest.raises(LocationRefused):
        await here.writes.commit_table(here.far.catalog, ROOT, foreign)
    assert len(here.remote.done) == done

    changed = here.remote._changed
    monkeypatch.setattr(
        here.remote,
        "_changed",
        lambda each: msgspec.structs.replace(changed(each), location="file:///somewhere/else"),
    )
    with pytest.raises(DoneUnseen):
        await here.writes.commit_table(here.far.catalog, ROOT, setting(a="b"))
    monkeypatch.undo()
    assert "a" not in answer_of(await load_table(here.far.catalog, ROOT, T))["properties"]


async def test_properties_of_ours_are_refused(here: Passing) -> None:
    await make_table(here)

    with pytest.raises(BadInput, match="reserved"):
        await here.writes.commit_table(
            here.far.catalog, ROOT, change({"action": "set-properties", "updates": {"cynosure.x": "y"}})
        )


async def test_native_operations_change_nothing_beside_the_remote(here: Passing) -> None:
    with pytest.raises(OwnedElsewhere):
        await create_namespace(here.far.catalog, ROOT, NS, {})
