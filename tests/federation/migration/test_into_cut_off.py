"""A migration into another catalog, cut off between any two commits, goes on; nothing has two owners.

Holds I123.
"""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from msgspec import structs

from cynosure.auth.committing import commit_part
from cynosure.catalog.adopting import Adopted, find_adopted, reserving
from cynosure.catalog.claims import Claimed
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.common.errors import Conflict
from cynosure.federation.migration import finish as finishing
from cynosure.persistence.commit import Committer, Prepared, View
from cynosure.persistence.index import decode_key
from cynosure.persistence.spi import CatalogId
from cynosure.testing.small_catalog import ROOT
from tests.federation.migration.into_world import OURS, STAYS, Two, V, make_catalog
from tests.federation.migration.moving import Killed, U, ask, migration
from tests.federation.seen_world import NS, OTHER_UUID, Far, T

pytestmark = pytest.mark.anyio

COMMITS = 23
"""Of a migration of these two, in all three chains: the last one ends it."""
CHOSEN = structs.replace(OURS, tables=(("ns", "orders"), ("ns", "recent")))


@pytest.fixture
async def two(far: Far) -> Two:
    """Tables and a view at the remote, and a catalog to move them into."""
    made = Two(far)
    await make_catalog(far)
    await made.fill()
    await made.put_view()
    return made


def kill_at(monkeypatch: pytest.MonkeyPatch, count: int, *, is_after: bool) -> None:
    """End the process before or after its commit of this number."""
    commit, left = Committer.commit, count

    async def killed(self: Committer, request: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and not is_after:
            raise Killed
        outcome = await commit(self, request)
        if left == 0:
            raise Killed
        return outcome

    monkeypatch.setattr(Committer, "commit", killed)


async def count_owners(two: Two, table: Identifier) -> int:
    """Who could change the table now: the remote under its name, and the catalog that gets it."""
    try:
        await two.load(table)
    except NoSuchTable:
        return int(table in two.far.remote.tables)
    return 1 + (table in two.far.remote.tables)


async def find_on_the_way(two: Two) -> list[bytes]:
    """What is written down of a migration that is not over."""
    entries = await (await (await two.open("far")).read()).scan("moving", limit=10)
    return [key for key, _ in entries if decode_key(key)[0] != "given"]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("count", range(1, COMMITS + 1))
async def test_killed_at_any_commit_it_goes_on(
    two: Two, monkeypatch: pytest.MonkeyPatch, count: int, is_after: bool
) -> None:
    kill_at(monkeypatch, count, is_after=is_after)
    with pytest.raises(Killed):
        await migration(two.far).move(CHOSEN)
    monkeypatch.undo()
    assert await two.disagreements() == []
    assert await count_owners(two, T) <= 1

    moved = await migration(two.far).move(CHOSEN)

    assert (moved.phase, moved.obstacles) == ("done", [])
    assert (set(two.far.remote.tables), two.far.remote.views) == ({U, STAYS}, {})
    assert await count_owners(two, T) == 1
    await two.commit()
    assert await two.disagreements() == []
    state = await (await two.open()).read()
    assert await state.scan("adopting", limit=1) == []
    assert await find_on_the_way(two) == []
    commits = await two.count_commits()
    again = await migration(two.far).move(CHOSEN)
    assert (again.phase, again.obstacles) == ("done", [])
    told = {each.path: (each.outcome, each.reason[:9]) for each in again.objects if each.type != "namespace"}
    assert told == {("ns", "orders"): ("there", "moved on "), ("ns", "recent"): ("there", "moved on ")}
    assert await two.count_commits() == commits


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("count", range(1, 10))
async def test_killed_at_any_commit_of_giving_up_it_is_given_up(
    two: Two, monkeypatch: pytest.MonkeyPatch, count: int, is_after: bool
) -> None:
    there = dict(two.far.remote.tables)
    await two.prepare_giving(T, U)
    kill_at(monkeypatch, count, is_after=is_after)
    with suppress(Killed):
        await migration(two.far).cancel()
    monkeypatch.undo()

    if (await ask(two.far, {"step": "status"})).phase != "none":
        assert (await migration(two.far).cancel()).phase == "none"

    assert two.far.remote.tables == there
    assert await (await (await two.open()).read()).scan("adopting", limit=1) == []
    assert await two.disagreements() == []


@pytest.mark.parametrize("does", ["drop", "rename"])
async def test_what_became_of_a_table_in_the_other_catalog_does_not_bring_it_back(
    two: Two, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})
    kill_at(monkeypatch, 1, is_after=True)
    with pytest.raises(Killed):
        await ask(two.far, {"step": "give"})
    monkeypatch.undo()
    ours = await two.open()
    if does == "drop":
        await drop_table(ours, ROOT, T)
    else:
        await rename_table(ours, ROOT, T, Identifier(NS, "renamed"))

    assert (await migration(two.far).move(OURS)).phase == "done"

    with pytest.raises(NoSuchTable):
        await two.load()
    assert await two.disagreements() == []


async def test_what_another_catalog_has_reserved_under_the_name_since_stays_its_own(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})
    kill_at(monkeypatch, 1, is_after=True)
    with pytest.raises(Killed):
        await ask(two.far, {"step": "give"})
    monkeypatch.undo()
    ours = await two.open()
    await rename_table(ours, ROOT, T, Identifier(NS, "renamed"))
    entity_id = ours.shared.persistence.ids.next()
    theirs = Adopted(entity_id, OTHER_UUID, CatalogId("another"), f"{ours.base.text}/theirs")

    async def reserve(view: View) -> Prepared[None]:
        return Prepared(None, reserving(table_key(T), theirs, Claimed((), {})))

    await commit_part(ours.committer, ROOT, "adopt-tables", reserve)
    assert (await migration(two.far).move(OURS)).phase == "done"

    assert await find_adopted(await (await two.open()).read(), table_key(T)) == theirs
    with pytest.raises(NoSuchTable):
        await two.load()


async def test_two_who_move_it_at_the_same_time_do_it_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, is_first = Committer.commit, True

    async def overtaken(self: Committer, request: Any) -> Any:
        nonlocal is_first
        if is_first and request.operation == "adopt-tables":
            is_first = False
            assert (await migration(two.far).move(OURS)).phase == "done"
        return await commit(self, request)

    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})
    monkeypatch.setattr(Committer, "commit", overtaken)
    with pytest.raises(Conflict, match="given up"):
        await ask(two.far, {"step": "give"})

    assert await count_owners(two, T) == 1
    assert V in two.far.remote.views
    assert await two.disagreements() == []


async def test_a_catalog_that_is_gone_before_it_knew_does_not_keep_the_other_from_giving_up(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at(monkeypatch, 1, is_after=True)
    with pytest.raises(Killed):
        await ask(two.far, {"step": "begin", "into": "ours"})
    monkeypatch.undo()
    await drop_catalog(two.far.directory, ROOT, "ours")

    with pytest.raises(Conflict, match="is gone"):
        await ask(two.far, {"step": "take"})
    assert (await migration(two.far).cancel()).phase == "none"


async def test_a_mark_that_comes_when_it_was_given_up_is_taken_away(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, is_first = Committer.commit, True

    async def overtaken(self: Committer, request: Any) -> Any:
        nonlocal is_first
        if is_first and request.operation == "adopt-tables":
            is_first = False
            assert (await migration(two.far).cancel()).phase == "none"
        return await commit(self, request)

    monkeypatch.setattr(Committer, "commit", overtaken)
    with pytest.raises(Conflict, match="given up"):
        await ask(two.far, {"step": "begin", "into": "ours"})

    assert await (await (await two.open()).read()).scan("adopting", limit=1) == []


async def test_nothing_is_set_aside_for_a_migration_that_is_being_given_up(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = dict(two.far.remote.tables)
    await ask(two.far, {"step": "begin", "into": "ours", "tables": (("ns", "orders"),)})
    load = two.far.remote.load_table

    async def overtaken(*given: Any, **named: Any) -> Any:
        monkeypatch.undo()
        with pytest.MonkeyPatch.context() as inner:
            kill_at(inner, 1, is_after=True)
            with pytest.raises(Killed):
                await ask(two.far, {"step": "cancel"})
        return await load(*given, **named)

    monkeypatch.setattr(two.far.remote, "load_table", overtaken)
    told = await ask(two.far, {"step": "take", "type": "table", "namespace": NS})

    assert [each.outcome for each in told.objects] == ["obstacle"]
    assert (await ask(two.far, {"step": "status"})).phase == "ending"
    for step in ("begin", "take", "settle", "cede"):
        with pytest.raises(Conflict, match="being given up"):
            await ask(two.far, {"step": step})
    assert (await migration(two.far).cancel()).phase == "none"
    assert two.far.remote.tables == there


async def test_many_who_move_it_at_once_do_it_once(two: Two) -> None:
    done = await asyncio.gather(*(migration(two.far).move(OURS) for _ in range(3)), return_exceptions=True)
    assert not [each for each in done if isinstance(each, BaseException) and not isinstance(each, Conflict)]
    if (await ask(two.far, {"step": "status"})).phase != "none":
        assert (await migration(two.far).move(OURS)).phase == "done"

    for table in (T, U, STAYS):
        assert await count_owners(two, table) == 1
    assert await two.disagreements() == []
    assert await (await (await two.open()).read()).scan("adopting", limit=1) == []


async def test_who_releases_when_another_comes_to_the_end_leaves_nothing_behind(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, clear = Committer.commit, finishing.clear_target
    is_dropped, goes_on = asyncio.Event(), asyncio.Event()

    async def late(self: Committer, request: Any) -> Any:
        if not is_dropped.is_set() and two.far.remote.tables.keys() == {U, STAYS}:
            # The remote has dropped the table, and nobody has written that down yet.
            is_dropped.set()
            await goes_on.wait()
        return await commit(self, request)

    async def clear_when_released(*given: Any) -> None:
        goes_on.set()
        await first
        await clear(*given)

    await two.prepare_giving(T)
    for step in ("cede", "give"):
        await ask(two.far, {"step": step})
    monkeypatch.setattr(Committer, "commit", late)
    monkeypatch.setattr(finishing, "clear_target", clear_when_released)
    first = asyncio.create_task(ask(two.far, {"step": "release"}))
    await is_dropped.wait()
    await ask(two.far, {"step": "release"})
    await ask(two.far, {"step": "finish"})

    assert await find_on_the_way(two) == []
