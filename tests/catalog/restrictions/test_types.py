"""What restricts is checked against what it is attached to (I53)."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.policies.mappings import load_mappings, policy_prefix
from cynosure.catalog.policy_types import find_policy
from cynosure.catalog.restrictions.types import Ids, read_ids
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import CATALOG, NAMESPACE, TABLE, add_role, restrict
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio

UNFIT = {
    "a filter on a column that is not there": {"filter": "region = 'EU'"},
    "a constant of another type": {"filter": "id = 'x'"},
    "also where only some would use it": {"filter": "is_member('ann') AND NOT is_member('ann') AND id = 'x'"},
    "a mask on a column that is not there": {"columns": {"ssn": "show-last-4"}},
    "an action for another type": {"columns": {"id": "show-last-4"}},
    "null for a required column": {"columns": {"id": "replace-with-null"}},
}


@pytest.mark.parametrize("content", UNFIT.values(), ids=UNFIT)
async def test_a_table_takes_only_what_fits_its_columns(content: dict, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await lake.people.add("ann")
        path = await restrict(lake, "few", None, **content)
        before = await lake.heads()

        with pytest.raises(InvalidPolicy) as refused:
            await attach_policy(lake.catalog, ROOT, path, TABLE)

        assert refused.value.field.startswith("content.")
        assert await lake.heads() == before
        await attach_policy(lake.catalog, ROOT, path, NAMESPACE)


@pytest.mark.parametrize(
    "content",
    [
        {"filter": "id = 7", "roles": ["analyst"]},
        {"filter": "id = 7", "except_roles": ["analyst"]},
        {"filter": "is_member('analyst')"},
        {"columns": {"data": "show-last-4"}, "roles": ["ann", "analyst"]},
    ],
    ids=str,
)
async def test_a_role_that_does_not_exist_is_refused_before_it_leaves_data_open(
    content: dict, tmp_path: Path
) -> None:
    async with open_lake(tmp_path) as lake:
        await lake.people.add("ann")
        path = await restrict(lake, "few", None, **content)

        for to in (TABLE, NAMESPACE, CATALOG):
            with pytest.raises(InvalidPolicy) as refused:
                await attach_policy(lake.catalog, ROOT, path, to)
            assert refused.value.details["roles"] == "analyst"

        await add_role(lake, "analyst")
        await attach_policy(lake.catalog, ROOT, path, TABLE)


async def test_a_policy_that_is_attached_is_checked_again_when_it_changes(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        path = await restrict(lake, "few", filter="id = 7")

        for wrong in ('"filter":"region = 1"', '"filter":"id = 7","roles":["x"]'):
            with pytest.raises(InvalidPolicy):
                await update_policy(lake.catalog, ROOT, path, PolicyUpdate(f'{{"enable":true,{wrong}}}'))

        await update_policy(lake.catalog, ROOT, path, PolicyUpdate('{"enable":true,"filter":"data = \'x\'"}'))
        assert await kept_ids(lake, path) == {"data": (2,)}


async def test_the_fields_that_columns_are_stay_with_what_is_attached_to_a_table(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        on_table = await restrict(lake, "few", filter="ID = 7 OR data LIKE 'a%'")
        above = await restrict(lake, "mask", NAMESPACE, columns={"data": "show-last-4"})

        assert await kept_ids(lake, on_table) == {"ID": (1,), "data": (2,)}
        assert await kept_ids(lake, above) is None


async def kept_ids(lake: Lake, path: Identifier) -> Ids | None:
    view = await lake.catalog.read()
    policy = await find_policy(view, path)
    assert policy is not None
    (mapping,) = await load_mappings(view, policy_prefix(policy.id))
    return read_ids(mapping.detail)


async def test_the_parser_of_filters_is_imported_when_it_is_needed() -> None:
    program = (
        "import asyncio, sys\n"
        "from cynosure.catalog import opened, policy_types\n"
        "from cynosure.catalog.restrictions.types import ensure_parser\n"
        "assert 'sqlglot' not in sys.modules\n"
        "asyncio.run(ensure_parser())\n"
        "assert 'sqlglot' in sys.modules\n"
    )

    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)

    assert await process.wait() == 0


def test_what_is_kept_reads_back() -> None:
    kept = msgspec.Raw(msgspec.msgpack.encode({"ids": {"a": (1, 2)}}))

    assert read_ids(kept) == {"a": (1, 2)}
    assert read_ids(msgspec.Raw(b"\xc0")) is None
