"""What is known of a remote, compared with what it has: told, and mended."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.policies.placing import AttachTo
from cynosure.common.errors import BadInput, BadPageToken
from cynosure.federation.mirror.seen import find_seen
from cynosure.federation.reconcile import Reconciled, reconcile
from cynosure.federation.reconciling.drift import Drift, HangingGrant
from cynosure.federation.reconciling.moves import MOST_LOADS, MOST_NAMESPACES
from cynosure.federation.remote import RemoteTable, Tag, Unchanged
from cynosure.federation.settings import FederationSettings
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.policies.made import attach, create
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T, make_federation

pytestmark = pytest.mark.anyio

U = Identifier(NS, "users")
V = Identifier(NS, "v")


async def compare(far: Far, *, fix: bool = False) -> Reconciled:
    return await reconcile(far.federation.clients, far.catalog, ROOT, is_mending=fix)


def _uuid(number: int) -> str:
    return f"{number:08}-2222-4333-8444-555555555555"


def brief(found: Reconciled) -> list[tuple[str, str, bool]]:
    return [(".".join(each.path), each.difference, each.is_mended) for each in found.drifts]


async def see(far: Far, *tables: Identifier) -> None:
    for table in tables:
        await far.see(ROOT, table)
    await far.federation.see_namespace(far.catalog, ROOT, NS)


async def test_what_is_the_same_is_no_difference(far: Far) -> None:
    far.put()
    await see(far, T)
    commits = await far.count_commits()

    found = await compare(far, fix=True)

    assert found == Reconciled(2, ())
    assert await far.count_commits() == commits


async def test_what_is_gone_is_told_with_its_grants_and_policies_and_given_up(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_DATA, P.TABLE_LIST))
    far.remote.tables.clear()

    told = await compare(far)
    assert told.drifts == (
        Drift(
            kind="table",
            path=(*NS, T.name),
            difference="gone",
            grants=(HangingGrant("ann", ("TABLE_LIST", "TABLE_READ_DATA")),),
        ),
    )
    await load_table(far.catalog, ROOT, T)  # a dry run gives nothing up

    mended = await compare(far, fix=True)
    assert brief(mended) == [("ns.orders", "gone", True)]
    assert mended.drifts[0].grants == told.drifts[0].grants
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ROOT, T)
    assert (await compare(far)).drifts == ()
    assert await far.disagreements() == []


async def test_policies_of_what_is_gone_are_told_by_name(far: Far) -> None:
    far.put()
    await see(far, T)
    await create(far.catalog, "keep")
    await attach(far.catalog, "keep", AttachTo("table-like", (*NS, T.name)))
    far.remote.tables.clear()

    assert [each.policies for each in (await compare(far)).drifts] == [("ns.keep",)]


async def test_a_table_made_anew_is_another_one_and_the_grants_on_the_old_one_end(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    before = await far.id_of()
    far.put(at="other", uuid=OTHER_UUID)

    found = await compare(far, fix=True)

    assert brief(found) == [("ns.orders", "re-created", True)]
    assert found.drifts[0].grants == (HangingGrant("ann", ("TABLE_READ_PROPERTIES",)),)
    assert await far.id_of() != before
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ann, T)


async def test_another_version_is_taken_in_and_keeps_its_id(far: Far) -> None:
    far.put()
    await see(far, T)
    before = await far.id_of()
    far.put(name="v2")

    assert brief(await compare(far)) == [("ns.orders", "changed", False)]
    assert brief(await compare(far, fix=True)) == [("ns.orders", "changed", True)]
    assert await far.id_of() == before
    assert (await compare(far)).drifts == ()


async def test_a_table_with_another_name_keeps_its_id_and_its_grants(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    before = await far.id_of()
    await far.remote.rename_table(T, U)

    (found,) = (await compare(far, fix=True)).drifts

    assert (found.difference, found.path, found.moved_to, found.is_mended) == (
        "moved",
        (*NS, T.name),
        (*NS, U.name),
        True,
    )
    assert found.grants == ()
    assert await far.id_of(U) == before
    await load_table(far.catalog, ann, U)
    assert await far.disagreements() == []


async def test_a_table_in_another_namespace_keeps_its_id_and_its_grants(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    ann = await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    before = await far.id_of()
    # Where the mirror has nothing, under another name, and beside others that are new.
    target = Identifier(("archive", "2025"), "visits")
    far.put(Identifier(("archive",), "visits"), "other", uuid=OTHER_UUID)
    far.remote.namespaces[target.namespace] = {}
    await far.remote.rename_table(T, target)

    told = await compare(far)
    assert [(each.difference, each.moved_to, each.grants) for each in told.drifts] == [
        ("moved", (*target.namespace, target.name), ())
    ]
    assert brief(await compare(far, fix=True)) == [("ns.orders", "moved", True)]
    assert await far.id_of(target) == before
    await load_table(far.catalog, ann, target)
    assert (await compare(far)).drifts == ()
    assert await far.disagreements() == []


async def test_what_kept_its_name_is_found_among_very_many_others(far: Far) -> None:
    far.put()
    far.put(U, "users", uuid=OTHER_UUID)
    await see(far, T, U)
    for number in range(MOST_LOADS + 1):
        far.put(Identifier(("busy",), f"a{number}"), f"a{number}", uuid=_uuid(number))
    far.remote.namespaces["z",] = {}
    await far.remote.rename_table(T, Identifier(("z",), T.name))
    far.remote.asked.clear()

    assert [each.moved_to for each in (await compare(far)).drifts] == [("z", T.name)]
    # Both that were seen, and what is new: nothing else.
    assert far.remote.asked.count("load-table") == 3
    # Under another name it is one of many: told as gone, after a bounded number of questions.
    await far.remote.rename_table(Identifier(("z",), T.name), Identifier(("z",), "other"))
    far.remote.asked.clear()
    assert brief(await compare(far)) == [("ns.orders", "gone", False)]
    assert far.remote.asked.count("load-table") == 2 + MOST_LOADS


async def test_only_so_many_namespaces_are_looked_through(far: Far) -> None:
    far.put()
    await see(far, T)
    del far.remote.tables[T]
    for number in range(2 * MOST_NAMESPACES):
        far.remote.namespaces[f"n{number:03}", "below"] = far.remote.namespaces[f"n{number:03}",] = {}
    far.remote.asked.clear()

    assert brief(await compare(far)) == [("ns.orders", "gone", False)]
    # Its own, and one glance for names that cannot be names here.
    assert far.remote.asked.count("list-tables") <= MOST_NAMESPACES + 2
    assert far.remote.asked.count("list-namespaces") == 1


async def test_tables_of_a_namespace_with_another_name_are_moved_before_it_goes(far: Far) -> None:
    far.put()
    await see(far, T)
    before = await far.id_of()
    target = Identifier(("renamed",), T.name)
    far.remote.namespaces["renamed",] = {}
    await far.remote.rename_table(T, target)
    del far.remote.namespaces[NS]

    found = await compare(far, fix=True)

    assert brief(found) == [("ns", "gone", True), ("ns.orders", "moved", True)]
    assert await far.id_of(target) == before
    assert (await compare(far)).drifts == ()
    assert await far.disagreements() == []


async def test_a_view_in_another_namespace_keeps_its_id(far: Far) -> None:
    stage = Stage(far.remote, f"{far.catalog.base.text}/views")
    far.remote.put_view(V, plan_view(stage, V))
    await far.federation.see_view(far.catalog, ROOT, V)
    far.remote.namespaces["archive",] = {}
    await far.remote.rename_view(V, Identifier(("archive",), "v2"))

    (found,) = (await compare(far, fix=True)).drifts

    assert (found.difference, found.moved_to, found.is_mended) == ("moved", ("archive", "v2"), True)
    assert (await compare(far)).drifts == ()


async def test_a_namespace_that_is_gone_takes_its_contents_along(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    await far.people.add("ann", far.catalog, *on_namespace(NS, P.TABLE_LIST))
    far.remote.tables.clear()
    far.remote.namespaces.clear()

    found = await compare(far, fix=True)

    assert brief(found) == [("ns", "gone", True), ("ns.orders", "gone", True)]
    assert found.drifts[0].grants == (HangingGrant("ann", ("TABLE_LIST",)),)
    assert (await compare(far)).checked == 0


async def test_properties_of_a_namespace_are_compared(far: Far) -> None:
    far.put()
    await see(far, T)
    far.remote.namespaces[NS]["owner"] = "them"

    assert brief(await compare(far, fix=True)) == [("ns", "changed", True)]
    assert (await compare(far)).drifts == ()


async def test_a_view_is_compared_too(far: Far) -> None:
    stage = Stage(far.remote, f"{far.catalog.base.text}/views")
    far.remote.put_view(V, plan_view(stage, V))
    await far.federation.see_view(far.catalog, ROOT, V)
    assert (await compare(far)).drifts == ()
    far.remote.views.clear()

    assert brief(await compare(far, fix=True)) == [("ns.v", "gone", True)]


async def test_a_remote_that_does_not_answer_has_nothing_taken_away(far: Far, tmp_path: Path) -> None:
    far.put()
    await see(far, T)
    clock = far.directory.shared.persistence.clock
    impatient = make_federation(tmp_path, far.remote, clock, FederationSettings(retries=0))
    far.remote.is_down = True
    commits = await far.count_commits()

    found = await reconcile(impatient.clients, far.catalog, ROOT, is_mending=True)

    assert {each.difference for each in found.drifts} == {"unreachable"}
    assert not any(each.is_mended for each in found.drifts)
    assert await far.count_commits() == commits


def see_after_the_answer(far: Far, table: Identifier, happens: Callable[[], None], *seen: Identifier) -> None:
    """When the remote has answered about a table: something happens there, and somebody loads these."""
    ask, is_done = far.remote.load_table, False

    async def load(name: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:
        nonlocal is_done
        try:
            return await ask(name, known)
        finally:
            if name == table and not is_done:
                is_done = True
                happens()
                for each in seen:
                    await far.see(ROOT, each)

    far.remote.load_table = load


async def test_an_answer_does_not_replace_what_somebody_saw_after_it(far: Far) -> None:
    far.put()
    await see(far, T)
    far.put(name="v2")
    see_after_the_answer(far, T, lambda: far.put(name="v3"), T)

    assert brief(await compare(far, fix=True)) == [("ns.orders", "changed", False)]
    seen = await find_seen(await far.catalog.read(), table_key(T))
    assert seen is not None
    assert seen.tag == far.remote.tables[T].tag


async def test_what_was_put_in_the_place_of_a_moved_table_stays_there(far: Far) -> None:
    far.put()
    await see(far, T)
    before = await far.id_of()
    target = Identifier(("archive",), T.name)
    far.remote.namespaces["archive",] = {}
    await far.remote.rename_table(T, target)
    # Behind the question about its new name, another one gets its old name, and is loaded.
    see_after_the_answer(far, target, lambda: far.put(at="anew", uuid=OTHER_UUID), T)

    assert brief(await compare(far, fix=True)) == [("ns.orders", "moved", False)]
    assert await far.id_of() != before
    await load_table(far.catalog, ROOT, T)
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ROOT, target)


async def test_what_may_not_be_shown_is_told_and_left_as_it_was(far: Far) -> None:
    far.put()
    await see(far, T)
    location = far.catalog.base.text.replace("/far", "/elsewhere")
    far.remote.put(T, far.metadata(name="v2", location=location))

    assert brief(await compare(far, fix=True)) == [("ns.orders", "not-shown", False)]


async def test_names_that_cannot_be_names_here_are_told_escaped(far: Far) -> None:
    far.put()
    await see(far, T)
    far.remote.put(Identifier(NS, "bad\x1b[31m"), far.metadata("odd", uuid=THIRD_UUID))

    assert brief(await compare(far)) == [("ns.bad\x1b[31m", "name-not-allowed", False)]


async def test_it_goes_on_page_by_page_whatever_happens_meanwhile(far: Far) -> None:
    tables = [Identifier(NS, f"t{number}") for number in range(7)]
    for number, table in enumerate(tables):
        far.put(table, f"t{number}", uuid=f"{number:08}-2222-4333-8444-555555555555")
        await far.see(ROOT, table)
    far.remote.tables.clear()
    token, seen, pages = None, [], 0
    while True:
        found = await reconcile(
            far.federation.clients, far.catalog, ROOT, is_mending=True, token=token, size=3
        )
        seen += brief(found)
        pages += 1
        token = found.next_token
        if token is None:
            break

    assert seen == [(f"ns.t{number}", "gone", True) for number in range(7)]
    assert pages == 3


async def test_only_who_manages_metadata_and_access_may(far: Far) -> None:
    far.put()
    await see(far, T)
    await far.people.root()
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.CATALOG_MANAGE_METADATA))
    asked = len(far.remote.asked)

    with pytest.raises(AccessDenied):
        await reconcile(far.federation.clients, far.catalog, ann, is_mending=False)
    assert len(far.remote.asked) == asked
    await far.people.grant("ann", far.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))
    assert (await reconcile(far.federation.clients, far.catalog, ann, is_mending=False)).checked == 2


async def test_a_catalog_without_a_remote_has_nothing_to_compare(far: Far, tmp_path: Path) -> None:
    lake = await make_catalog(far.directory, tmp_path / "files", "lake")

    with pytest.raises(BadInput):
        await reconcile(far.federation.clients, lake, ROOT, is_mending=False)
    with pytest.raises(BadPageToken):
        await reconcile(far.federation.clients, far.catalog, ROOT, is_mending=False, token="x")
