"""Tables: written by two engines, committed to by many, dropped and restored, safe from power cuts."""

import asyncio
import sys

from tour.stage import Tour


async def create_a_table(tour: Tour) -> None:
    """Create a table with PyIceberg and put rows into it (README.md)"""
    output = await tour.run_snippet("pyiceberg.catalog")
    if "sextant" not in output:
        sys.exit("demo: PyIceberg did not read what it wrote")


async def read_it_with_spark(tour: Tour) -> None:
    """Read it with Spark, and add a row (README.md)"""
    output = await tour.run_snippet("pyspark.sql")
    if "star chart" not in output or "astrolabe" not in output:
        sys.exit("demo: Spark did not read what PyIceberg wrote")


async def commit_together(tour: Tour) -> None:
    """Commit from sixteen clients at once: a few writes to disk, none lost"""
    table = tour.table
    async with tour.client() as client:

        async def write(number: int) -> None:
            for again in range(5):
                updates = [{"action": "set-properties", "updates": {f"writer-{number}": str(again)}}]
                answer = await client.post(table, json={"requirements": [], "updates": updates})
                answer.raise_for_status()

        await asyncio.gather(*(write(number) for number in range(16)))
        loaded = (await client.get(table)).raise_for_status().json()
    written = [name for name in loaded["metadata"]["properties"] if name.startswith("writer-")]
    tour.say(f"80 commits answered; {len(written)} writers in the table, each at its last value")
    if len(written) != 16:
        sys.exit("demo: a commit was lost")


async def look_into_the_store(tour: Tour) -> None:
    """Look into the store: references and their commits"""
    await tour.cynosure("store", "status")
    tour.history = await tour.cynosure("store", "log", "default/catalogs")


async def follow_the_feed(tour: Tour) -> None:
    """Follow what happens: the change feed"""
    await tour.get("/api/catalog/cynosure/v1/main/changes?from=oldest&limit=3", who="root")


async def drop_and_undrop(tour: Tour) -> None:
    """Drop the table by mistake, and take it back"""
    table = tour.table
    async with tour.client() as client:
        before = (await client.get(table)).raise_for_status().content
        tour.say(f"$ curl -X DELETE {table}")
        (await client.delete(table)).raise_for_status()
        await tour.cynosure("tables", "dropped", "main")
        await tour.cynosure("tables", "restore", "main", "shop.orders")
        if (await client.get(table)).raise_for_status().content != before:
            sys.exit("demo: the restored table is not what was dropped")


async def collect_garbage(tour: Tour) -> None:
    """See what garbage collection would do"""
    await tour.cynosure("store", "gc", "--dry-run")


async def lose_power(tour: Tour) -> None:
    """Kill all of it at once, as a power cut would, and start it again"""
    await tour.cut_power()
    await tour.cynosure("status")
    history = await tour.cynosure("store", "log", "default/catalogs")
    if history != tour.history:
        sys.exit("demo: the history is not what it was before the power cut")
    await tour.cynosure("store", "check")
