"""Spark travels in time, branches, tags, maintains and registers tables of ours."""

import time
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from tests.engines.spark.conftest import Sql

ROWS = [(1, "a"), (2, "b"), (3, "c")]


def snapshots(sql: Sql, table: str) -> list[int]:
    return [row[0] for row in sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]


def strip_catalog(table: str) -> str:
    return table.removeprefix("c.")


def test_each_version_and_time_reads_its_rows(sql: Sql, table: str):
    sql(f"DELETE FROM {table} WHERE id = 1")
    first, second = snapshots(sql, table)
    [(second_ms,)] = sql(f"SELECT max(unix_millis(committed_at)) FROM {table}.snapshots")

    assert sql(f"SELECT * FROM {table} VERSION AS OF {first} ORDER BY id") == ROWS
    assert sql(f"SELECT * FROM {table} VERSION AS OF {second} ORDER BY id") == ROWS[1:]
    before, at = (f"timestamp_millis({ms})" for ms in (second_ms - 1, second_ms))
    assert sql(f"SELECT * FROM {table} TIMESTAMP AS OF {before} ORDER BY id") == ROWS
    assert sql(f"SELECT * FROM {table} TIMESTAMP AS OF {at} ORDER BY id") == ROWS[1:]


def test_branches_and_tags_are_written_read_and_fast_forwarded(sql: Sql, table: str):
    sql(f"ALTER TABLE {table} CREATE TAG v1 RETAIN 7 DAYS")
    sql(f"ALTER TABLE {table} CREATE BRANCH audit RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 DAYS")
    sql(f"INSERT INTO {table}.branch_audit VALUES (4, 'd')")
    sql(f"DELETE FROM {table}.branch_audit WHERE id = 1")

    assert sql(f"SELECT * FROM {table} ORDER BY id") == ROWS
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'audit' ORDER BY id") == [*ROWS[1:], (4, "d")]
    assert sql(
        f"SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms "
        f"FROM {table}.refs ORDER BY name"
    ) == [
        ("audit", "BRANCH", 7 * 86_400_000, 2, 3 * 86_400_000),
        ("main", "BRANCH", None, None, None),
        ("v1", "TAG", 7 * 86_400_000, None, None),
    ]

    [(branch, before, after)] = sql(f"CALL c.system.fast_forward('{strip_catalog(table)}', 'main', 'audit')")
    assert branch == "main"
    assert [before, after] == [snapshots(sql, table)[0], snapshots(sql, table)[-1]]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [*ROWS[1:], (4, "d")]
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'v1' ORDER BY id") == ROWS

    sql(f"ALTER TABLE {table} REPLACE TAG v1 AS OF VERSION {after}")
    assert sql(f"SELECT count(*) FROM {table}.tag_v1") == [(3,)]
    sql(f"ALTER TABLE {table} DROP BRANCH audit")
    sql(f"ALTER TABLE {table} DROP TAG v1")
    assert sql(f"SELECT name FROM {table}.refs") == [("main",)]


def test_rollback_and_cherrypick_move_the_table(sql: Sql, table: str):
    [first] = snapshots(sql, table)
    sql(f"INSERT INTO {table} VALUES (4, 'd')")
    second = snapshots(sql, table)[-1]

    assert sql(f"CALL c.system.rollback_to_snapshot('{strip_catalog(table)}', {first})") == [(second, first)]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == ROWS
    assert sql(f"CALL c.system.set_current_snapshot('{strip_catalog(table)}', {second})") == [(first, second)]
    assert sql(f"CALL c.system.rollback_to_snapshot('{strip_catalog(table)}', {first})") == [(second, first)]
    [(picked, current)] = sql(f"CALL c.system.cherrypick_snapshot('{strip_catalog(table)}', {second})")
    assert picked == second
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [*ROWS, (4, "d")]
    assert [row[0] for row in sql(f"SELECT snapshot_id FROM {table}.history ORDER BY made_current_at")][
        -1
    ] == current


def test_staged_commits_are_published_later(spark: SparkSession, sql: Sql, table: str):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    session = spark.newSession()
    session.conf.set("spark.wap.id", "load-1")
    sql(f"INSERT INTO {table} VALUES (4, 'd')", session)
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]

    sql(f"CALL c.system.publish_changes('{strip_catalog(table)}', 'load-1')")

    assert sql(f"SELECT * FROM {table} ORDER BY id") == [*ROWS, (4, "d")]


def test_metadata_tables_tell_what_was_written(sql: Sql, table: str):
    sql(f"DELETE FROM {table} WHERE id = 2")

    assert sql(f"SELECT operation FROM {table}.snapshots ORDER BY committed_at") == [
        ("append",),
        ("overwrite",),
    ]
    assert sql(f"SELECT count(*) FROM {table}.history") == [(2,)]
    assert sql(f"SELECT sum(record_count) FROM {table}.files") == [(2,)]
    assert sql(f"SELECT count(*) > 0, min(existing_data_files_count) FROM {table}.manifests")[0][0]
    assert sql(f"SELECT record_count FROM {table}.partitions") == [(2,)]
    assert sql(f"SELECT count(*) FROM {table}.metadata_log_entries") == [(3,)]
    assert sql(f"SELECT count(DISTINCT snapshot_id) FROM {table}.all_entries") == [(2,)]


def test_old_snapshots_expire(sql: Sql, table: str):
    for number in (4, 5):
        sql(f"INSERT INTO {table} VALUES ({number}, 'x')")
    sql(f"ALTER TABLE {table} CREATE TAG keep AS OF VERSION {snapshots(sql, table)[0]}")

    deleted = sql(
        f"CALL c.system.expire_snapshots(table => '{strip_catalog(table)}', retain_last => 1, "
        "older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )

    assert len(snapshots(sql, table)) == 2
    assert deleted[0][:3] == (0, 0, 0)
    assert sql(f"SELECT count(*) FROM {table}") == [(5,)]
    assert sql(f"SELECT * FROM {table} VERSION AS OF 'keep' ORDER BY id") == ROWS


def test_data_files_and_manifests_are_rewritten(sql: Sql, table: str):
    for number in range(4, 8):
        sql(f"INSERT INTO {table} VALUES ({number}, 'x')")
    before = sql(f"SELECT * FROM {table} ORDER BY id")
    [(files,)] = sql(f"SELECT count(*) FROM {table}.files")

    [(manifests, added)] = sql(f"CALL c.system.rewrite_manifests('{strip_catalog(table)}')")
    assert (manifests, added) == (5, 1)
    assert sql(f"SELECT count(*) FROM {table}.manifests") == [(1,)]

    rewritten = sql(
        f"CALL c.system.rewrite_data_files(table => '{strip_catalog(table)}', "
        "options => map('min-input-files', '2'))"
    )
    assert rewritten[0][:2] == (files, 1)
    assert sql(f"SELECT count(*) FROM {table}.files") == [(1,)]
    assert sql(f"SELECT * FROM {table} ORDER BY id") == before


def test_position_deletes_are_rewritten(sql: Sql, name: str):
    sql(
        f"CREATE TABLE {name} USING iceberg TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.delete.granularity' = 'partition') "
        "AS SELECT /*+ COALESCE(1) */ id FROM range(6)"
    )
    for number in (1, 2):
        sql(f"DELETE FROM {name} WHERE id = {number}")

    [(rewritten, added, *_)] = sql(
        f"CALL c.system.rewrite_position_delete_files(table => '{strip_catalog(name)}', "
        "options => map('rewrite-all', 'true'))"
    )

    assert (rewritten, added) == (2, 1)
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(0,), (3,), (4,), (5,)]


def test_orphan_files_are_found_and_no_file_of_the_table_among_them(
    spark: SparkSession, sql: Sql, table: str
):
    [(data_file,)] = sql(f"SELECT file_path FROM {table}.files LIMIT 1")
    folder = data_file.rsplit("/", 1)[0]
    spark.createDataFrame([(1,)], "id INT").coalesce(1).write.parquet(f"{folder}/orphan")

    two_days_ago = datetime.now(UTC) - timedelta(days=2)
    found = sql(
        f"CALL c.system.remove_orphan_files(table => '{strip_catalog(table)}', "
        f"older_than => TIMESTAMP '{two_days_ago:%Y-%m-%d %H:%M:%S}', dry_run => true)"
    )
    assert found == []

    # SQL keeps a day's distance; the action behind it takes the time it is given.
    jvm = spark.sparkContext._jvm
    assert jvm
    loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
    done = actions.deleteOrphanFiles(loaded).olderThan(int(time.time() * 1000) + 60_000).execute()
    removed = [str(path) for path in done.orphanFileLocations()]

    assert [path for path in removed if "/orphan/" in path]
    assert not [path for path in removed if "/orphan/" not in path], "files that the table's history needs"
    assert sql(f"SELECT * FROM {table} ORDER BY id") == ROWS


def test_statistics_are_computed_and_kept(sql: Sql, table: str):
    [(path,)] = sql(f"CALL c.system.compute_table_stats('{strip_catalog(table)}')")

    assert path.endswith(".stats")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == ROWS


def test_a_dropped_table_is_registered_from_its_metadata_file(sql: Sql, table: str):
    [(location,)] = sql(f"SELECT file FROM {table}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")
    [snapshot] = snapshots(sql, table)
    sql(f"DROP TABLE {table}")

    registered = sql(f"CALL c.system.register_table('{strip_catalog(table)}', '{location}')")

    assert registered[0][:2] == (snapshot, 3)
    sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [*ROWS, (4, "d")]


def test_a_client_that_loads_only_referenced_snapshots_reads_history_and_writes(sql: Sql, table: str):
    lean = f"lean.{strip_catalog(table)}"
    for number in (4, 5):
        sql(f"INSERT INTO {table} VALUES ({number}, 'x')")
    first = snapshots(sql, table)[0]

    sql(f"INSERT INTO {lean} VALUES (6, 'y')")

    assert sql(f"SELECT count(*) FROM {lean}") == [(6,)]
    assert sql(f"SELECT * FROM {lean} VERSION AS OF {first} ORDER BY id") == ROWS
    assert len(snapshots(sql, table)) == 4
    sql(f"ALTER TABLE {lean} SET TBLPROPERTIES ('a' = 'b')")
    assert len(snapshots(sql, table)) == 4
