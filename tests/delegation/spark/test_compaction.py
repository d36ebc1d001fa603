"""Compaction among other writers, in other orders, and of tables with odd names (I99)."""

import asyncio
import uuid
from contextlib import suppress

from cynosure.delegation.jobs.compaction.job import CompactionJob
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from tests.delegation.spark.oracle import look
from tests.delegation.spark.world import Lake, for_spark

WRITES = 6


def test_rows_that_others_write_and_delete_meanwhile_are_kept(local_lake: Lake):
    lake = local_lake
    path = ("ns", f"busy_{uuid.uuid4().hex[:8]}")
    name = f"c.{'.'.join(path)}"
    inserts = [f"INSERT INTO {name} VALUES ({number}, 'old')" for number in range(8)]
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, data STRING) USING iceberg "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')",
        *inserts,
    )

    async def run(statement: str) -> None:
        order = lake.order(CompactionJob.task_type, path)
        given = {"statements": [for_spark(statement)]}
        for _ in range(20):
            # A writer whose files were rewritten under its hands tries again, as any client does.
            with suppress(JobFailed, JobPostponed):
                await lake.runner.run("test-sql", given, lake.context(order))
                return
        raise AssertionError("a writer never came through")

    async def write() -> None:
        for number in range(WRITES):
            await run(f"INSERT INTO {name} VALUES ({100 + number}, 'new')")
            if number == 2:
                await run(f"DELETE FROM {name} WHERE id = 3")

    async def compact() -> None:
        for _ in range(2):
            order = lake.order(CompactionJob.task_type, path, rewrite_all="true", max_commits="4")
            await CompactionJob().run(lake.context(order))

    async def both() -> None:
        await asyncio.gather(write(), compact())

    lake.loop.run(both())

    expected = [number for number in range(8) if number != 3] + [100 + number for number in range(WRITES)]
    assert [row[0] for row in lake.sql(f"SELECT id FROM {name} ORDER BY id")] == expected
    assert not look(lake, path).missing
    done = lake.work(CompactionJob(), path, rewrite_all="true")
    assert (done.details["files_after"], done.details["delete_files_after"]) == (1, 0)
    assert [row[0] for row in lake.sql(f"SELECT id FROM {name} ORDER BY id")] == expected


def test_files_are_sorted_where_it_is_told_in_a_table_with_an_odd_name(local_lake: Lake):
    lake = local_lake
    name = f"it's a.table_{uuid.uuid4().hex[:8]}"
    path, quoted = ("ns", name), f"cynosure.ns.`{name}`"
    lake.sql(
        f"CREATE TABLE {quoted} (id BIGINT, part STRING) USING iceberg PARTITIONED BY (part)",
        f"INSERT INTO {quoted} VALUES (3, 'a'), (1, 'a'), (7, 'b')",
        f"INSERT INTO {quoted} VALUES (2, 'a'), (5, 'b')",
    )

    done = lake.work(
        CompactionJob(),
        path,
        compaction_strategy="sort",
        sort_order="id DESC NULLS LAST",
        where="part = 'a'",
        rewrite_all="true",
    )

    assert done.details["files_after"] == 3
    [(file,)] = lake.sql(f"SELECT file_path FROM {quoted}.files WHERE partition.part = 'a'")
    assert [row[0] for row in lake.sql(f"SELECT id FROM parquet.`{file}`")] == [3, 2, 1]
    assert lake.sql(f"SELECT count(*), sum(id) FROM {quoted}") == [(5, 18)]
