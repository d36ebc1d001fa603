"""A plan of an older version does not lead around what restricts its caller by now."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchPlan, NoSuchPlanTask
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.fetch_plan import fetch_plan
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.planning.opening import Asking
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.testing.small_catalog import SCHEMA, directory_on
from tests.catalog.planning.scans import Scanned, make_engine, make_scanned, plan, read_all
from tests.catalog.restrictions.restricting import EVERYTHING, NAMESPACE, restrict
from tests.catalog.tables import change
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio
S = Identifier(NS, "scanned")
FILES = Asking(delegation=ANY_WAY)


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    """With plans of one file per page, the first of which nobody waits for."""
    settings = CatalogSettings(planning=PlanningSettings(page_files=1, wait=timedelta(0)))
    async with (
        open_lake(tmp_path) as opened,
        directory_on(opened.directory.shared.persistence, tmp_path, settings) as directory,
    ):
        catalog = await directory.open(opened.catalog.realm, opened.catalog.entity.name)
        yield opened._replace(directory=directory, catalog=catalog)


async def make(lake: Lake) -> tuple[Scanned, Caller]:
    scanned = await make_scanned(lake.catalog, S)
    for number in range(3):
        await scanned.commit([scanned.file(f"f{number}")])
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
    # Nothing to the table yet: it has no such column.
    await restrict(lake, "mask", NAMESPACE, columns={"salary": "mask-to-default"})
    return scanned, ann


async def rename(scanned: Scanned, old: str, new: str) -> None:
    schema: dict[str, Any] = msgspec.json.decode(bytes(SCHEMA))
    for each in schema["fields"]:
        each["name"] = new if each["name"] == old else each["name"]
    await change(
        scanned.catalog,
        {"action": "add-schema", "schema": {**schema, "schema-id": 1}},
        {"action": "set-current-schema", "schema-id": -1},
        table=S,
    )


@pytest.mark.parametrize("is_engine", [False, True])
async def test_a_column_that_is_masked_since_hides_plans_that_knew_it_by_another_name(
    lake: Lake, is_engine: bool
) -> None:
    scanned, ann = await make(lake)
    who = await make_engine(lake.people, ann) if is_engine else ann
    planned = await plan(scanned, who, FILES, stats_fields=("data",))
    before = await fetch_plan(lake.catalog, who, S, planned.plan_id, FILES)
    while before.tasks is None:
        before = await fetch_plan(lake.catalog, who, S, planned.plan_id, FILES)
    assert before.access is not None

    await rename(scanned, "data", "salary")

    with pytest.raises(NoSuchPlan):
        await fetch_plan(lake.catalog, who, S, planned.plan_id, FILES)
    for task in before.tasks.plan_tasks:
        with pytest.raises(NoSuchPlanTask):
            await fetch_scan_tasks(lake.catalog, who, S, task)


async def test_changes_that_restrict_nobody_end_no_plan(lake: Lake) -> None:
    scanned, ann = await make(lake)
    planned = await plan(scanned, ann)
    await rename(scanned, "data", "colour")
    await scanned.commit([scanned.file("later")])

    while planned.tasks is None:
        planned = await fetch_plan(lake.catalog, ann, S, planned.plan_id)

    assert len(await read_all(scanned, planned, ann)) == 3
