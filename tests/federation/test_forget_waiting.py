"""Restrictions that wait for tables of a remote are given up only where nobody sees more by that.

Holds I113.
"""

import asyncio
from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.policies.placing import AttachTo
from cynosure.common.errors import Conflict, CynosureError, Unavailable
from cynosure.federation import forget_waiting as forgetting
from cynosure.federation.errors import BeingMoved, RemoteMisbehaved
from cynosure.federation.forget_waiting import forget_waiting
from cynosure.federation.list_waiting import list_waiting
from cynosure.federation.migration.migrate import Step, migrate
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT
from tests.federation.mirror.test_waiting import CONTENTS, FILTER, MASK, add_reader, load, restrict
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T

pytestmark = pytest.mark.anyio

OLD = Identifier(NS, "orders_old")
ELSEWHERE = Identifier(("ns", "deep"), "orders_old")
FIRST_UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


@pytest.fixture
async def ann(far: Far) -> Caller:
    """A reader, and a table under a row filter."""
    far.put(uuid=FIRST_UUID)
    await far.see()
    await restrict(far)
    return await add_reader(far)


async def rebuild(far: Far, uuid: str, *, at: str = "anew") -> None:
    """The remote makes the table anew, and somebody looks at it."""
    far.put(at=at, uuid=uuid)
    await far.federation.see_table(far.catalog, ROOT, T, is_fresh=True)


async def forget(far: Far, caller: Caller = ROOT) -> tuple[int, int]:
    told = await forget_waiting(far.federation.clients, far.catalog, caller)
    return told.forgotten, told.kept


async def waits(far: Far) -> list[tuple[str, str]]:
    found = await list_waiting(far.catalog, ROOT)
    return [(each.kind, each.uuid or ".".join(each.path)) for each in found.entries]


@pytest.mark.parametrize("name", [OLD, ELSEWHERE])
async def test_a_table_that_was_renamed_and_never_seen_stays_restricted(
    far: Far, ann: Caller, name: Identifier
) -> None:
    before = await load(far, ann)
    assert before is not None
    far.remote.namespaces.setdefault(name.namespace, {})
    far.remote.tables[name] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)

    assert await forget(far) == (0, 1)

    assert await load(far, ann, name) == before
    assert await load(far, ann) == before


async def test_every_rebuild_leaves_an_entry_and_all_are_given_up_when_the_remote_has_them_no_more(
    far: Far, ann: Caller
) -> None:
    before = await load(far, ann)
    await rebuild(far, OTHER_UUID)
    await rebuild(far, THIRD_UUID)
    assert await waits(far) == [("uuid", OTHER_UUID), ("uuid", FIRST_UUID)]

    assert await forget(far) == (2, 0)

    assert await waits(far) == []
    assert await load(far, ann) == before
    await rebuild(far, FIRST_UUID)
    assert await load(far, ann) == before
    assert await far.disagreements() == []


async def test_what_waits_for_a_name_is_never_given_up(far: Far, ann: Caller) -> None:
    before = await load(far, ann)
    far.remote.tables.clear()
    await far.federation.see_table(far.catalog, ROOT, T, is_fresh=True)
    assert await waits(far) == [("table", "ns.orders"), ("uuid", FIRST_UUID)]

    assert await forget(far) == (1, 1)

    assert await waits(far) == [("table", "ns.orders")]
    far.put(uuid=OTHER_UUID)
    assert await load(far, ann) == before


async def test_what_waits_for_policies_that_were_dropped_goes_also_from_names(far: Far, ann: Caller) -> None:
    await restrict(far, MASK)
    far.remote.tables.clear()
    await far.federation.see_table(far.catalog, ROOT, T, is_fresh=True)
    await drop_policy(far.catalog, ROOT, FILTER, is_detaching=True)
    assert await forget(far) == (1, 1)

    await drop_policy(far.catalog, ROOT, MASK, is_detaching=True)
    (entry,) = (await list_waiting(far.catalog, ROOT)).entries
    assert entry.policies == ()

    assert await forget(far) == (1, 0)
    assert await waits(far) == []


async def test_nothing_is_given_up_while_a_table_of_the_remote_cannot_be_read(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.remote.tables[OLD] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)
    loaded = far.remote.load_table

    async def broken(name: Identifier, *known: Any) -> Any:
        if name == OLD:
            raise RemoteMisbehaved("far", problem="no metadata")
        return await loaded(name, *known)

    monkeypatch.setattr(far.remote, "load_table", broken)
    with pytest.raises(Conflict, match="cannot be read") as refused:
        await forget(far)
    assert refused.value.details["name"] == str(OLD)
    assert await waits(far) == [("uuid", FIRST_UUID)]


@pytest.mark.parametrize("odd", [Identifier(NS, ".."), Identifier(("..",), "orders_old")], ids=str)
async def test_nothing_is_given_up_while_the_remote_has_a_name_that_cannot_be_asked_for(
    far: Far, ann: Caller, odd: Identifier
) -> None:
    far.remote.namespaces.setdefault(odd.namespace, {})
    far.remote.tables[odd] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)

    with pytest.raises(Conflict, match="cannot be one here") as refused:
        await forget(far)

    assert refused.value.details["name"] == ".."
    assert await waits(far) == [("uuid", FIRST_UUID)]


async def test_a_table_that_cannot_be_read_ends_the_questions_about_all_others(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rebuild(far, OTHER_UUID)
    names = [Identifier(NS, f"t{number}") for number in range(100)]
    asked: list[Identifier] = []

    async def broken(name: Identifier, *known: Any) -> Any:
        asked.append(name)
        await asyncio.sleep(0)
        raise RemoteMisbehaved("far", problem="no metadata")

    monkeypatch.setattr(forgetting, "_list_all", lambda *_: as_listed(*names))
    monkeypatch.setattr(far.remote, "load_table", broken)
    with pytest.raises(Conflict, match="cannot be read"):
        await forget(far)
    so_far = len(asked)
    for _ in range(1_000):
        await asyncio.sleep(0)

    assert len(asked) == so_far < len(names)


async def test_nothing_is_given_up_while_the_remote_does_not_answer(far: Far, ann: Caller) -> None:
    await rebuild(far, OTHER_UUID)
    far.remote.is_down = True

    with pytest.raises(Unavailable):
        await forget(far)
    assert await waits(far) == [("uuid", FIRST_UUID)]


@pytest.mark.parametrize("goes_back", [False, True])
async def test_nothing_is_given_up_when_the_remote_renames_a_table_meanwhile(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch, goes_back: bool
) -> None:
    far.remote.namespaces["ns", "deep"] = {}
    far.remote.tables[ELSEWHERE] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)
    listed, loaded = far.remote.list_tables, far.remote.load_table

    async def list_tables(namespace: tuple[str, ...], **more: Any) -> Any:
        # Out of the namespace that is listed next, into the one that was listed.
        page = await listed(namespace, **more)
        if namespace == NS and ELSEWHERE in far.remote.tables:
            far.remote.tables[OLD] = far.remote.tables.pop(ELSEWHERE)
        return page

    async def load_table(name: Identifier, *known: Any) -> Any:
        if goes_back and OLD in far.remote.tables:
            far.remote.tables[ELSEWHERE] = far.remote.tables.pop(OLD)
            monkeypatch.undo()
        return await loaded(name, *known)

    monkeypatch.setattr(far.remote, "list_tables", list_tables)
    monkeypatch.setattr(far.remote, "load_table", load_table)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await forget(far)
    monkeypatch.undo()

    assert await waits(far) == [("uuid", FIRST_UUID)]
    name = ELSEWHERE if goes_back else OLD
    assert await load(far, ann, name) is not None


async def test_nothing_is_given_up_when_two_tables_change_places_meanwhile(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.remote.tables[OLD] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)
    loaded, names = far.remote.load_table, list[Identifier]()

    async def load_table(name: Identifier, *known: Any) -> Any:
        found = await loaded(name, *known)
        names.append(name)
        if len(names) == 1 and name == T:
            far.remote.tables[T], far.remote.tables[OLD] = far.remote.tables[OLD], far.remote.tables[T]
        return found

    # One after the other, the table that took the place first.
    monkeypatch.setattr(forgetting, "_AT_ONCE", 1)
    monkeypatch.setattr(forgetting, "_list_all", lambda *_: as_listed(T, OLD))
    monkeypatch.setattr(far.remote, "load_table", load_table)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await forget(far)

    assert await waits(far) == [("uuid", FIRST_UUID)]


async def as_listed(*names: Identifier) -> list[Identifier]:
    return [*names]


async def test_a_table_that_is_listed_and_hidden_may_be_the_one(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.remote.tables[OLD] = far.remote.tables.pop(T)
    await rebuild(far, OTHER_UUID)
    loaded = far.remote.load_table

    async def hidden(name: Identifier, *known: Any) -> Any:
        if name == OLD:
            raise NoSuchTable(str(name))
        return await loaded(name, *known)

    monkeypatch.setattr(far.remote, "load_table", hidden)
    with pytest.raises(Conflict, match="cannot be read"):
        await forget(far)


async def test_what_was_left_while_the_remote_was_asked_stays(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rebuild(far, OTHER_UUID)
    listed, is_first = far.remote.list_namespaces, True

    async def list_namespaces(*given: Any, **more: Any) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            await rebuild(far, THIRD_UUID)
        return await listed(*given, **more)

    monkeypatch.setattr(far.remote, "list_namespaces", list_namespaces)
    assert await forget(far) == (1, 0)

    assert await waits(far) == [("uuid", OTHER_UUID)]


async def test_too_many_tables_to_be_sure_give_up_nothing(
    far: Far, ann: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rebuild(far, OTHER_UUID)
    monkeypatch.setattr(forgetting, "MOST_TABLES", 1)
    far.put(OLD, at="other", uuid=THIRD_UUID)

    with pytest.raises(Conflict, match="more tables"):
        await forget(far)
    assert await waits(far) == [("uuid", FIRST_UUID)]


async def test_a_namespaces_filter_waits_for_a_table_of_it_that_is_elsewhere(far: Far) -> None:
    far.put(uuid=FIRST_UUID)
    await far.see()
    kind, content = CONTENTS[FILTER]
    text = msgspec.json.encode({"enable": True, **content}).decode()
    await create_policy(far.catalog, ROOT, CreatePolicy(FILTER, kind, text))
    await attach_policy(far.catalog, ROOT, FILTER, AttachTo("namespace", NS))
    ann = await add_reader(far)
    before = await load(far, ann)
    gone = Identifier(("other",), "orders")
    far.remote.namespaces["other",] = {}
    far.remote.tables[gone] = far.remote.tables.pop(T)
    await far.federation.see_table(far.catalog, ROOT, T, is_fresh=True)
    assert ("uuid", FIRST_UUID) in await waits(far)

    assert await forget(far) == (0, 1)

    assert await load(far, ann, gone) == before
    far.remote.tables.clear()
    await far.federation.see_table(far.catalog, ROOT, gone, is_fresh=True)
    assert (await forget(far))[0] == 1


async def test_it_is_for_who_reconciles(far: Far, ann: Caller) -> None:
    bob = await far.people.add("bob", far.catalog, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    asked = len(far.remote.asked)

    for who in (ann, bob):
        with pytest.raises(AccessDenied):
            await forget(far, who)
        with pytest.raises(AccessDenied):
            await list_waiting(far.catalog, who)
    assert len(far.remote.asked) == asked


async def test_not_while_the_catalog_is_moved(far: Far, ann: Caller) -> None:
    await rebuild(far, OTHER_UUID)
    await migrate(far.directory, far.federation.clients, far.catalog, ROOT, Step(name="begin"))

    with pytest.raises(BeingMoved):
        await forget(far)
    assert await waits(far) == [("uuid", FIRST_UUID)]


async def test_many_entries_are_told_page_by_page_and_given_up_together(far: Far, ann: Caller) -> None:
    for number in range(12):
        await rebuild(far, f"{number:08}-2222-4333-8444-555555555555")
    told = await list_waiting(far.catalog, ROOT, size=5)
    pages = [len(told.entries)]
    while told.next_token is not None:
        told = await list_waiting(far.catalog, ROOT, size=5, token=told.next_token)
        pages.append(len(told.entries))

    assert pages == [5, 5, 2]
    assert told.entries[0].policies == (str(FILTER),)
    assert await forget(far) == (12, 0)
    with pytest.raises(CynosureError):
        await list_waiting(far.catalog, ROOT, token="x")
