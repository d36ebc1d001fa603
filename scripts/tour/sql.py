"""Governed SQL: one statement, two readers; a filter with a mapping table, a mask, and nothing beside."""

import asyncio
import re
import sys
from typing import Final

import pyarrow as pa

from cynosure.server.gateway_address import find_address
from tests.engines.java import ToolFailed, find_java
from tour.files import connect
from tour.policies import create, place
from tour.stage import Tour

SALES: Final = {
    "id": [1, 2, 3, 4],
    "region": ["EU", "EU", "US", "US"],
    "amount": [10, 20, 30, 999],
    "card": ["4000-1111", "4000-2222", "4000-3333", "4000-4444"],
}
REGIONS: Final = {"who": ["ann", "bea", "bea"], "region": ["EU", "EU", "US"]}
OWN_REGION: Final = {
    "enable": True,
    "filter": "region IN (SELECT r.region FROM shop.regions r WHERE r.who = current_user())",
    "roles": ["analysts"],
}
NO_CARDS: Final = {"enable": True, "columns": {"card": "show-last-4"}, "roles": ["analysts"]}
EVERYTHING: Final = "SELECT id, region, amount, card FROM shop.sales ORDER BY id"
PROBE: Final = "SELECT count(*) AS n FROM shop.sales WHERE 100 / (amount - 999) IS NOT NULL"
"""Fails on the row with 999, and so tells that it is there, wherever an engine asks before it filters."""
COMPARED: Final = "SELECT count(*) AS n FROM shop.sales WHERE card = '4000-1111'"
"""Finds nothing: what is compared is what is shown."""
MEDIAN: Final = "SELECT percentile_approx(amount, 0.5) AS median FROM shop.sales"
"""Not in the common subset of both engines."""


async def say_who_sees_what(tour: Tour) -> None:
    """Who sees which rows stands in a table; cards are shown in part"""
    await asyncio.to_thread(write_tables, tour)
    await tour.create_with("bea", "principals", "create", "bea")
    where = f"--catalog {tour.catalog}"
    for command in (
        "principal-roles grant analysts --principal bea",
        f"catalog-roles create mappings {where}",
        f"catalog-roles grant mappings {where} --principal-role cynosure-gateway",
        f"privileges table grant TABLE_READ_DATA {where} --catalog-role mappings "
        "--namespace shop --table regions",
    ):
        await tour.cynosure(*command.split())
    for name, kind, content in (
        ("own-region", "cynosure.row-filter", OWN_REGION),
        ("no-cards", "cynosure.column-mask", NO_CARDS),
    ):
        await create(tour, name, kind, content)
        await tour.cynosure("policies", "attach", name, *place(tour), "--on-table", "shop.sales")


async def ask_the_same(tour: Tour) -> None:
    """The same SQL by two readers, and what of it is whose doing"""
    ann = await ask(tour, "ann", EVERYTHING, f"EXPLAIN {EVERYTHING}")
    bea = await ask(tour, "bea", EVERYTHING)
    # With the dash: ids of snapshots have any digits.
    if "-4444" in ann or "-4444" not in bea or "4000-" in ann + bea or "nnnn-1111" not in ann:
        sys.exit("demo: somebody sees what is not theirs")
    if "shop.own-region" not in ann or "shop.no-cards" not in ann or "'EU'" in ann:
        sys.exit("demo: an explanation says too little or too much")


async def try_to_leak(tour: Tour) -> None:
    """A question that fails on a hidden row tells of it; here it cannot"""
    failed = await ask(tour, "root", PROBE, code=1)
    tried = await ask(tour, "ann", PROBE, COMPARED, "SELECT * FROM shop.sales.snapshots", code=1)
    if "DIVIDE_BY_ZERO" not in failed or "DIVIDE_BY_ZERO" in tried:
        sys.exit("demo: a hidden row was noticed")
    if re.findall(r"^ *(\d+)$", tried, re.MULTILINE) != ["2", "0"] or "Policies" not in tried:
        sys.exit("demo: a hidden row or a masked value was noticed")


async def ask_spark(tour: Tour) -> None:
    """What both engines do not do alike runs on Spark, over the same scan"""
    try:
        find_java()
    except ToolFailed as missing:
        tour.say(f"It waits until there is Java: {missing}")
        return
    shown = await ask(tour, "ann", f"EXPLAIN {MEDIAN}", MEDIAN)
    if "spark-isolated" not in shown or re.findall(r"^ *(\d+)$", shown, re.MULTILINE) != ["10"]:
        sys.exit("demo: Spark did not answer, or with hidden rows")
    told = await tour.cynosure("events", "tail", "--operation", "query", "--principal", "ann")
    if "spark-isolated" not in told:
        sys.exit("demo: a statement left no trace")


# --- pieces --------------------------------------------------------------------------------------


def write_tables(tour: Tour) -> None:
    """What is sold, and who may see it."""
    catalog = connect(tour)
    for name, columns in (("shop.sales", SALES), ("shop.regions", REGIONS)):
        rows = pa.table(columns)
        tour.say(f"{name}: {rows.to_pylist()}")
        catalog.create_table(name, schema=rows.schema).append(rows)


async def ask(tour: Tour, who: str, *statements: str, catalog: str = "", code: int = 0) -> str:
    """Run statements as somebody, with a token of theirs, and show them."""
    address = find_address(tour.data)
    if address is None:
        sys.exit("demo: no gateway runs")
    credential = tour.users[who].credential
    env = {
        "CYNOSURE_URL": tour.url,
        "CYNOSURE_GATEWAY": address.url,
        "CYNOSURE_CLIENT_ID": credential.client_id,
        "CYNOSURE_CLIENT_SECRET": credential.secret,
    }
    tour.say(f"{who}:")
    commands = [word for each in statements for word in ("-c", each)]
    return await tour.cynosure("sql", "--catalog", catalog or tour.catalog, *commands, env=env, code=code)
