"""Whoever may not see all of a table gets no more of it by any door (I50)."""

from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.file_access.giving import plain_access
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.catalog.operations.load_table import load_table_for_data
from cynosure.catalog.restrictions.doors import DOORS
from tests.catalog.access_cases import CASES, Case, Given
from tests.catalog.cascade_cases import TASK_CASES
from tests.catalog.generic_cases import GENERIC_CASES
from tests.catalog.policy_cases import POLICY_CASES
from tests.catalog.restrictions.restricting import CATALOG, EVERYTHING, TABLE, restrict
from tests.catalog.tables import T
from tests.catalog.upkeep_cases import UPKEEP_CASES
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio

EVERY_CASE = [*CASES, *GENERIC_CASES, *POLICY_CASES, *TASK_CASES, *UPKEEP_CASES]
CLOSED = {
    "table statistics",
    "commit properties",
    "commit two kinds",
    "commit what has no privilege of its own",
    "commit nothing",
    "append files",
    "order maintenance",
    "add columns",
    "set partitioning",
    "set sort order",
    "transaction",
    "drop table",
    "purge table",
    "unregister",
    "rename table",
    "report commit",
    "report unknown",
    "list reports",
    "export",
    "load credentials",
    "sign a request",
    "sign for a plan",
}
"""Where a policy is on the table itself."""
CLOSED_BELOW = {"load generic table to read", "load generic table to write", "drop generic table"}
"""Where a policy is on what they are in."""
UNCHECKED = {
    "register",
    "register to write",
    "register to read",
    "register over nothing",
    "register over a table",
    "register over a table to write",
    "restore",
    "load tombstone",
    "load dropped",
    "load credentials of a tombstone",
    "begin purging",
    "create generic table",
    "create generic table delegated",
    "notify",
    "plan maintenance",
    "list maintenance",
    "list tasks",
    "load task",
    "load task history",
    "retry task",
    "cancel task",
}
"""Refused to whoever is restricted anywhere in the catalog."""


def test_the_cases_are_those_there_are() -> None:
    names = {case.name for case in EVERY_CASE}

    assert names >= CLOSED | CLOSED_BELOW | UNCHECKED


@pytest.mark.parametrize("case", EVERY_CASE, ids=lambda case: case.name)
async def test_who_is_restricted_in_the_whole_catalog_is_refused_whatever_gives_more(
    case: Case, tmp_path: Path
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        given = None if case.given is None else await case.given(lake)
        await restrict(lake, "few", CATALOG, filter="id > 100")

        if case.name in CLOSED | CLOSED_BELOW | UNCHECKED:
            await expect_refusal(lake, case, ann, given)
        else:
            await case.act(lake, ann, given)


@pytest.mark.parametrize(
    "case", [each for each in EVERY_CASE if each.name in CLOSED | UNCHECKED], ids=lambda case: case.name
)
async def test_who_is_restricted_on_a_table_cannot_get_at_it_even_when_it_was_dropped(
    case: Case, tmp_path: Path
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", TABLE, filter="id > 100")
        given = None if case.given is None else await case.given(lake)

        await expect_refusal(lake, case, ann, given)


async def expect_refusal(lake: Lake, case: Case, caller: Caller, given: Given) -> None:
    before = await lake.heads()
    with pytest.raises(RestrictedByPolicy) as refused:
        await case.act(lake, caller, given)
    assert await lake.heads() == before, "nothing was changed"
    assert refused.value.policies == ("ns.few",)
    assert "ns.few" in str(refused.value)


async def test_who_asks_for_access_to_files_is_shown_the_table_without(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        assert (await load_table_for_data(lake.catalog, ann, T)).is_writable
        await restrict(lake, "eu-only", filter="id > 100")

        loaded = await load_table_for_data(lake.catalog, ann, T)

        assert b"read-restrictions" in loaded.answer.load_body()
        assert not loaded.is_writable
        assert loaded.access == plain_access(lake.catalog)
        with pytest.raises(RestrictedByPolicy):
            await load_credentials(lake.catalog, ann, T)


def test_every_operation_is_known_to_be_harmless_or_not() -> None:
    """So that none is added without saying what it means for those who may not see everything."""
    assert set(OPERATIONS) - set(DOORS) == set()
