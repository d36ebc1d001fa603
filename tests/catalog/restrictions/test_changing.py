"""A column that a policy restricts stays what it is, whoever writes (I52)."""

from pathlib import Path

import pytest

from cynosure.catalog.errors import RestrictedColumn
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.register_table import register_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import (
    CATALOG,
    EVERYTHING,
    TABLE,
    load_restrictions,
    restrict,
)
from tests.catalog.tables import T, change, properties
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio

ID = {"id": 1, "name": "id", "required": True, "type": "long"}
DATA = {"id": 2, "name": "data", "required": False, "type": "string"}


async def set_columns(lake: Lake, *fields: dict, last: int = 9) -> None:
    schema = {"type": "struct", "schema-id": 1, "fields": list(fields)}
    await change(
        lake.catalog,
        {"action": "add-schema", "schema": schema, "last-column-id": last},
        {"action": "set-current-schema", "schema-id": -1},
    )


BREAKING = {
    "rename": [ID, {**DATA, "name": "was-data"}],
    "drop": [ID],
    "made anew": [ID, {**DATA, "id": 3}],
    "swapped": [ID, {**DATA, "name": "old"}, {**DATA, "id": 3}],
    "a look-alike": [ID, DATA, {**DATA, "id": 3, "name": "DATA"}],
}


@pytest.mark.parametrize("to", [TABLE, CATALOG], ids=lambda to: to.type)
@pytest.mark.parametrize("content", [{"filter": "data = 'x'"}, {"columns": {"data": "show-last-4"}}], ids=str)
@pytest.mark.parametrize("fields", BREAKING.values(), ids=BREAKING)
async def test_a_restricted_column_is_not_renamed_dropped_or_made_anew(
    fields: list[dict], content: dict, to, tmp_path: Path
) -> None:
    async with open_lake(tmp_path) as lake:
        path = await restrict(lake, "few", to, **content)
        before = await lake.heads()

        with pytest.raises(RestrictedColumn) as refused:
            await set_columns(lake, *fields)

        assert await lake.heads() == before
        assert refused.value.details == {"policy": "ns.few", "column": "data"}
        await detach_policy(lake.catalog, ROOT, path, to)
        await set_columns(lake, *fields)


async def test_other_columns_and_all_else_change_as_ever(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", filter="data = 'x'")
        await restrict(lake, "mask", columns={"data": "show-last-4"})

        await change(lake.catalog, properties(k="v"))
        await set_columns(
            lake, {**ID, "name": "key"}, DATA, {"id": 3, "name": "new", "required": False, "type": "int"}
        )

        assert await load_restrictions(lake, ann) is not None


async def test_a_type_that_the_policy_does_not_fit_is_not_given(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await set_columns(lake, ID, DATA, {"id": 3, "name": "day", "required": False, "type": "date"})
        await restrict(lake, "mask", columns={"day": "replace-with-null"})

        with pytest.raises(RestrictedColumn):
            await set_columns(lake, ID, DATA, {"id": 3, "name": "day", "required": True, "type": "date"})


async def test_a_file_registered_over_the_table_does_not_lift_a_restriction(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await set_columns(lake, ID, {**DATA, "name": "renamed"})
        older = (await load_table(lake.catalog, ROOT, T)).metadata_location or ""
        await set_columns(lake, ID, {**DATA, "name": "secret"})
        await restrict(lake, "mask", columns={"secret": "show-last-4"})

        with pytest.raises(RestrictedColumn):
            await register_table(lake.catalog, ROOT, T, older, is_overwrite=True)


async def test_a_field_that_once_had_a_masked_name_stays_masked_under_another(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await set_columns(lake, ID, {**DATA, "name": "harmless"}, {**DATA, "id": 3})
        await restrict(lake, "mask", CATALOG, columns={"data": "show-last-4"})

        found = await load_restrictions(lake, ann)

        assert found == {
            "required-column-projections": [
                {"field-id": 2, "action": "show-last-4"},
                {"field-id": 3, "action": "show-last-4"},
            ]
        }
        with pytest.raises(RestrictedColumn):
            await change(lake.catalog, {"action": "remove-schemas", "schema-ids": [0]})


async def test_a_table_on_which_a_policy_did_not_fit_can_be_corrected(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", CATALOG, filter="region = 'EU'")

        await set_columns(lake, ID, DATA, {"id": 3, "name": "region", "required": False, "type": "string"})

        assert await load_restrictions(lake, ann) is not None
