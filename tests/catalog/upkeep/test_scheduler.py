"""Policies become tasks: when they are due, where they count, once each (I100)."""

from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.catalog.errors import OwnedElsewhere
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.upkeep.assess import Decision
from cynosure.catalog.upkeep.list_maintenance import list_maintenance
from cynosure.catalog.upkeep.order_maintenance import Wanted, order_maintenance
from cynosure.catalog.upkeep.runs import load_known
from cynosure.catalog.upkeep.scheduler import FORGET_AFTER, upkeep_tasks
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.testing.small_catalog import ROOT
from tests.catalog.external import as_external
from tests.catalog.manifests.writing import load, watch
from tests.catalog.upkeep.made import (
    COMPACTION,
    DAY,
    EXPIRY,
    MANIFESTS,
    ON_CATALOG,
    ON_NS,
    ON_T,
    ORPHANS,
    T,
    U,
    append,
    open_kept,
    policy,
)

pytestmark = pytest.mark.anyio

COMPACT, REMOVE = TaskType.DATA_COMPACTION, TaskType.ORPHAN_FILE_REMOVAL


async def test_an_interval_begins_at_once_and_comes_again(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT6H")

        assert await kept.round() == [("ns.t", REMOVE)]
        await kept.end_all()
        assert await kept.round() == []
        await kept.clock.advance(6 * 3600 - 1)
        assert await kept.round() == []
        await kept.clock.advance(1)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_a_cron_line_waits_for_its_time(tmp_path: Path) -> None:
    # The clock begins at midnight.
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="0 3 * * *")

        assert await kept.round() == []
        await kept.clock.advance(3 * 3600 + 600)
        assert await kept.round() == [("ns.t", REMOVE)]
        await kept.end_all()
        await kept.clock.advance(3600)
        assert await kept.round() == []
        await kept.clock.advance(DAY)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_the_default_schedule_is_a_setting(tmp_path: Path) -> None:
    async with open_kept(tmp_path, default_schedule="0 12 * * *") as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)

        assert await kept.round() == []
        await kept.clock.advance(12 * 3600)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_a_window_over_midnight(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await kept.clock.advance(12 * 3600)
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT2H", window="22:00-02:00")

        assert (await kept.plan())["ns.t", REMOVE] == (
            Decision.OUTSIDE_WINDOW,
            "tasks begin within 22:00-02:00",
        )
        assert await kept.round() == []
        await kept.clock.advance(10 * 3600)
        assert await kept.round() == [("ns.t", REMOVE)]
        await kept.end_all()
        await kept.clock.advance(3 * 3600)
        assert await kept.round() == [("ns.t", REMOVE)], "at one o'clock of the next day"
        await kept.end_all()
        await kept.clock.advance(3 * 3600)
        assert await kept.round() == []


async def test_what_is_ordered(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, max_orphan_file_age_in_days=7)
        table = await load(kept.catalog)

        await kept.round()

        (order,) = kept.executor.orders
        due_us = kept.clock.now_us()
        assert order.task_type is REMOVE
        assert order.realm == "default"
        assert order.correlation_id == (
            f"upkeep-{kept.catalog.entity.id}-{table.state.id}-ORPHAN_FILE_REMOVAL-{due_us}"
        )
        assert order.table.table_entity_id == str(table.state.id)
        assert (order.table.catalog_name, order.table.path) == ("lake", ("ns", "t"))
        assert order.expected.table_uuid == table.metadata.table_uuid
        assert order.expected.location == table.metadata.location
        assert order.properties == {"max_orphan_file_age_in_days": "7", "dry_run": "false"}
        assert order.requested_at == "2026-01-01T00:00:00Z"
        assert order.schedule is None


async def test_compaction_waits_for_small_files(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", COMPACTION, ON_T, schedule="PT1H", min_input_files=3)

        assert await kept.round() == [], "there is no snapshot"
        await append(kept.catalog, 2)
        await kept.clock.advance(3600)
        assert (await kept.plan())["ns.t", COMPACT] == (
            Decision.BELOW_THRESHOLDS,
            "2 of 2 files are small (from 3 and 10% on), 0 have deletes (from 10% on)",
        )
        assert await kept.round() == []
        await append(kept.catalog, 1)
        assert await kept.round() == [], "it was looked at, and is not due again"
        decision, why = (await kept.plan())["ns.t", COMPACT]
        assert (decision, "2 of 2 files are small" in why) == (Decision.NOT_DUE, True)
        await kept.clock.advance(3600)
        assert await kept.round() == [("ns.t", COMPACT)]


async def test_manifests_are_counted_and_snapshots_are_judged_by_age(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=5) as kept:
        for _ in range(3):
            await append(kept.catalog, 1)
        await append(kept.catalog, 1, U)
        await policy(kept.catalog, "m", MANIFESTS, ON_NS, schedule="PT1H", min_manifests=3)
        await policy(kept.catalog, "e", EXPIRY, ON_NS, schedule="PT1H", max_snapshot_age_days=1)

        assert await kept.round() == [("ns.t", TaskType.METADATA_COMPACTION)]
        await kept.end_all()
        await kept.clock.advance(DAY + 1)
        assert await kept.round() == [("ns.t", TaskType.SNAPSHOT_EXPIRY)], "of ns.deep.u one is kept"


async def test_a_table_that_is_as_the_task_left_it_is_left_alone(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", COMPACTION, ON_T, schedule="PT1H", min_input_files=1)
        await append(kept.catalog, 2)
        await kept.round()
        left = (await load(kept.catalog)).state.current_snapshot_id
        await kept.end_all(execution_result=ExecutionResult(details={"snapshot_id": str(left)}))
        await kept.clock.advance(3600)
        files = watch(kept.catalog)

        assert await kept.round() == []
        assert (await kept.decisions())["ns.t", COMPACT] is Decision.UNCHANGED
        assert files.read_paths == []
        await append(kept.catalog, 1)
        assert await kept.round() == [("ns.t", COMPACT)]


async def test_files_are_read_only_for_what_is_due(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await append(kept.catalog, 2)
        await policy(kept.catalog, "p", COMPACTION, ON_T, schedule="0 3 * * *")
        files = watch(kept.catalog)

        await kept.round()
        assert files.read_paths == []


async def test_only_so_many_at_once_the_longest_waiting_first(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=1) as kept:
        await policy(kept.catalog, "late", ORPHANS, ON_T, schedule="0 2 * * *")
        await kept.clock.advance(60)
        await policy(kept.catalog, "early", ORPHANS, ON_NS, schedule="0 1 * * *")
        await kept.clock.advance(3 * 3600)

        assert await kept.decisions() == {
            ("ns.t", REMOVE): Decision.WAITING,
            ("ns.deep.u", REMOVE): Decision.RUN,
        }
        assert await kept.round() == [("ns.deep.u", REMOVE)]
        assert await kept.round() == []
        await kept.end_all()
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_one_task_of_a_table_at_once(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=5) as kept:
        await append(kept.catalog, 9)
        await policy(kept.catalog, "a", ORPHANS, ON_T)
        await kept.clock.advance(1)
        await policy(kept.catalog, "b", COMPACTION, ON_T)

        assert await kept.round() == [("ns.t", REMOVE)]
        assert (await kept.decisions())["ns.t", COMPACT] is Decision.WAITING
        await kept.end_all()
        assert await kept.round() == [("ns.t", COMPACT)]


async def test_the_nearest_policy_counts(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=5) as kept:
        await policy(kept.catalog, "c", ORPHANS, ON_CATALOG, max_orphan_file_age_in_days=1)
        await policy(kept.catalog, "n", ORPHANS, ON_NS, max_orphan_file_age_in_days=2)
        near = await policy(kept.catalog, "t", ORPHANS, ON_T, max_orphan_file_age_in_days=3)

        await kept.round()
        told = {
            order.table.table_name: order.properties["max_orphan_file_age_in_days"]
            for order in kept.executor.orders
        }
        assert told == {
            "t": "3",
            "u": "2",
        }
        await kept.end_all()
        await detach_policy(kept.catalog, ROOT, near, ON_T)
        await kept.clock.advance(DAY)
        await kept.round()
        assert {order.properties["max_orphan_file_age_in_days"] for order in kept.executor.orders[2:]} == {
            "2"
        }


async def test_what_is_detached_or_switched_off_orders_nothing_more(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        path = await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT1H")
        await kept.round()
        await kept.end_all()

        await update_policy(kept.catalog, ROOT, path, PolicyUpdate(content='{"enable":false}'))
        await kept.clock.advance(2 * 3600)
        assert await kept.round() == []
        assert (await kept.decisions())["ns.t", REMOVE] is Decision.DISABLED
        await detach_policy(kept.catalog, ROOT, path, ON_T)
        await update_policy(kept.catalog, ROOT, path, PolicyUpdate(content='{"enable":true}'))
        assert await kept.round() == []
        assert await kept.plan() == {}
        await attach_policy(kept.catalog, ROOT, path, ON_T, {})
        await kept.clock.advance(DAY)
        assert await kept.round() == [("ns.t", REMOVE)]


async def test_a_renamed_table_is_the_same_and_a_dropped_one_is_left_alone(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T, schedule="PT1H")
        await kept.round()
        await rename_table(kept.catalog, ROOT, T, Identifier(("ns",), "renamed"))
        assert (await kept.decisions())["ns.renamed", REMOVE] is Decision.RUNNING
        await kept.end_all()
        await kept.clock.advance(3600)
        assert await kept.round() == [("ns.renamed", REMOVE)]

        await drop_table(kept.catalog, ROOT, Identifier(("ns",), "renamed"))
        await kept.end_all()
        await kept.clock.advance(3600)
        assert await kept.round() == []
        (seen,) = (await list_maintenance(kept.catalog, ROOT, Paging(size=5))).entries
        assert (seen.path, seen.is_gone) == (("ns", "t"), True)
        assert [run.outcome for run in seen.upkeep.runs] == ["SUCCESS", "SUCCESS"]

        kept.clock.step_wall(FORGET_AFTER.total_seconds() + 1)
        # The lease of the ids is renewed.
        await kept.clock.advance(600)
        await kept.round()
        assert await load_known(kept.catalog) == {}


async def test_without_a_service_nothing_is_ordered(tmp_path: Path) -> None:
    async with open_kept(tmp_path, is_delegated=False) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)

        assert await kept.round() == []
        assert (await kept.decisions())["ns.t", REMOVE] is Decision.NO_SERVICE


async def test_switched_off_by_a_setting(tmp_path: Path) -> None:
    async with open_kept(tmp_path, enabled=False) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)

        assert await kept.round() == []
        assert (await kept.decisions())["ns.t", REMOVE] is Decision.OFF


async def test_tables_of_another_catalog_are_left_to_their_owner(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)
        external = kept._replace(catalog=as_external(kept.catalog))

        assert await external.round() == []
        assert (await external.decisions())["ns.t", REMOVE] is Decision.EXTERNAL
        with pytest.raises(OwnedElsewhere):
            await order_maintenance(external.catalog, ROOT, T, Wanted("COMPACTION"))


async def test_a_restricted_table_is_left_to_people(tmp_path: Path) -> None:
    async with open_kept(tmp_path) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_NS)
        path = Identifier(("ns",), "hide")
        content = '{"enable":true,"filter":"id > 1"}'
        await create_policy(kept.catalog, ROOT, CreatePolicy(path, "cynosure.row-filter", content))
        await attach_policy(kept.catalog, ROOT, path, ON_T, {})

        assert await kept.round() == [("ns.deep.u", REMOVE)]
        assert (await kept.decisions())["ns.t", REMOVE] is Decision.RESTRICTED


async def test_what_became_of_it(tmp_path: Path) -> None:
    async with open_kept(tmp_path, concurrent=5) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_NS, schedule="PT1H")
        await kept.round()
        first, second = kept.executor.orders
        result = ExecutionResult(
            files_deleted=3,
            bytes_deleted=30,
            details={"files_before": 9, "files_after": 2, "bytes_before": 900, "bytes_after": True},
        )
        await kept.executor.end(first.task_id, execution_result=result, result_summary="done")
        await kept.executor.end(second.task_id, TaskStatus.FAILURE, result_summary="no")
        await kept.clock.advance(5)
        await kept.round()

        by_task = {run.task_id: run for run in await kept.runs()}
        done, failed = by_task[first.task_id], by_task[second.task_id]
        assert (done.outcome, done.files_deleted, done.bytes_deleted, done.text) == ("SUCCESS", 3, 30, "done")
        assert (done.measured.files_before, done.measured.files_after) == (9, 2)
        assert (done.measured.bytes_before, done.measured.bytes_after) == (900, None)
        assert done.ended_us == kept.clock.now_us()
        assert (failed.outcome, failed.text) == ("FAILURE", "no")


async def test_the_task_of_the_server_serves_all_catalogs(tmp_path: Path) -> None:
    async with open_kept(tmp_path, interval=timedelta(minutes=3)) as kept:
        await policy(kept.catalog, "p", ORPHANS, ON_T)
        (task,) = upkeep_tasks(kept.directory, kept.directory.shared.delegation)

        record = await kept.directory.shared.persistence.tasks.run_now(task)

        assert (task.name, task.every_s) == ("catalog.maintenance", 180)
        assert record.text == "1 done, 0 catalogs failed"
        assert len(kept.executor.orders) == 1
