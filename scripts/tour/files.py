"""The files of a table: appended by many at once, counted, and chosen for a scan by the server."""

import asyncio
import json
import sys
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from tour.stage import Tour

WRITERS: Final = 16
ROWS: Final = 100
"""In the file of each writer."""
FIRST_ID: Final = 1000
REBASE: Final = "cynosure.commit.rebase-appends"
NO_RETRY: Final = {"commit.retry.num-retries": "0"}


async def append_a_file(tour: Tour) -> None:
    """Append a CSV file with the command line, and count the table's files"""
    csv = "id,item\n4,globe\n5,quadrant\n"
    (tour.data.parent / "day.csv").write_text(csv)
    tour.say(csv.rstrip())
    place = ["--catalog", tour.catalog, "--namespace", "shop"]
    for _ in range(2):  # Once, although it runs twice.
        await tour.cynosure("tables", "append", "orders", "day.csv", *place, "--idempotency-key", "day-17")
    shown = await tour.cynosure("tables", "stats", "orders", *place)
    async with tour.client() as client:
        statistics = await client.get(f"{table_of_ours(tour)}/statistics")
    files = statistics.raise_for_status().json()["data"]["files"]
    if f"{files}, " not in shown or await count_rows(tour, 4) != 1:
        sys.exit("demo: the file was not appended once")


async def append_at_once(tour: Tour) -> None:
    """Append files of sixteen programs at once: no conflict, few snapshots"""
    table = await asyncio.to_thread(lambda: connect(tour).load_table("shop.orders"))
    files = [await asyncio.to_thread(write_file, table, number) for number in range(WRITERS)]
    tour.say(
        f"$ curl {table_of_ours(tour)}/append -d '{{\"data-files\": [{{…}}]}}' …   {WRITERS} times at once"
    )
    async with tour.client() as client:
        answers = await asyncio.gather(
            *(client.post(f"{table_of_ours(tour)}/append", json={"data-files": [each]}) for each in files)
        )
    told = [answer.raise_for_status().json() for answer in answers]
    tour.say(json.dumps(told[0]))
    snapshots = {each["snapshot-id"] for each in told}
    tour.say(f"{len(told)} appends answered, in {len(snapshots)} snapshots")
    if sum(each["added-records"] for each in told) != WRITERS * ROWS or len(snapshots) == WRITERS:
        sys.exit("demo: appends that came together did not share a snapshot")


async def plan_a_scan(tour: Tour) -> None:
    """Let the server choose the files of a query"""
    body = {"filter": {"type": "eq", "term": "id", "value": FIRST_ID + ROWS}, "stats-fields": ["id"]}
    tour.say(f"$ curl {tour.table}/plan -d '{json.dumps(body)}' …")
    async with tour.client() as client:
        every = (await client.post(f"{tour.table}/plan", json={})).raise_for_status().json()
        chosen = (await client.post(f"{tour.table}/plan", json=body)).raise_for_status().json()
    tour.say(json.dumps(chosen["file-scan-tasks"]))
    tour.say(f"{len(chosen['file-scan-tasks'])} of {len(every['file-scan-tasks'])} files")
    if len(chosen["file-scan-tasks"]) != 1 or await count_rows(tour, FIRST_ID + ROWS) != 1:
        sys.exit("demo: the plan is not the one file that has the row")


async def move_appends(tour: Tour) -> None:
    """Append with two PyIceberg writers that know nothing of each other"""
    await tour.cynosure("catalogs", "update", tour.catalog, "--property", f"{REBASE}=true")
    for line in ("one, two = catalog.load_table(…), catalog.load_table(…)", "one.append(…)", "two.append(…)"):
        tour.say(f">>> {line}")
    found = await asyncio.to_thread(write_twice, connect(tour))
    for each in found:
        tour.say(f"snapshot {each['snapshot']}, behind {each['behind']}, number {each['number']}")
    if [each["behind"] for each in found] != [None, found[0]["snapshot"]]:
        sys.exit("demo: the second append is not behind the first one")


# --- pieces --------------------------------------------------------------------------------------


def table_of_ours(tour: Tour) -> str:
    """Where the table is asked for what is not in Iceberg's protocol."""
    return tour.table.replace("/api/catalog/v1/", "/api/catalog/cynosure/v1/")


def connect(tour: Tour, **properties: str) -> Catalog:
    """PyIceberg as root."""
    return load_catalog(
        "lake",
        type="rest",
        uri=f"{tour.url}/api/catalog",
        warehouse=tour.catalog,
        credential=tour.users["root"].credential.text,
        scope="PRINCIPAL_ROLE:ALL",
        **properties,
    )


def write_file(table: Table, number: int) -> dict[str, Any]:
    """A data file that nobody refers to yet, in the protocol's words."""
    first = FIRST_ID + number * ROWS
    ids = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    path = f"{table.location()}/data/program-{number}.parquet"
    with table.io.new_output(path).create() as out:
        pq.write_table(pa.table({"id": range(first, first + ROWS)}, schema=pa.schema([ids])), out)
    return {
        "content": "data",
        "file-path": path,
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "file-size-in-bytes": len(table.io.new_input(path)),
        "record-count": ROWS,
        "lower-bounds": {"keys": [1], "values": [first]},
        "upper-bounds": {"keys": [1], "values": [first + ROWS - 1]},
    }


def write_twice(catalog: Catalog) -> list[dict[str, int | None]]:
    """What becomes of a table that two append to, both from its first state, neither trying again."""
    rows = pa.table({"id": [1]})
    made = catalog.create_table("shop.visits", schema=rows.schema, properties=NO_RETRY)
    one, two = catalog.load_table("shop.visits"), catalog.load_table("shop.visits")
    one.append(rows)
    two.append(rows)
    return [
        {"snapshot": each.snapshot_id, "behind": each.parent_snapshot_id, "number": each.sequence_number}
        for each in made.refresh().snapshots()
    ]


async def count_rows(tour: Tour, id_: int) -> int:
    """How many rows have this id, read as the server plans it."""

    def read() -> int:
        planned = connect(tour, **{"scan-planning-mode": "server"})
        return len(planned.load_table("shop.orders").scan(row_filter=f"id = {id_}").to_arrow())

    return await asyncio.to_thread(read)
