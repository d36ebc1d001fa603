"""Lost answers, repeated requests, and processes that die between the remote and the mirror (I117)."""

import json
import uuid
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.request_key import Overtaken, Refused
from cynosure.catalog.errors import NoSuchTable, TableExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.replace_view import ViewChange
from cynosure.catalog.operations.update_namespace_properties import PropertiesUpdate
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import OutcomeUnknown
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.writes.asked import INDEX
from cynosure.iceberg.views import decode_view_updates
from cynosure.testing.remote_samples import version_of
from cynosure.testing.small_catalog import ROOT
from tests.catalog.external import write_metadata
from tests.federation.seen_world import NS, T, answer_of
from tests.federation.writes.changes import (
    SNAPSHOT,
    Keyed,
    Passing,
    appending,
    creation,
    make_namespace,
    make_table,
    put_view_file,
    setting,
    view_creation,
)
from tests.federation.writes.losing_remote import Killed

pytestmark = pytest.mark.anyio
U = Identifier(NS, "other")
V = Identifier(NS, "v")
BELOW = (*NS, "below")


class Change(NamedTuple):
    """One kind of change, on a namespace with a table and a view."""

    ask: Callable[[Passing, Caller], Awaitable[object]]
    is_there: Callable[[Passing], bool]
    method: str
    is_found: bool = True
    """Whether looking at a remote without keys tells that it was done."""


def replacement() -> ViewChange:
    updates = [
        {"action": "add-view-version", "view-version": version_of("SELECT 2 AS id", 2)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    return ViewChange(V, [], decode_view_updates(json.dumps(updates).encode()))


def forced(here: Passing) -> TableChange:
    """An append wherever the branch is by then."""
    return structs.replace(appending(here.remote.tables[T].metadata.location), requirements=())


def staged(here: Passing) -> TableChange:
    """An append that moves no branch (write-audit-publish), so its own success breaks no requirement."""
    append = appending(here.remote.tables[T].metadata.location)
    return structs.replace(append, updates=append.updates[:1])


def file_of(here: Passing) -> str:
    return f"{here.far.catalog.base.text}/taken/metadata/v1.metadata.json"


def view_file_of(here: Passing) -> str:
    return f"{here.far.catalog.base.text}/view/metadata/v1.metadata.json"


CHANGES = {
    "create namespace": Change(
        lambda here, caller: here.writes.create_namespace(here.far.catalog, caller, BELOW, {"a": "b"}),
        lambda here: BELOW in here.remote.namespaces,
        "create_namespace",
    ),
    "update namespace": Change(
        lambda here, caller: here.writes.update_namespace_properties(
            here.far.catalog, caller, NS, PropertiesUpdate((), {"a": "b"})
        ),
        lambda here: here.remote.namespaces[NS].get("a") == "b",
        "update_namespace",
        is_found=False,
    ),
    "drop namespace": Change(
        lambda here, caller: here.writes.drop_namespace(here.far.catalog, caller, ("empty",)),
        lambda here: ("empty",) not in here.remote.namespaces,
        "drop_namespace",
    ),
    "create table": Change(
        lambda here, caller: here.writes.create_table(here.far.catalog, caller, creation(U)),
        lambda here: U in here.remote.tables,
        "create_table",
    ),
    "register table": Change(
        lambda here, caller: here.writes.register_table(here.far.catalog, caller, U, file_of(here)),
        lambda here: U in here.remote.tables,
        "register_table",
    ),
    "append": Change(
        lambda here, caller: here.writes.commit_table(
            here.far.catalog, caller, appending(here.remote.tables[T].metadata.location)
        ),
        lambda here: here.remote.tables[T].metadata.current_snapshot_id is not None,
        "commit_table",
    ),
    "append without ref requirement": Change(
        lambda here, caller: here.writes.commit_table(here.far.catalog, caller, forced(here)),
        lambda here: here.remote.tables[T].metadata.current_snapshot_id is not None,
        "commit_table",
    ),
    "staged append": Change(
        lambda here, caller: here.writes.commit_table(here.far.catalog, caller, staged(here)),
        lambda here: SNAPSHOT in here.remote.tables[T].metadata.snapshots,
        "commit_table",
    ),
    "set properties": Change(
        lambda here, caller: here.writes.commit_table(here.far.catalog, caller, setting(a="b")),
        lambda here: here.remote.tables[T].metadata.properties.get("a") == "b",
        "commit_table",
    ),
    "transaction": Change(
        lambda here, caller: here.writes.commit_transaction(
            here.far.catalog, caller, [appending(here.remote.tables[T].metadata.location)]
        ),
        lambda here: here.remote.tables[T].metadata.current_snapshot_id is not None,
        "commit_transaction",
    ),
    "drop table": Change(
        lambda here, caller: here.writes.drop_table(here.far.catalog, caller, T),
        lambda here: T not in here.remote.tables,
        "drop_table",
    ),
    "rename table": Change(
        lambda here, caller: here.writes.rename_table(here.far.catalog, caller, T, U),
        lambda here: U in here.remote.tables,
        "rename_table",
    ),
    "create view": Change(
        lambda here, caller: here.writes.create_view(
            here.far.catalog, caller, view_creation(Identifier(NS, "w"))
        ),
        lambda here: Identifier(NS, "w") in here.remote.views,
        "create_view",
    ),
    "register view": Change(
        lambda here, caller: here.writes.register_view(here.far.catalog, caller, U, view_file_of(here)),
        lambda here: U in here.remote.views,
        "register_view",
    ),
    "replace view": Change(
        lambda here, caller: here.writes.replace_view(here.far.catalog, caller, replacement()),
        lambda here: len(here.remote.views[V].metadata.versions) == 2,
        "commit_view",
        is_found=False,
    ),
    "drop view": Change(
        lambda here, caller: here.writes.drop_view(here.far.catalog, caller, V),
        lambda here: V not in here.remote.views,
        "drop_view",
    ),
    "rename view": Change(
        lambda here, caller: here.writes.rename_view(here.far.catalog, caller, V, U),
        lambda here: U in here.remote.views,
        "rename_view",
    ),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))


async def prepare(here: Passing) -> None:
    await make_table(here)
    await here.writes.create_view(here.far.catalog, ROOT, view_creation(V))
    await here.writes.create_namespace(here.far.catalog, ROOT, ("empty",), {})
    assert await write_metadata(here.far.catalog, at="taken") == file_of(here)
    here.remote.files[file_of(here)] = here.far.metadata("taken")
    assert await put_view_file(here) == view_file_of(here)
    here.remote.done.clear()


async def count_asked(here: Passing) -> int:
    return len(await (await here.far.catalog.read()).scan(INDEX, limit=10))


@each_change
async def test_an_answer_that_is_lost_is_found_by_looking(here: Passing, change: Change) -> None:
    await prepare(here)
    here.remote.lost = ["after"]

    if change.is_found:
        await change.ask(here, ROOT)
    else:
        with pytest.raises(OutcomeUnknown):
            await change.ask(here, ROOT)
    assert change.is_there(here)
    assert here.remote.done == [change.method]
    assert await here.far.disagreements() == []


@each_change
async def test_a_question_that_is_lost_stays_unknown(here: Passing, change: Change) -> None:
    await prepare(here)
    here.remote.lost = ["before"]

    with pytest.raises(OutcomeUnknown):
        await change.ask(here, ROOT)
    assert not change.is_there(here)


@each_change
@pytest.mark.parametrize("fate", ["before", "after"])
async def test_with_keys_a_lost_answer_is_asked_for_again(keyed: Passing, change: Change, fate: str) -> None:
    await prepare(keyed)
    keyed.remote.lost = [fate]

    await change.ask(keyed, ROOT)

    assert change.is_there(keyed)
    assert keyed.remote.done == [change.method]


@each_change
async def test_a_death_behind_the_remote_is_one_effect_with_keys(keyed: Passing, change: Change) -> None:
    await prepare(keyed)
    keyed.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await change.ask(keyed, request.first())

    await change.ask(keyed, request.again())
    await change.ask(keyed, request.again())

    assert change.is_there(keyed)
    assert keyed.remote.done == [change.method]
    assert await keyed.far.disagreements() == []


HARMLESS = ("update namespace", "replace view", "set properties")
"""What can be done twice without a difference: the same properties, the same version of a view."""


@pytest.mark.parametrize("name", CHANGES)
async def test_what_was_done_is_not_refused_by_a_remote_that_forgets_keys(
    forgetful: Passing, name: str
) -> None:
    change = CHANGES[name]
    await prepare(forgetful)
    forgetful.remote.lost = ["after"]

    await change.ask(forgetful, ROOT)

    assert change.is_there(forgetful)
    assert forgetful.remote.done == [change.method] * (2 if name in HARMLESS else 1)
    assert await forgetful.far.disagreements() == []


@pytest.mark.parametrize("name", CHANGES)
async def test_a_death_behind_a_remote_that_forgets_keys_is_one_effect(forgetful: Passing, name: str) -> None:
    change = CHANGES[name]
    await prepare(forgetful)
    forgetful.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await change.ask(forgetful, request.first())

    await change.ask(forgetful, request.again())
    await change.ask(forgetful, request.again())

    assert change.is_there(forgetful)
    assert len(forgetful.remote.done) == 1 or name in HARMLESS
    assert await count_asked(forgetful) == 0
    assert await forgetful.far.disagreements() == []


async def test_a_refusal_by_a_remote_that_forgets_keys_is_believed_when_it_has_not_done_it(
    forgetful: Passing,
) -> None:
    await prepare(forgetful)
    stale = appending(forgetful.remote.tables[T].metadata.location)
    await forgetful.remote.drop_table(T, is_purge=False)
    forgetful.remote.done.clear()
    forgetful.remote.lost = ["before"]

    with pytest.raises(NoSuchTable):
        await forgetful.writes.commit_table(forgetful.far.catalog, ROOT, stale)
    assert forgetful.remote.done == []


@each_change
async def test_a_death_behind_the_remote_is_one_effect_without_keys(here: Passing, change: Change) -> None:
    await prepare(here)
    here.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await change.ask(here, request.first())
    assert await count_asked(here) == 1

    if change.is_found:
        await change.ask(here, request.again())
        assert await count_asked(here) == 0
        await change.ask(here, request.again())
    else:
        with pytest.raises(OutcomeUnknown):
            await change.ask(here, request.again())
    assert change.is_there(here)
    assert here.remote.done == [change.method]
    assert await here.far.disagreements() == []


@each_change
async def test_what_may_have_been_done_before_is_not_told_as_not_done_by_a_remote_that_is_down(
    here: Passing, change: Change
) -> None:
    await prepare(here)
    here.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await change.ask(here, request.first())

    here.remote.is_down = True
    with pytest.raises(OutcomeUnknown):
        await change.ask(here, request.again())
    here.remote.is_down = False

    if change.is_found:
        await change.ask(here, request.again())
    assert here.remote.done == [change.method]


@each_change
async def test_a_repeated_request_is_recalled_and_not_asked_for(here: Passing, change: Change) -> None:
    await prepare(here)
    request = Keyed()
    first = await change.ask(here, request.first())
    asked = len(here.remote.asked)

    caller = request.again()
    again = await change.ask(here, caller)

    assert caller.key is not None
    assert caller.key.is_recalled
    assert len(here.remote.asked) == asked
    assert type(again) is type(first)


@each_change
async def test_what_certainly_was_not_done_can_be_asked_for_again(here: Passing, change: Change) -> None:
    await prepare(here)
    request = Keyed()
    here.remote.is_down = True
    with pytest.raises(RemoteUnavailable):
        await change.ask(here, request.first())
    here.remote.is_down = False

    await change.ask(here, request.again())

    assert change.is_there(here)
    assert here.remote.done == [change.method]


LOOKED_AT = [name for name in CHANGES if name not in ("drop namespace", *HARMLESS)]
"""What is asked for again when the remote, looked at, has not done it, and cannot be done twice."""


@pytest.mark.parametrize("name", LOOKED_AT)
async def test_what_an_earlier_attempt_does_late_is_no_reason_to_refuse(here: Passing, name: str) -> None:
    change = CHANGES[name]
    await prepare(here)
    here.remote.lost = ["before", "overtaken"]
    request = Keyed()
    with pytest.raises(OutcomeUnknown):
        await change.ask(here, request.first())

    await change.ask(here, request.again())

    assert change.is_there(here)
    assert here.remote.done == [change.method]
    assert await count_asked(here) == 0


@pytest.mark.parametrize("name", [name for name in CHANGES if CHANGES[name].is_found])
async def test_what_was_done_is_not_refused_whatever_the_second_question_is_answered(
    keyed: Passing, name: str
) -> None:
    change = CHANGES[name]
    await prepare(keyed)
    keyed.remote.lost = ["after", "refused"]

    await change.ask(keyed, ROOT)

    assert change.is_there(keyed)
    assert keyed.remote.done == [change.method]


async def test_a_rename_that_was_done_by_half_is_not_told_as_done(
    here: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepare(here)

    async def rename_by_half(source: Identifier, target: Identifier) -> None:
        here.remote.tables[target] = here.remote.tables[source]
        raise OutcomeUnknown("Cut off between its two steps")

    monkeypatch.setattr(here.remote, "rename_table", rename_by_half)
    with pytest.raises(OutcomeUnknown):
        await here.writes.rename_table(here.far.catalog, ROOT, T, U)

    await load_table(here.far.catalog, ROOT, T)
    assert await here.far.disagreements() == []


async def test_a_drop_is_not_repeated_on_what_was_made_anew(here: Passing) -> None:
    await prepare(here)
    here.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await here.writes.drop_table(here.far.catalog, request.first(), T)
    here.far.put(at="anew", uuid=str(uuid.uuid4()))

    await here.writes.drop_table(here.far.catalog, request.again(), T)

    assert T in here.remote.tables
    assert here.remote.done == ["drop_table"]


async def test_a_change_without_a_snapshot_is_not_repeated_when_others_came_between(here: Passing) -> None:
    await prepare(here)
    here.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await here.writes.commit_table(here.far.catalog, request.first(), setting(a="mine"))
    await here.writes.commit_table(here.far.catalog, ROOT, setting(a="theirs"))

    with pytest.raises(OutcomeUnknown):
        await here.writes.commit_table(here.far.catalog, request.again(), setting(a="mine"))
    assert here.remote.tables[T].metadata.properties["a"] == "theirs"


async def test_who_was_refused_is_refused_again_in_the_same_words(here: Passing) -> None:
    await make_namespace(here)
    request = Keyed()
    with pytest.raises(NoSuchTable):
        await here.writes.drop_table(here.far.catalog, request.again(), T)
    await here.writes.create_table(here.far.catalog, ROOT, creation())

    with pytest.raises((Refused, Overtaken)):
        await here.writes.drop_table(here.far.catalog, request.again(), T)
    assert T in here.remote.tables


async def test_a_name_that_somebody_else_took_is_taken(here: Passing) -> None:
    await make_table(here)
    with pytest.raises(TableExists):
        await here.writes.create_table(here.far.catalog, ROOT, creation())
    with pytest.raises(TableExists):
        await here.writes.create_table(here.far.catalog, Keyed().again(), creation())
    assert here.remote.done.count("create_table") == 1


async def test_a_view_of_another_file_is_not_taken_for_ours(here: Passing) -> None:
    await prepare(here)
    here.remote.lost = ["killed"]
    request = Keyed()
    with pytest.raises(Killed):
        await here.writes.register_view(here.far.catalog, request.first(), U, view_file_of(here))
    other = await put_view_file(here, at="theirs", **{"view-uuid": str(uuid.uuid4())})
    await here.remote.drop_view(U)
    await here.remote.register_view(U, other)

    with pytest.raises(OutcomeUnknown):
        await here.writes.register_view(here.far.catalog, request.again(), U, view_file_of(here))
    assert here.remote.views[U].tag.metadata_location == other


async def test_two_with_the_same_key_text_are_two_for_the_remote(keyed: Passing) -> None:
    await prepare(keyed)
    one, two = Keyed(), Keyed()
    two._text = one._text

    await keyed.writes.commit_table(keyed.far.catalog, one.first(), setting(a="1"))
    await keyed.writes.commit_table(keyed.far.catalog, two.first(), setting(a="2"))

    assert len(keyed.remote.keys) >= 2
    assert one._text not in keyed.remote.keys
    assert answer_of(await load_table(keyed.far.catalog, ROOT, T))["properties"]["a"] == "2"
