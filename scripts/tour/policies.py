"""Policies: what is to be done to tables, and what somebody sees of them."""

import json
import sys

from tour.stage import Tour

EXPIRY = {"version": "2025-02-03", "enable": True, "config": {"max_snapshot_age_days": "30"}}
ONLY_CHARTS = {"enable": True, "filter": "item = 'star chart'", "roles": ["analysts"]}


async def attach_policies(tour: Tour) -> None:
    """Say once what is to be done to all tables of a namespace"""
    await create(tour, "keep-a-month", "system.snapshot-expiry", EXPIRY)
    await tour.cynosure("policies", "attach", "keep-a-month", *place(tour), "--on-namespace", "shop")
    shown = await tour.cynosure(
        "policies", "applicable", "--catalog", tour.catalog, "--on-table", "shop.orders"
    )
    if "shop.keep-a-month" not in shown:
        sys.exit("demo: a table does not inherit the policy of its namespace")


async def filter_rows(tour: Tour) -> None:
    """Show analysts some rows only: a filter for their engine, no credentials"""
    await create(tour, "only-charts", "cynosure.row-filter", ONLY_CHARTS)
    await tour.cynosure("policies", "attach", "only-charts", *place(tour), "--on-table", "shop.orders")
    async with tour.client("ann") as ann:
        asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        loaded = await ann.get(tour.table, headers=asking)
        tour.show_answer("ann", loaded)
        restrictions = loaded.json().get("read-restrictions")
        tour.say(f"read-restrictions: {json.dumps(restrictions)}")
        tour.say(f"storage-credentials: {len(loaded.json().get('storage-credentials', []))}")
        if not restrictions or "s3.session-token" in loaded.text:
            sys.exit("demo: a filtered principal got more than the filter")
        refused = await ann.get(f"{tour.table}/credentials")
    tour.show_answer("ann", refused)
    if refused.status_code != 403 or "only-charts" not in refused.text:
        sys.exit("demo: a filtered principal was not refused credentials by the name of the policy")


async def create(tour: Tour, name: str, kind: str, content: object) -> None:
    said = ["--type", kind, "--content", json.dumps(content)]
    await tour.cynosure("policies", "create", name, *place(tour), *said)


def place(tour: Tour) -> list[str]:
    """Where the policies of the tour are."""
    return ["--catalog", tour.catalog, "--namespace", "shop"]
