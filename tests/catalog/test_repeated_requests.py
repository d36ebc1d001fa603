"""A request with an Idempotency-Key that comes again does nothing, and hears what it was told (I73-I77)."""

import ast
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cynosure import catalog as catalog_room
from cynosure.auth.caller import Caller
from cynosure.auth.request_key import Refused, Rehearsed, RequestKey
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.reports import reports_committer
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.common.errors import CynosureError, Forbidden, KeyReused, NotFound
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import key_of, with_key
from tests.catalog.access_cases import Case, Given
from tests.catalog.repeat_cases import LATER, ROWS, Row, told_as_bytes
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio

each_operation = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.case.name)


def describe(error: Exception) -> bytes:
    """For good, whatever the refusal: see where it matters."""
    return type(error).__name__.encode()


def keyed(
    caller: Caller, *, is_repeat: bool = False, is_rehearsal: bool = False, payload: str = "asked for"
) -> tuple[Caller, RequestKey]:
    """The caller, in one more attempt at the same request."""
    attempt = with_key(
        caller, payload=payload, is_repeat=is_repeat, is_rehearsal=is_rehearsal, describe=describe
    )
    return attempt, key_of(attempt)


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


async def start(lake: Lake, case: Case) -> tuple[Caller, Given]:
    """Somebody with exactly the rights for it, and what has to be there before."""
    ann = await lake.people.add("ann", lake.catalog)
    given = None if case.given is None else await case.given(lake)
    await lake.people.grant("ann", lake.catalog, *case.needs)
    return ann, given


async def count_commits(lake: Lake) -> int:
    """Of the catalog and of its reports."""
    committers = (lake.catalog.committer, reports_committer(lake.catalog))
    return sum([(await each.read()).state.commit.record.sequence for each in committers])


def files_of(lake: Lake) -> set[str]:
    return {str(each) for each in lake.folder.rglob("*") if each.is_file()}


@each_operation
async def test_a_repeated_request_is_told_the_same_and_commits_nothing(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    before = await count_commits(lake)
    first, first_key = keyed(ann)
    answer = await row.case.act(lake, first, given)
    heads = await lake.heads()
    again, key = keyed(ann, is_repeat=True)

    repeated = await row.case.act(lake, again, given)

    assert told_as_bytes(repeated) == told_as_bytes(answer)
    assert (first_key.is_committed, first_key.is_recalled) == (True, False)
    assert (key.is_committed, key.is_recalled) == (True, True)
    assert await lake.heads() == heads
    assert await count_commits(lake) == before + COMMITS.get(row.case.name, 1)


COMMITS = {"purge table": 3}
"""The tombstone, which has the key; word of whoever deletes the files; and the final drop."""


@each_operation
async def test_what_others_did_since_does_not_change_the_answer(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    answer = await row.case.act(lake, keyed(ann)[0], given)
    await row.later(lake)
    lake.catalog.shared.tables.clear()
    heads = await lake.heads()
    again, key = keyed(ann, is_repeat=True)

    repeated = await row.case.act(lake, again, given)

    assert told_as_bytes(repeated) == told_as_bytes(answer)
    assert key.is_recalled
    assert await lake.heads() == heads


@each_operation
async def test_a_key_stands_for_one_payload(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    await row.case.act(lake, keyed(ann)[0], given)
    heads = await lake.heads()

    with pytest.raises(KeyReused):
        await row.case.act(lake, keyed(ann, is_repeat=True, payload="something else")[0], given)

    assert await lake.heads() == heads


@each_operation
async def test_who_may_no_longer_do_it_is_not_told_again(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    await row.case.act(lake, keyed(ann)[0], given)
    await revoke_catalog_role(lake.catalog, ROOT, "ann", "ann")
    heads = await lake.heads()
    again, key = keyed(ann, is_repeat=True)

    with pytest.raises(AccessDenied):
        await row.case.act(lake, again, given)

    assert not key.is_recalled
    assert await lake.heads() == heads


@each_operation
async def test_where_existence_is_hidden_as_much_is_told_again_and_to_as_few(
    row: Row, tmp_path: Path
) -> None:
    async with open_lake(tmp_path, AuthSettings(hide_existence=True)) as lake:
        ann, given = await start(lake, row.case)
        answer = await row.case.act(lake, keyed(ann)[0], given)
        again = await row.case.act(lake, keyed(ann, is_repeat=True)[0], given)
        await revoke_catalog_role(lake.catalog, ROOT, "ann", "ann")

        with pytest.raises((AccessDenied, NotFound)) as refused:
            await row.case.act(lake, keyed(ann, is_repeat=True)[0], given)

    assert told_as_bytes(again) == told_as_bytes(answer)
    assert isinstance(refused.value, Forbidden) or isinstance(refused.value.__cause__, Forbidden)


@each_operation
async def test_a_rehearsal_changes_nothing(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    heads, files = await lake.heads(), files_of(lake)

    with pytest.raises(Rehearsed):
        await row.case.act(lake, keyed(ann, is_rehearsal=True)[0], given)

    assert await lake.heads() == heads
    assert files_of(lake) == files


@each_operation
async def test_a_rehearsal_is_refused_to_who_may_no_longer_do_it(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    await revoke_catalog_role(lake.catalog, ROOT, "ann", "ann")
    heads = await lake.heads()

    with pytest.raises(AccessDenied):
        await row.case.act(lake, keyed(ann, is_rehearsal=True)[0], given)

    assert await lake.heads() == heads


@each_operation
async def test_a_first_attempt_that_goes_on_after_a_refusal_is_refused(row: Row, lake: Lake) -> None:
    """Any refusal will do; that of a right can be given to every operation, and taken back."""
    ann, given = await start(lake, row.case)
    await revoke_catalog_role(lake.catalog, ROOT, "ann", "ann")
    second, second_key = keyed(ann, is_repeat=True)
    before = await count_commits(lake)
    with pytest.raises(AccessDenied):
        await row.case.act(lake, second, given)
    assert second_key.is_committed
    assert await count_commits(lake) == before + 1, "the refusal"
    await assign_catalog_role(lake.catalog, ROOT, "ann", "ann")
    heads = await lake.heads()

    for is_repeat in (False, True):
        late, key = keyed(ann, is_repeat=is_repeat)
        with pytest.raises(Refused) as refused:
            await row.case.act(lake, late, given)
        assert refused.value.answer == b"AccessDenied"
        assert key.is_recalled

    assert await lake.heads() == heads


@each_operation
async def test_a_first_attempt_that_goes_on_after_the_second_changes_nothing(row: Row, lake: Lake) -> None:
    ann, given = await start(lake, row.case)
    await row.case.act(lake, keyed(ann, is_repeat=True)[0], given)
    heads = await lake.heads()

    # Those that look before they try find what the second has done, and are believed by nobody.
    with suppress(CynosureError):
        await row.case.act(lake, keyed(ann)[0], given)

    assert await lake.heads() == heads


def test_every_operation_that_commits_is_asked_for_twice() -> None:
    committing = {
        function.name
        for room in ("operations", "generic")
        for file in (Path(catalog_room.__file__).parent / room).glob("*.py")
        if _commits(tree := ast.parse(file.read_text()))
        for function in tree.body
        if isinstance(function, ast.AsyncFunctionDef) and function.name == file.stem
    }
    asked = {name for row in ROWS for name in row.case.act.__code__.co_names}

    assert len(committing) > 20
    assert committing - asked == OF_THE_LIST
    assert {row.case.name for row in ROWS} == LATER.keys(), "a name that no case has"


OF_THE_LIST = {"create_catalog", "update_catalog", "drop_catalog"}
"""Of catalogs as a whole."""


def _commits(tree: ast.Module) -> bool:
    names = {"commit", "commit_checked", "commit_as", "commit_authorizing"}
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(
        (isinstance(call, ast.Attribute) and call.attr in names)
        or (isinstance(call, ast.Name) and call.id in names)
        for call in calls
    )
