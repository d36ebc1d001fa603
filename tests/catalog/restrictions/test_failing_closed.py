"""Whatever cannot be applied exactly hides the table from whom it restricts (I52)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.catalog.restrictions import types
from cynosure.catalog.restrictions.rule import Restrictions
from tests.catalog.restrictions.restricting import CATALOG, EVERYTHING, TABLE, load_restrictions, restrict
from tests.catalog.restrictions.test_changing import DATA, ID, set_columns
from tests.catalog.tables import T
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _forget_contents() -> Iterator[None]:
    types.read_content.cache_clear()
    yield
    types.read_content.cache_clear()


async def expect_hidden(lake: Lake, caller: Caller, why: str) -> None:
    for act in (load_table, load_table_for_data):
        with pytest.raises(RestrictedByPolicy) as refused:
            await act(lake.catalog, caller, T)
        assert why in str(refused.value)
        assert refused.value.policies == ("ns.few",)
    with pytest.raises(RestrictedByPolicy):
        await drop_table(lake.catalog, caller, T)


@pytest.mark.parametrize("to", [TABLE, CATALOG], ids=lambda to: to.type)
async def test_a_policy_that_this_version_does_not_understand_restricts_everyone(
    to, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", to, filter="id = 7", except_roles=["ann"])
        assert await load_restrictions(lake, ann) is None

        monkeypatch.setattr(types, "_BY_NAME", {})
        types.read_content.cache_clear()

        await expect_hidden(lake, ann, "does not understand")


@pytest.mark.parametrize("content", [{"filter": "data = 'x'"}, {"columns": {"data": "show-last-4"}}], ids=str)
async def test_a_column_made_anew_is_not_taken_for_the_one_that_was_restricted(
    content: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", TABLE, **content)

        async def unchecked(*_: object) -> None:
            """As if a commit had got past the rule."""

        monkeypatch.setattr(Restrictions, "check_schema_change", unchecked)
        await set_columns(lake, ID, {**DATA, "id": 3})

        await expect_hidden(lake, ann, "column data is not the one it was attached to")


async def test_who_is_nobody_known_is_restricted_by_everything(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await lake.people.add("ann")
        await restrict(lake, "few", filter="id = 7", roles=["ann"])
        view = await lake.catalog.read()

        found = await lake.catalog.restrictions.find(view, Caller("stranger"), lake.catalog.table(T))

        assert found is not None
        assert found.is_certain
