"""The driver in its own process: what it is asked, what it asks, what it knows and shows (I97)."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, LeaseLost, NotFound
from cynosure.delegation.jobs.port import JobFailed, JobPostponed
from tests.delegation.spark.world import Lake
from tests.engines.poison import POISON

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def run(lake: Lake, job: str, **parameters: object) -> dict:
    context = lake.context(lake.order(TaskType.DATA_COMPACTION, ("ns", "t")))
    return lake.loop.run(lake.runner.run(job, parameters, context))


def test_a_job_asks_its_worker(s3_lake: Lake):
    s3_lake.sql("CREATE TABLE IF NOT EXISTS c.ns.asked (id BIGINT) USING iceberg")
    context = s3_lake.context(s3_lake.order(TaskType.DATA_COMPACTION, ("ns", "asked")))

    answer = s3_lake.loop.run(s3_lake.runner.run("test-ask", {}, context))

    assert answer["warehouse"] == s3_lake.served.name
    assert "s3.session-token" in answer["credentials"]
    assert [each.files for each in context.kept] == [3]
    assert answer["until_us"] > context.clock.now_us()
    assert answer["group"] == context.task_id
    assert TRACE in answer["description"]
    assert answer["pid"] == s3_lake.runner.driver_pid != os.getpid()


def test_errors_arrive_as_what_they_were(local_lake: Lake):
    with pytest.raises(JobFailed, match="It is broken") as failed:
        run(local_lake, "test-fail", how="job-failed")
    assert (failed.value.code, failed.value.status, failed.value.details["part"]) == ("BROKEN", 409, "axle")
    with pytest.raises(BadInput) as wrong:
        run(local_lake, "test-fail", how="bad-input")
    assert wrong.value.field == "a.b"
    with pytest.raises(NotFound):
        run(local_lake, "no-such-job")


def test_errors_of_java_are_told_apart_and_show_no_secret(local_lake: Lake):
    with pytest.raises(JobFailed) as refused:
        run(local_lake, "test-fail", how="refused")
    assert refused.value.code == "SPARK_REFUSED"
    with pytest.raises((JobPostponed, JobFailed)) as raised:
        run(local_lake, "test-fail", how="java")
    assert "hunter2" not in str(raised.value)


def test_the_driver_has_nobodys_credentials(local_lake: Lake):
    shown = run(local_lake, "test-environment")

    for variables in (shown["python"], shown["java"]):
        assert not set(POISON.values()) & set(variables.values()) - {"true"}
        assert not [name for name in variables if name.startswith("CYNOSURE_TEST")]
        assert variables["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert local_lake.served.login.credential.secret not in str(shown)
    assert local_lake.served.login.credential.secret not in str(local_lake.sql("SET"))
    assert shown["config"]["spark.io.encryption.enabled"] == "true"
    assert shown["config"]["spark.ui.enabled"] == "false"
    pid = local_lake.runner.driver_pid
    for child in (pid, *children(pid)):
        assert local_lake.served.login.credential.secret not in Path(f"/proc/{child}/cmdline").read_text()


def test_a_lease_that_is_lost_ends_the_job(local_lake: Lake):
    context = local_lake.context(local_lake.order(TaskType.DATA_COMPACTION, ("ns", "t")))

    async def lose() -> None:
        running = asyncio.create_task(local_lake.runner.run("test-slow", {}, context))
        await wait_for(lambda: bool(context.reported))
        context.lease.is_lost = True
        with pytest.raises(LeaseLost):
            await running

    local_lake.loop.run(lose())

    # Both executors are free again, long before the job would have ended.
    assert local_lake.sql("SELECT count(*) FROM range(0, 10, 1, 2)") == [(10,)]


def test_a_job_that_is_over_leaves_no_client_that_goes_on_renewing_its_token(local_lake: Lake):
    local_lake.sql("CREATE TABLE IF NOT EXISTS c.ns.closed (id BIGINT) USING iceberg")

    assert run(local_lake, "test-close", table="ns.closed") == {"is_closed": True}
    assert local_lake.sql("SELECT count(*) FROM c.ns.closed") == [(0,)]


def test_all_spark_jobs_of_a_task_are_found_when_it_is_cancelled(local_lake: Lake):
    """Iceberg runs some in threads and job groups of its own."""
    local_lake.sql(
        "CREATE TABLE IF NOT EXISTS c.ns.tagged (id BIGINT) USING iceberg",
        "INSERT INTO c.ns.tagged VALUES (1)",
        "INSERT INTO c.ns.tagged VALUES (2)",
    )
    found = run(local_lake, "test-tags", table="ns.tagged")
    assert found["jobs"] == found["tagged"] > found["groups"]


def children(pid: int | None) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


async def wait_for(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.05)


def test_workers_begin_ready_and_read_no_archive_again_for_each_task(local_lake: Lake):
    for worker in run(local_lake, "test-workers")["workers"]:
        assert any(name.startswith("spark-core") for name in worker["archives"]), worker
        assert worker["read_again"] == []
        assert worker["is_ready"]
