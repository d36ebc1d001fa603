"""A migration that is cut off, given up, or done by two at the same time.

Holds I122.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from cynosure.catalog.errors import TableExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_table import load_table
from cynosure.client.migration import Choices
from cynosure.common.errors import BadInput, Conflict, OutcomeUnknown
from cynosure.federation.errors import RemoteUnavailable
from cynosure.testing.small_catalog import ROOT
from tests.federation.migration.moving import Killed, U, ask, fill, load_version, migration, open_again
from tests.federation.seen_world import NS, OTHER_UUID, Far, T, answer_of

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("count", range(16, 40))
async def test_killed_before_any_request_to_the_remote_it_goes_on(
    far: Far, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    fill(far)
    await far.see()
    before, left = await far.id_of(), count
    ask_remote = far.remote._ask

    async def killed(what: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        await ask_remote(what)

    monkeypatch.setattr(far.remote, "_ask", killed)
    try:
        await migration(far).move(Choices())
    except Killed:
        await open_again(far)
        assert far.catalog.entity.kind == "EXTERNAL"
    moved = await migration(far).move(Choices())
    await open_again(far)

    assert moved.phase == "done"
    assert far.remote.tables == {}
    assert await far.id_of() == before
    assert await load_version(far, U) == "v1"
    assert await far.disagreements() == []


@pytest.mark.parametrize("did", ["rename-table", "drop-table"])
async def test_killed_when_the_remote_has_done_it_and_nobody_knows_it_goes_on(
    far: Far, monkeypatch: pytest.MonkeyPatch, did: str
) -> None:
    fill(far)
    method = did.replace("-", "_")
    do = getattr(far.remote, method)

    async def unheard(*given: Any, **named: Any) -> None:
        await do(*given, **named)
        monkeypatch.undo()
        raise Killed

    monkeypatch.setattr(far.remote, method, unheard)
    with pytest.raises(Killed):
        await migration(far).move(Choices())
    assert (await ask(far, {"step": "status"})).phase == ("taking" if did == "rename-table" else "releasing")
    moved = await migration(far).move(Choices())
    await open_again(far)

    assert moved.phase == "done"
    assert far.remote.tables == {}
    assert (await load_version(far), await load_version(far, U)) == ("v1", "v1")


async def test_given_up_everything_is_at_the_remote_as_it_was(far: Far) -> None:
    fill(far)
    there = dict(far.remote.tables)
    await ask(far, {"step": "begin"})
    for namespace, kind in (((), "namespace"), (NS, "namespace"), (NS, "table"), (U.namespace, "table")):
        await ask(far, {"step": "take", "type": kind, "namespace": namespace})
    assert not set(there) & set(far.remote.tables)

    cancelled = await migration(far).cancel()

    assert cancelled.phase == "none"
    assert far.remote.tables == there
    await far.see()
    assert await load_version(far) == "v1"


async def test_it_is_not_given_up_once_something_was_dropped_there(far: Far) -> None:
    far.put()
    await ask(far, {"step": "begin"})
    await ask(far, {"step": "take", "type": "table", "namespace": NS})
    await ask(far, {"step": "release"})

    with pytest.raises(Conflict):
        await ask(far, {"step": "cancel"})


async def test_a_remote_that_does_not_answer_stops_it_and_nothing_is_given_up(far: Far) -> None:
    fill(far)
    await far.see()
    await ask(far, {"step": "begin"})
    far.remote.is_down = True

    with pytest.raises(RemoteUnavailable):
        await ask(far, {"step": "settle"})
    assert await load_version(far) == "v1"


async def test_what_is_set_aside_while_somebody_gives_up_gets_its_name_back(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    await ask(far, {"step": "begin"})
    rename = far.remote.rename_table

    async def overtaken(source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        monkeypatch.undo()
        assert (await migration(far).cancel()).phase == "none"
        await rename(source, target, key=key)

    monkeypatch.setattr(far.remote, "rename_table", overtaken)
    told = await ask(far, {"step": "take", "type": "table", "namespace": NS})

    assert [each.outcome for each in told.objects] == ["obstacle"]
    assert list(far.remote.tables) == [T]


async def test_who_moves_it_at_the_same_time_and_falls_behind_gives_nothing_up(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(far)
    await ask(far, {"step": "begin"})
    rename = far.remote.rename_table

    async def overtaken(source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        monkeypatch.undo()
        assert (await migration(far).move(Choices())).phase == "done"
        await rename(source, target, key=key)

    monkeypatch.setattr(far.remote, "rename_table", overtaken)
    told = await ask(far, {"step": "take", "type": "table", "namespace": NS})
    await open_again(far)

    assert [each.outcome for each in told.objects] == ["obstacle"]
    assert await load_version(far) == "v1"


async def test_who_looked_before_another_took_it_does_not_begin_anew(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    await ask(far, {"step": "begin"})
    load = far.remote.load_table

    async def overtaken(table: Identifier, known: Any = None) -> Any:
        monkeypatch.undo()
        found = await load(table, known)
        far.put(name="v2")
        assert (await migration(far).move(Choices())).phase == "done"
        return found

    monkeypatch.setattr(far.remote, "load_table", overtaken)
    told = await ask(far, {"step": "take", "type": "table", "namespace": NS})
    await open_again(far)

    assert [each.outcome for each in told.objects] == ["obstacle"]
    assert await load_version(far) == "v2"


async def test_killed_while_it_is_given_up_it_goes_on_either_way(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    there = dict(far.remote.tables)
    await ask(far, {"step": "begin"})
    await ask(far, {"step": "take", "type": "table", "namespace": NS})
    rename = far.remote.rename_table

    async def unheard(*given: Any, **named: Any) -> None:
        await rename(*given, **named)
        monkeypatch.undo()
        raise Killed

    monkeypatch.setattr(far.remote, "rename_table", unheard)
    with pytest.raises(Killed):
        await ask(far, {"step": "cancel"})
    with pytest.raises(Conflict):
        await ask(far, {"step": "release"})

    assert far.remote.tables == there
    moved = await migration(far).move(Choices())
    assert (moved.phase, far.remote.tables) == ("done", {})


async def test_who_gives_up_late_does_not_give_a_name_back_that_was_taken_again(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    await ask(far, {"step": "begin"})
    await ask(far, {"step": "take", "type": "table", "namespace": NS})
    load = far.remote.load_table

    async def overtaken(table: Identifier, known: Any = None) -> Any:
        # Between what is written down and the rename: others give up, and begin anew.
        monkeypatch.undo()
        assert (await migration(far).cancel()).phase == "none"
        assert list(far.remote.tables) == [T]
        await ask(far, {"step": "begin", "keepRemote": True})
        await ask(far, {"step": "take", "type": "table", "namespace": NS})
        return await load(table, known)

    monkeypatch.setattr(far.remote, "load_table", overtaken)
    with suppress(Conflict):
        await ask(far, {"step": "cancel"})

    assert T not in far.remote.tables
    assert (await migration(far).move(Choices(keep_remote=True))).phase == "done"


async def test_who_sets_aside_late_takes_nothing_that_was_taken_again(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = far.put()
    await ask(far, {"step": "begin"})
    rename = far.remote.rename_table

    async def overtaken(source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        monkeypatch.undo()
        assert (await migration(far).cancel()).phase == "none"
        await ask(far, {"step": "begin"})
        await ask(far, {"step": "take", "type": "table", "namespace": NS})
        far.put(at="anew", uuid=OTHER_UUID)
        await rename(source, target, key=key)

    monkeypatch.setattr(far.remote, "rename_table", overtaken)
    await ask(far, {"step": "take", "type": "table", "namespace": NS})

    assert far.remote.tables[T].uuid == OTHER_UUID
    assert (await migration(far).move(Choices(leave_behind=True))).phase == "done"
    await open_again(far)
    assert answer_of(await load_table(far.catalog, ROOT, T))["table-uuid"] == first.uuid


@pytest.mark.parametrize("is_killed", [True, False])
async def test_a_rename_that_was_done_by_half_is_told_and_nothing_has_two_owners(
    far: Far, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """As Glue does it: the new name, then the end of the old one."""
    far.put()

    async def rename_by_half(source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        if target in far.remote.tables:
            raise TableExists(str(target))
        far.remote.tables[target] = far.remote.tables[source]
        raise Killed if is_killed else OutcomeUnknown("Cut off between its two steps")

    monkeypatch.setattr(far.remote, "rename_table", rename_by_half)
    with suppress(Killed):
        await migration(far).move(Choices())
    stopped = await migration(far).move(Choices())

    ((aside, _),) = [each for each in far.remote.tables.items() if each[0] != T]
    assert (stopped.phase, [each.path for each in stopped.obstacles]) == ("taking", [("ns", "orders")])
    assert str(aside) in stopped.obstacles[0].reason
    monkeypatch.undo()
    del far.remote.tables[aside]
    assert (await migration(far).move(Choices())).phase == "done"
    assert far.remote.tables == {}


async def test_what_cannot_get_its_name_back_is_told_with_the_other_one(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.put()
    load = far.remote.load_table

    async def refused(table: Identifier, known: Any = None) -> Any:
        if table in far.remote.tables and table != T:
            # Somebody has used the name since.
            far.put(at="anew", uuid=OTHER_UUID)
            raise BadInput("It cannot be shown any more", field="location", fix="Move it.")
        return await load(table, known)

    monkeypatch.setattr(far.remote, "load_table", refused)
    moved = await migration(far).move(Choices(leave_behind=True))

    ((aside, _),) = [each for each in far.remote.tables.items() if each[0] != T]
    (told,) = [each for each in moved.objects if each.type == "table"]
    assert (told.outcome, str(aside) in told.reason) == ("left-behind", True)


@pytest.mark.parametrize("keeps_remote", [False, True])
async def test_what_somebody_brings_back_at_the_remote_stops_it(far: Far, keeps_remote: bool) -> None:
    far.put()
    await ask(far, {"step": "begin", "keepRemote": keeps_remote})
    await ask(far, {"step": "take", "type": "table", "namespace": NS})
    ((aside, table),) = far.remote.tables.items()
    await ask(far, {"step": "settle"})

    def bring_back(step: Mapping[str, Any]) -> None:
        if step["step"] == "release" and aside in far.remote.tables:
            far.remote.tables = {T: table}

    stopped = await migration(far, bring_back).move(Choices())
    assert (stopped.phase, [each.path for each in stopped.obstacles]) == ("releasing", [("ns", "orders")])
    del far.remote.tables[T]
    assert (await migration(far).move(Choices())).phase == "done"
