"""Tables are kept in shape: only dead files go, and queries answer what they did before (I99)."""

import time
import uuid

import pytest

from cynosure.common.delegated.payload import Expected
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, LeaseLost
from cynosure.delegation.jobs.compaction.job import CompactionJob
from cynosure.delegation.jobs.expiry.job import ExpiryJob
from cynosure.delegation.jobs.metadata_compaction.job import MetadataCompactionJob
from cynosure.delegation.jobs.port import Job, JobFailed
from tests.delegation.spark.oracle import assert_only_dead_files_went, look
from tests.delegation.spark.world import Lake, make_order

MERGE_ON_READ = ", ".join(f"'write.{verb}.mode'='merge-on-read'" for verb in ("delete", "update", "merge"))


def rows(first: int, end: int) -> str:
    """Of one file."""
    columns = "id, concat('d', id), cast(id % 2 AS INT)"
    return f"SELECT /*+ COALESCE(1) */ {columns} FROM range({first}, {end})"


def make_table(lake: Lake, version: int, *, partitioned: bool = False) -> tuple[str, str]:
    """Five small files, rows deleted in three steps, a branch and a tag on the way."""
    path = ("ns", f"t_{uuid.uuid4().hex[:8]}")
    name = f"c.{'.'.join(path)}"
    by = "PARTITIONED BY (part)" if partitioned else ""
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT, data STRING, part INT) USING iceberg {by} "
        f"TBLPROPERTIES ('format-version'='{version}', {MERGE_ON_READ})",
        f"INSERT INTO {name} {rows(0, 20)}",
        f"INSERT INTO {name} {rows(20, 40)}",
        f"ALTER TABLE {name} CREATE TAG early",
        f"DELETE FROM {name} WHERE id IN (3, 4)",
        f"ALTER TABLE {name} CREATE BRANCH side",
        f"INSERT INTO {name}.branch_side VALUES (1000, 'side', 0)",
        f"INSERT INTO {name} {rows(40, 60)}",
        f"DELETE FROM {name} WHERE id IN (23, 24)",
        f"UPDATE {name} SET data = 'new' WHERE id = 50",
    )
    return path


def ask(lake: Lake, path: tuple[str, ...]) -> list[list[tuple]]:
    name = f"c.{'.'.join(path)}"
    return [
        lake.sql(f"SELECT id, data, part FROM {name} {version} ORDER BY id")
        for version in ("", "VERSION AS OF 'side'", "VERSION AS OF 'early'")
    ]


@pytest.fixture(params=["local", "s3"])
def lake(request: pytest.FixtureRequest) -> Lake:
    found: Lake = request.getfixturevalue(f"{request.param}_lake")
    return found


@pytest.mark.s3
def test_a_table_is_compacted_and_cleaned_up(lake: Lake):
    """On local files v2 with position deletes; in an object store v3 with deletion vectors, partitioned."""
    is_v3 = lake.store is not None
    path = make_table(lake, 3 if is_v3 else 2, partitioned=is_v3)
    if not is_v3:
        given = {"table": ".".join(path), "value": 7}
        context = lake.context(lake.order(TaskType.DATA_COMPACTION, path))
        lake.loop.run(lake.runner.run("test-equality-delete", given, context))
    rows, before = ask(lake, path), look(lake, path)
    assert len(rows[0]) == 56 - (not is_v3)

    compacted = lake.work(CompactionJob(), path, min_input_files="2", rewrite_all="true")

    state = look(lake, path)
    assert ask(lake, path) == rows
    assert not assert_only_dead_files_went(before, state)
    assert compacted.details["files_after"] == (2 if is_v3 else 1)
    assert compacted.details["files_before"] > compacted.details["files_after"]
    assert compacted.details["delete_files_before"] > 0
    assert compacted.details["delete_files_after"] == 0

    merged = lake.work(MetadataCompactionJob(), path)
    assert merged.details["manifests_after"] <= merged.details["manifests_before"]
    assert merged.details["files_after"] == merged.details["files_before"]
    assert ask(lake, path) == rows

    before = look(lake, path)
    now = str(int(time.time() * 1000) + 1000)
    expired = lake.work(ExpiryJob(), path, older_than=now, retain_last="1")

    after = look(lake, path)
    assert ask(lake, path) == rows
    went = assert_only_dead_files_went(before, after)
    # Metadata files are the catalog's to keep or to delete.
    dead = {each for each in before.needed - after.needed if not each.endswith(".metadata.json")}
    assert went >= dead
    assert expired.files_deleted == len({each for each in went if not each.endswith(".metadata.json")}) > 0
    assert expired.bytes_deleted > 0
    assert expired.details["snapshots_after"] < expired.details["snapshots_before"]
    # main, the branch's two that differ, the tag.
    assert {"main", "side", "early"} == set(after.metadata["refs"])


def test_old_refs_go_when_they_are_told_to(local_lake: Lake):
    path = make_table(local_lake, 2)
    main = ask(local_lake, path)[0]
    before = look(local_lake, path)

    done = local_lake.work(
        ExpiryJob(), path, max_ref_age_days="0", max_snapshot_age_days="0", retain_last="1"
    )

    after = look(local_lake, path)
    assert local_lake.sql(f"SELECT id, data, part FROM c.{'.'.join(path)} ORDER BY id") == main
    assert done.details["refs_removed"] == ["early", "side"]
    assert set(after.metadata["refs"]) == {"main"}
    assert len(after.metadata["snapshots"]) == 1
    assert_only_dead_files_went(before, after)


def test_another_table_is_not_touched(local_lake: Lake):
    path = make_table(local_lake, 2)
    before = look(local_lake, path)
    order = local_lake.order(TaskType.SNAPSHOT_EXPIRY, path, Expected(table_uuid=str(uuid.uuid4())))

    with pytest.raises(JobFailed) as failed:
        local_lake.loop.run(ExpiryJob().run(local_lake.context(order)))

    assert (failed.value.code, failed.value.status) == ("TABLE_MISMATCH", 409)
    assert look(local_lake, path) == before


def test_nothing_is_changed_after_the_lease_is_lost(local_lake: Lake):
    path = make_table(local_lake, 2)
    before = look(local_lake, path)
    for job, properties in (
        (CompactionJob(), {"rewrite_all": "true"}),
        (ExpiryJob(), {"max_snapshot_age_days": "0", "max_ref_age_days": "0"}),
        (MetadataCompactionJob(), {}),
    ):
        context = local_lake.context(local_lake.order(job.task_type, path, **properties))
        # Ours when the worker looks, not any more when the driver does.
        context.lease.losing_at = 2
        with pytest.raises(LeaseLost):
            local_lake.loop.run(job.run(context))
    assert look(local_lake, path) == before


@pytest.mark.parametrize(
    ("job", "properties", "field"),
    [
        (ExpiryJob(), {"older-then": "1"}, "older-then"),
        (ExpiryJob(), {"retain_last": "0"}, "retain_last"),
        (ExpiryJob(), {"older_than": "yesterday"}, "older_than"),
        (ExpiryJob(), {"max_snapshot_age_days": "nan"}, "max_snapshot_age_days"),
        (CompactionJob(), {"compaction_strategy": "zip"}, "compaction_strategy"),
        (CompactionJob(), {"sort_order": "id", "compaction_strategy": "binpack"}, "sort_order"),
        (CompactionJob(), {"target_file_size_bytes": "-1"}, "target_file_size_bytes"),
        (CompactionJob(), {"min-input-files": "2", "min_input_files": "3"}, "min_input_files"),
        (CompactionJob(), {"partial_progress_enabled": "maybe"}, "partial_progress_enabled"),
        (MetadataCompactionJob(), {"spec_id": "x"}, "spec_id"),
    ],
)
def test_instructions_that_cannot_be_followed_are_refused(job: Job, properties: dict[str, str], field: str):
    order = make_order("c", job.task_type, ("a", "b"), None, **properties)
    with pytest.raises(BadInput) as wrong:
        job.check(order)
    assert wrong.value.field == f"operation_parameters.properties.{field}"
    assert wrong.value.fix
