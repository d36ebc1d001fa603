"""Drops that take the files along: taken back in time, and carried out to the last file."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa

from cynosure.server.data_dir import RoleLock
from tour.files import connect
from tour.stage import Tour

APPENDS = 3
TABLE = "shop.drafts"


async def take_back_a_purge(tour: Tour) -> None:
    """Drop a table with its files, and take it back before the first one goes"""
    location = await make_table(tour, TABLE, APPENDS)
    before = count_files(tour, location)
    tour.say(f"{before} files in {location}")
    service = RoleLock(tour.data, "delegation").find_holder()
    assert service
    tour.say(f"$ kill -STOP {service}   the delegation service: so there is time")
    os.kill(service, signal.SIGSTOP)
    try:
        tour.say(f"$ curl -X DELETE {table_url(tour)}?purgeRequested=true &")
        async with tour.client() as client, asyncio.TaskGroup() as group:
            dropping = group.create_task(
                client.delete(table_url(tour), params={"purgeRequested": "true"}, timeout=90)
            )
            while (await client.get(table_url(tour))).status_code != 404:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
            await tour.cynosure("tables", "dropped", tour.catalog)
            await tour.cynosure("tables", "restore", tour.catalog, TABLE)
            tour.say(f"$ kill -CONT {service}   it hears of the order only now")
            os.kill(service, signal.SIGCONT)
        tour.show_answer("root", dropping.result())
    finally:
        os.kill(service, signal.SIGCONT)
    after = count_files(tour, location)
    tour.say(f"{after} files in {location}")
    if before != after or not before or dropping.result().is_success:
        sys.exit("demo: a table that was restored lost files")


async def purge_a_table(tour: Tour) -> None:
    """Drop it with its files for good: answered when the last one is gone"""
    async with tour.client() as client:
        loaded = (await client.get(table_url(tour))).raise_for_status().json()
    location = loaded["metadata"]["location"]
    namespace, _, name = TABLE.partition(".")
    place = ["--catalog", tour.catalog, "--namespace", namespace]
    await tour.cynosure("tables", "delete", name, *place, "--purge")
    left = count_files(tour, location)
    tour.say(f"{left} files in {location}")
    shown = await tour.cynosure("tasks", "list", "--catalog", tour.catalog)
    if left or "SUCCESS" not in shown:
        sys.exit("demo: a purge that was answered left files")


# --- pieces --------------------------------------------------------------------------------------


async def make_table(tour: Tour, name: str, appends: int) -> str:
    """Where a new table is that so many small files were written to."""

    def write() -> str:
        rows = pa.table({"id": [1]})
        table = connect(tour).create_table(name, schema=rows.schema)
        for _ in range(appends):
            table.append(rows)
        return table.location()

    return await asyncio.to_thread(write)


def table_url(tour: Tour) -> str:
    """The table that is dropped, over HTTP."""
    return f"{tour.table.rpartition('/')[0]}/{TABLE.rpartition('.')[2]}"


def count_files(tour: Tour, location: str) -> int:
    """How many there really are, whoever knows of them."""
    if tour.s3 is not None:
        return len(tour.s3.list_below(location))
    return sum(path.is_file() for path in Path(urlsplit(location).path).rglob("*"))
