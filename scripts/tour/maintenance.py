"""A policy that runs: small files of a table become one, on Spark, because somebody said so once."""

import asyncio
import json
import sys

from tests.engines.java import ToolFailed, find_java
from tour.policies import create, place
from tour.purging import make_table
from tour.stage import Tour

TABLE = "shop.clicks"
APPENDS = 5
COMPACTION = {"enable": True, "config": {"min_input_files": APPENDS, "schedule": "PT1H"}}
PATIENCE_S = 150


async def order_by_policy(tour: Tour) -> None:
    """Attach a policy to a table of small files, and ask what will run"""
    await make_table(tour, TABLE, APPENDS)
    await create(tour, "few-files", "system.data-compaction", COMPACTION)
    await tour.cynosure("policies", "attach", "few-files", *place(tour), "--on-table", TABLE)
    shown = await tour.cynosure("maintenance", "plan", tour.catalog)
    if "DATA_COMPACTION" not in shown:
        sys.exit("demo: a policy is not in the plan")


async def see_it_done(tour: Tour) -> None:
    """See that it ran, on Spark, by the service's own principal"""
    try:
        find_java()
    except ToolFailed as missing:
        tour.say(f"It waits until there is Java: {missing}")
        return
    async with asyncio.timeout(PATIENCE_S), tour.client() as client:
        url = f"/api/catalog/cynosure/v1/{tour.catalog}/maintenance/runs"
        while "SUCCESS" not in (answer := await client.get(url)).raise_for_status().text:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.5)
    await tour.cynosure("maintenance", "runs", tour.catalog)
    (ran,) = [each for each in answer.json()["tables"] if each["operation"] == "DATA_COMPACTION"]
    newest = ran["runs"][0]
    await tour.cynosure("tasks", "show", newest["task-id"])
    if (newest["files-before"], newest["files-after"]) != (APPENDS, 1):
        sys.exit(f"demo: the small files are not one: {json.dumps(newest)}")
