"""The governed scan reads what Spark and Iceberg wrote: merge-on-read deletes, vectors, evolution, nesting.

Here because the driver is here: no other tests start Spark with Iceberg's catalog.
"""

import json
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from cynosure.common.delegated.vocabulary import TaskType
from cynosure.iceberg.schema import decode_schema
from cynosure.query.catalog_access.planning import PlanReader, read_credentials
from cynosure.query.catalog_access.wire import PlanPage
from cynosure.query.scan_task import Mask, ScanTask
from cynosure.testing.scan_kit import SALT, read_rows, reference
from tests.delegation.spark.world import Lake
from tests.names import unique

MERGE_ON_READ = ", ".join(f"'write.{each}.mode'='merge-on-read'" for each in ("delete", "update", "merge"))
SHOWN = """
    SELECT id, title, CAST(price AS STRING), CAST(day AS STRING), unix_micros(seen), point.x, point.y,
      to_json(many), to_json(named), extra, CAST(raw AS STRING) FROM {} ORDER BY id
"""


def make_table(lake: Lake, name: str, version: int, partitioning: str = "") -> None:
    table = f"c.ns.{name}"
    lake.sql(
        f"""CREATE TABLE {table} (id BIGINT, name STRING, price DECIMAL(9, 2), day DATE, seen TIMESTAMP,
            point STRUCT<x: INT, y: STRING>, many ARRAY<INT>, named MAP<STRING, INT>, raw BINARY)
            USING iceberg {partitioning}
            TBLPROPERTIES ('format-version'='{version}', {MERGE_ON_READ})""",
        f"""INSERT INTO {table} SELECT id, IF(id % 7 = 0, NULL, 'n' || id), CAST(id / 4 AS DECIMAL(9, 2)),
            DATE '1969-12-30' + CAST(id % 3 AS INT), timestamp_micros(id * 1000001 - 5000000),
            IF(id % 5 = 0, NULL, struct(CAST(id AS INT), 'y')), array(CAST(id AS INT), NULL),
            map('k', CAST(id AS INT)), CAST(concat('r', id) AS BINARY) FROM range(0, 600, 1, 1)""",
        f"DELETE FROM {table} WHERE id % 10 = 3",
        f"ALTER TABLE {table} RENAME COLUMN name TO title",
        f"ALTER TABLE {table} ADD COLUMN extra INT",
        f"ALTER TABLE {table} ADD COLUMN point.z INT",
        f"ALTER TABLE {table} ALTER COLUMN point.x TYPE BIGINT",
        f"ALTER TABLE {table} ALTER COLUMN price TYPE DECIMAL(12, 2)",
        f"""INSERT INTO {table} SELECT id, 'new', 1.5, DATE '2024-02-03', timestamp_micros(id),
            struct(id, 'w', 5), array(), map(), NULL, 7 FROM range(600, 650, 1, 1)""",
        f"UPDATE {table} SET title = 'updated', extra = 1 WHERE id BETWEEN 40 AND 60",
        f"""MERGE INTO {table} t USING (SELECT id FROM range(0, 700, 50)) s ON t.id = s.id
            WHEN MATCHED AND t.id < 300 THEN DELETE WHEN MATCHED THEN UPDATE SET title = 'merged'
            WHEN NOT MATCHED THEN INSERT (id, title, day) VALUES (s.id, 'inserted', DATE '1969-12-30')""",
    )


def open_task(lake: Lake, name: str) -> ScanTask:
    """As the coordinator makes it, with everything of the table."""
    loaded = lake.load(("ns", name))
    metadata = loaded["metadata"]
    schema = next(each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"])
    url = f"{lake.served.url}/namespaces/ns/tables/{name}"
    answer = httpx.post(
        f"{url}/plan",
        json={"snapshot-id": metadata["current-snapshot-id"]},
        auth=lake.served.login,
        headers={"X-Iceberg-Access-Delegation": "vended-credentials"},
        timeout=30,
        trust_env=False,
    )
    answer.raise_for_status()
    page = msgspec.json.decode(answer.content, type=PlanPage)
    encoded = msgspec.json.encode(schema)
    reader = PlanReader(decode_schema(encoded), metadata)
    reader.add(page)
    assert not page.plan_tasks
    scheme = "s3" if lake.store else "file"
    credentials, _ = read_credentials(page.storage_credentials or [], scheme, 1, name=name)
    return ScanTask(
        query_id="query",
        fragment_id="fragment",
        files=tuple(reader.files),
        deletes=tuple(reader.deletes),
        schema=encoded,
        columns=tuple(field["id"] for field in schema["fields"]),
        places=(metadata["location"],),
        credentials=credentials,
        file_roots=() if lake.store else (metadata["location"],),
        salt=SALT,
    )


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    """As the statement above shows a row."""
    point = row["point"] or {"x": None, "y": None}
    seen = row["seen"]
    return (
        row["id"],
        row["title"],
        None if row["price"] is None else str(row["price"].quantize(Decimal("0.01"))),
        row["day"].isoformat(),
        None if seen is None else round(seen.timestamp() * 1_000_000),
        point["x"],
        point["y"],
        row["many"],
        None if row["named"] is None else dict(row["named"]),
        row["extra"],
        None if row["raw"] is None else row["raw"].decode(),
    )


def expected_rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    rows = lake.sql(SHOWN.format(f"c.ns.{name}"))
    return [
        (*row[:7], *(None if each is None else json.loads(each) for each in row[7:9]), *row[9:])
        for row in rows
    ]


def check(lake: Lake, name: str, kinds: set[str]) -> ScanTask:
    task = open_task(lake, name)
    assert {each.kind for each in task.deletes} == kinds
    found = sorted(map(shown, read_rows(task)), key=lambda row: row[0])
    assert found == expected_rows(lake, name)
    assert 500 < len(found) < 650
    counted = replace(task, columns=())
    assert sum(row["rows"] for row in read_rows(counted)) == len(found)
    filtered = replace(
        task,
        columns=(1, 2),
        row_filter=msgspec.json.encode(reference("eq", 4, "1969-12-31")),
        masks=(Mask(2, "mask-alphanum"),),
    )
    governed = {row["id"]: row["title"] for row in read_rows(filtered)}
    assert governed.keys() == {row[0] for row in found if row[3] == "1969-12-31"}
    assert {each.strip("xn") for each in governed.values() if each} == {""}
    return task


@pytest.mark.timeout(600)
def test_position_and_equality_deletes_of_local_files(local_lake: Lake) -> None:
    name = unique("governed2")
    make_table(local_lake, name, 2)
    check(local_lake, name, {"position"})
    order = local_lake.order(TaskType.DATA_COMPACTION, ("x", "y"))
    for value in (41, 42, 601):
        given = {"table": f"ns.{name}", "value": value}
        local_lake.loop.run(local_lake.runner.run("test-equality-delete", given, local_lake.context(order)))
    local_lake.sql(f"INSERT INTO c.ns.{name} (id, day) VALUES (42, DATE '1969-12-31')")

    task = check(local_lake, name, {"position", "equality"})

    # The row that came after the delete is there, and the one before it is not.
    assert [row["title"] for row in read_rows(task) if row["id"] in (41, 42, 601)] == [None]


@pytest.mark.timeout(600)
def test_deletion_vectors_of_a_store_with_vended_credentials(s3_lake: Lake) -> None:
    name = unique("governed3")
    make_table(s3_lake, name, 3, "PARTITIONED BY (day, truncate(2, name))")
    check(s3_lake, name, {"vector"})
