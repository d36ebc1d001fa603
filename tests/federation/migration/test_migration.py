"""A federated catalog becomes our own: nothing is lost or has two owners, and it goes on after a crash.

Holds I122.
"""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cynosure.auth.require import AccessDenied
from cynosure.catalog.cascading.drop_catalog import drop_catalog_cascade
from cynosure.catalog.connection import Connection, SigV4
from cynosure.catalog.errors import CatalogNotEmpty
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.resolve import find_namespace
from cynosure.catalog.table_changes import TableChange
from cynosure.client.migration import Choices
from cynosure.common.errors import BadInput, Conflict, OutcomeUnknown
from cynosure.federation import lists
from cynosure.federation.errors import BeingMoved, RemoteMisbehaved
from cynosure.federation.migration.migrate import Step, migrate
from cynosure.federation.mirror import backfill_table, forget_table
from cynosure.federation.operations import FederatedOperations
from cynosure.federation.remote import NamesPage
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.remote_samples import Stage, plan_view
from cynosure.testing.small_access import P, on_catalog, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.external import make_external
from tests.catalog.tables import updates
from tests.federation.migration.moving import (
    U,
    ask,
    commit_here,
    fill,
    load_version,
    migration,
    open_again,
    outcomes,
)
from tests.federation.seen_world import NS, Far, T

pytestmark = pytest.mark.anyio

OUTSIDE = Identifier(NS, "outside")
STEPS = ("begin", "take", "settle", "release", "finish")


async def test_all_of_a_remote_is_ours_in_the_end_with_ids_and_without_the_remote(far: Far) -> None:
    fill(far)
    await far.see()
    before = await far.id_of()

    moved = await migration(far).move(Choices())
    await open_again(far)

    assert moved.phase == "done"
    assert outcomes(moved.objects) == {
        "ns": "taken",
        "ns.deep": "taken",
        "ns.orders": "released",
        "ns.deep.items": "released",
    }
    assert far.remote.tables == {}
    assert (far.catalog.entity.kind, far.catalog.entity.connection) == ("INTERNAL", None)
    assert await far.id_of() == before
    await commit_here(far)
    await commit_here(far, U)
    assert await far.disagreements() == []
    again = await migration(far).move(Choices())
    assert (again.phase, again.objects) == ("done", [])


async def test_a_survey_changes_nothing_and_tells_every_obstacle(far: Far) -> None:
    fill(far)
    far.remote.put(OUTSIDE, far.metadata("../elsewhere/outside", "99999999-2222-4333-8444-555555555555"))
    heads = await far.count_commits()
    listed = (await far.directory.read(DEFAULT_REALM)).commit_id

    found = await migration(far).survey()
    refused = await migration(far).move(Choices())

    for each in (found, refused):
        assert each.phase == "none"
        assert [(one.path, bool(one.reason)) for one in each.obstacles] == [(("ns", "outside"), True)]
    assert outcomes(found.objects)["ns.deep.items"] == "ready"
    assert await far.count_commits() == heads
    assert (await far.directory.read(DEFAULT_REALM)).commit_id == listed
    assert not {"rename-table", "drop-table"} & set(far.remote.asked)


async def test_what_cannot_be_moved_stays_behind_by_choice(far: Far) -> None:
    fill(far)
    far.remote.put(OUTSIDE, far.metadata("../elsewhere/outside", "99999999-2222-4333-8444-555555555555"))

    moved = await migration(far).move(Choices(leave_behind=True))

    assert moved.phase == "done"
    assert outcomes(moved.objects)["ns.outside"] == "left-behind"
    assert list(far.remote.tables) == [OUTSIDE]


async def test_what_is_kept_at_the_remote_has_another_name_there(far: Far) -> None:
    far.put()

    moved = await migration(far).move(Choices(keep_remote=True))

    (kept,) = far.remote.tables
    assert kept.name.startswith("cynosure_moved_")
    (told,) = [each for each in moved.objects if each.type == "table"]
    assert (told.outcome, told.reason) == ("kept", f"as {kept}")


async def test_a_commit_at_the_remote_before_the_table_is_set_aside_is_carried(far: Far) -> None:
    fill(far)
    await far.see()

    def commit_there(step: Mapping[str, Any]) -> None:
        if step["step"] == "take" and step.get("type") == "table" and T in far.remote.tables:
            far.put(name="v2", **{"last-updated-ms": 1_700_000_000_000})

    await migration(far, commit_there).move(Choices())
    await open_again(far)

    assert await load_version(far) == "v2"


async def test_a_commit_between_seeing_and_renaming_is_carried(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    rename = far.remote.rename_table

    async def late(source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        if source == T:
            far.put(name="late", **{"last-updated-ms": 1_700_000_000_000})
        await rename(source, target, key=key)

    monkeypatch.setattr(far.remote, "rename_table", late)
    await migration(far).move(Choices())
    await open_again(far)

    assert await load_version(far) == "late"


async def test_while_it_is_moved_the_catalog_is_read_from_here_and_changes_nothing(far: Far) -> None:
    fill(far)
    await ask(far, {"step": "begin"})
    for namespace in ((), NS):
        await ask(far, {"step": "take", "namespace": namespace})
    await ask(far, {"step": "take", "type": "table", "namespace": NS})
    asked = len(far.remote.asked)

    await far.see()
    assert await load_version(far) == "v1"
    names = await lists.list_tables(far.federation.clients, far.catalog, ROOT, NS, Paging(None, None))
    assert (b"orders" in names, b"cynosure_moved" in names) == (True, False)
    change = TableChange(T, (), tuple(updates({"action": "set-properties", "updates": {"a": "1"}})))
    with pytest.raises(BeingMoved):
        await FederatedOperations(far.federation).commit_table(far.catalog, ROOT, change)
    assert len(far.remote.asked) == asked


async def test_whoever_asked_the_remote_before_cannot_change_the_mirror_any_more(far: Far) -> None:
    seen = far.put()
    await far.see()
    await ask(far, {"step": "begin"})

    with pytest.raises(BeingMoved):
        await forget_table(far.catalog, ROOT, T)
    with pytest.raises(BeingMoved):
        await backfill_table(far.catalog, ROOT, T, seen)
    await migration(far).move(Choices())
    with pytest.raises(BeingMoved):
        await forget_table(far.catalog, ROOT, T)


async def test_a_write_on_its_way_when_it_begins_is_carried_and_told_as_unknown(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    commit = far.remote.commit_table

    async def overtaken(*given: Any, **named: Any) -> Any:
        await ask(far, {"step": "begin"})
        return await commit(*given, **named)

    monkeypatch.setattr(far.remote, "commit_table", overtaken)
    change = TableChange(T, (), tuple(updates({"action": "set-properties", "updates": {"version": "v2"}})))
    with pytest.raises(OutcomeUnknown):
        await FederatedOperations(far.federation).commit_table(far.catalog, ROOT, change)
    await migration(far).move(Choices())
    await open_again(far)

    assert await load_version(far) == "v2"


async def test_a_table_that_the_remote_dropped_is_given_up(far: Far) -> None:
    fill(far)
    await far.see()
    del far.remote.tables[T]

    moved = await migration(far).move(Choices())

    assert outcomes(moved.objects)["ns.orders"] == "gone"
    assert moved.phase == "done"


async def test_nothing_is_dropped_there_or_ours_before_everything_is_here(far: Far) -> None:
    fill(far)
    await far.see()
    for step in ("take", "settle", "release", "finish", "cancel"):
        with pytest.raises(Conflict):
            await ask(far, {"step": step})
    await ask(far, {"step": "begin"})

    for step in ("release", "finish"):
        with pytest.raises(Conflict):
            await ask(far, {"step": step})
    assert "drop-table" not in far.remote.asked


async def test_only_who_may_change_the_catalog_and_create_catalogs_begins(far: Far) -> None:
    fill(far)
    grants = on_catalog(P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS)
    ann = await far.people.add("ann", far.catalog, *grants)
    bob = await far.people.add("bob", far.catalog, *on_catalog(P.CATALOG_MANAGE_METADATA))

    for step in (*STEPS, "status", "survey", "cancel"):
        with pytest.raises(AccessDenied):
            await ask(far, {"step": step}, bob)
    assert far.remote.asked == []
    assert (await ask(far, {"step": "survey"}, ann)).objects[0].outcome == "ready"
    with pytest.raises(AccessDenied):
        await ask(far, {"step": "begin"}, ann)
    assert (await ask(far, {"step": "status"})).phase == "none"


async def test_a_catalog_without_a_remote_cannot_be_moved(far: Far) -> None:
    lake = await make_external(far.directory, Path(far.catalog.base.text.removeprefix("file://")).parent)
    with pytest.raises(BadInput):
        await migrate(far.directory, far.federation.clients, lake, ROOT, Step(name="status"))


async def test_tokens_that_are_none_are_refused(far: Far) -> None:
    far.put()
    await ask(far, {"step": "begin"})
    with pytest.raises(BadInput):
        await ask(far, {"step": "settle", "pageToken": "zz"})
    with pytest.raises(BadInput):
        await ask(far, {"step": "take", "pageToken": "zz"})


async def test_many_tables_come_in_pages(far: Far) -> None:
    tables = {Identifier(NS, f"t{number:02}"): str(uuid.UUID(int=number + 1)) for number in range(30)}
    for table, own in tables.items():
        far.put(table, table.name, uuid=own)

    moved = await migration(far).move(Choices())
    await open_again(far)

    assert far.remote.tables == {}
    assert set(outcomes(moved.objects).values()) == {"taken", "released"}
    assert len(moved.objects) == 31
    assert await load_version(far, Identifier(NS, "t29")) == "v1"


async def test_views_go_with_the_tables(far: Far) -> None:
    view = Identifier(NS, "recent")
    far.put()
    far.remote.put_view(view, plan_view(Stage(far.remote, far.catalog.base.text), view))

    moved = await migration(far).move(Choices())
    await open_again(far)

    assert outcomes(moved.objects)["ns.recent"] == "released"
    assert far.remote.views == {}
    state = await load_view(far.catalog, ROOT, view)
    assert state.location.startswith(far.catalog.base.text)


async def test_grants_stay_with_the_tables(far: Far) -> None:
    fill(far)
    await far.see()
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

    await migration(far).move(Choices())
    await open_again(far)

    await load_table(far.catalog, ann, T)
    with pytest.raises(AccessDenied):
        await load_table(far.catalog, ann, U)


async def test_a_remote_that_renames_in_two_steps_wants_its_writers_stopped(far: Far) -> None:
    connection = Connection(
        type="GLUE", uri="https://127.0.0.1:1/", authentication=SigV4(signing_region="here")
    )
    entity = structs.replace(far.catalog.entity, connected_to=connection)
    glue = OpenCatalog(far.catalog.realm, entity, far.catalog.shared, far.catalog.storage)

    async def begin(*, is_quiet: bool) -> str:
        step = Step(name="begin", is_quiet=is_quiet)
        return (await migrate(far.directory, far.federation.clients, glue, ROOT, step)).phase

    with pytest.raises(BadInput, match="keep writers off"):
        await begin(is_quiet=False)
    assert await begin(is_quiet=True) == "taking"


async def test_only_chosen_namespaces_are_moved_and_the_rest_stays_the_remotes(far: Far) -> None:
    fill(far)
    other = Identifier(("others", "inner"), "theirs")
    far.put(other, "theirs", uuid="99999999-2222-4333-8444-555555555555")
    await far.see()
    await far.see(table=other)
    choices = Choices(namespaces=(("ns", "deep"),))

    surveyed = await migration(far).survey(choices)
    moved = await migration(far).move(choices)
    await open_again(far)

    assert outcomes(surveyed.objects) == {"ns": "ready", "ns.deep": "ready", "ns.deep.items": "ready"}
    assert moved.phase == "done"
    assert outcomes(moved.objects) == {
        "ns": "taken",
        "ns.deep": "taken",
        "ns.deep.items": "released",
        "ns.orders": "left-behind",
        "others.inner.theirs": "left-behind",
    }
    assert set(far.remote.tables) == {T, other}
    assert await load_version(far, U) == "v1"
    state = await far.catalog.read()
    assert await find_namespace(state, ("others",)) is None
    assert await find_namespace(state, NS) is not None
    assert await far.disagreements() == []


async def test_what_is_moved_does_not_change_on_the_way(far: Far) -> None:
    fill(far)
    await ask(far, {"step": "begin", "namespaces": (("ns", "deep"),)})

    with pytest.raises(Conflict, match="Other namespaces"):
        await ask(far, {"step": "begin", "namespaces": (NS,)})
    moved = await migration(far).move(Choices())

    assert moved.phase == "done"
    assert set(far.remote.tables) == {T}


async def test_a_list_that_goes_round_in_circles_ends(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    async def turn(parent: tuple[str, ...], *, token: str | None, size: int) -> NamesPage:
        return NamesPage((), "b" if token == "a" else "a")

    monkeypatch.setattr(far.remote, "list_namespaces", turn)

    with pytest.raises(RemoteMisbehaved):
        await migration(far).survey()


async def test_what_the_remote_renamed_since_it_was_seen_keeps_its_grants(far: Far) -> None:
    fill(far)
    await far.see()
    before, renamed = await far.id_of(), Identifier(("ns", "deep"), "renamed")
    far.remote.tables[renamed] = far.remote.tables.pop(T)

    surveyed = await migration(far).survey()
    moved = await migration(far).move(Choices())
    await open_again(far)

    assert surveyed.obstacles == []
    assert outcomes(moved.objects)["ns.deep.renamed"] == "released"
    assert await far.id_of(renamed) == before


async def test_a_catalog_cannot_be_dropped_on_the_way_with_what_is_nowhere_else(far: Far) -> None:
    fill(far)
    await ask(far, {"step": "begin"})

    for drop in (drop_catalog, drop_catalog_cascade):
        with pytest.raises(CatalogNotEmpty, match="being moved"):
            await drop(far.directory, ROOT, "far")
    await migration(far).cancel()
    await drop_catalog(far.directory, ROOT, "far")


async def test_a_version_that_the_remote_went_back_to_is_the_last_one(far: Far) -> None:
    far.put(name="v2", **{"last-updated-ms": 1_700_000_000_000})
    await far.see()
    far.put(name="v1")

    await migration(far).move(Choices())
    await open_again(far)

    assert await load_version(far) == "v1"
