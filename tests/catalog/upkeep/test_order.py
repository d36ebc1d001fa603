"""One task ordered by hand."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.upkeep.assess import Decision
from cynosure.catalog.upkeep.list_maintenance import list_maintenance
from cynosure.catalog.upkeep.order_maintenance import Wanted, order_maintenance
from cynosure.catalog.upkeep.plan_maintenance import About
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, Conflict, Unavailable
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.common.telemetry.tracing import span, start_tracing
from cynosure.testing.small_catalog import ROOT
from tests.catalog.upkeep.made import COMPACTION, ON_T, Kept, T, U, append, open_kept, policy
from tests.common.telemetry.collector import run_collector

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with open_kept(tmp_path) as opened:
        yield opened


async def test_it_is_ordered_recorded_and_looked_after(kept: Kept) -> None:
    details = await order_maintenance(kept.catalog, ROOT, T, Wanted("rewrite_manifests", {"spec_id": "0"}))

    (order,) = kept.executor.orders
    assert (order.task_type, order.properties) == (TaskType.METADATA_COMPACTION, {"spec_id": "0"})
    assert details.task_id == order.task_id
    assert order.expected.table_uuid is not None
    await kept.end_all(result_summary="rewrote 3")
    await kept.round()
    (entry,) = (await list_maintenance(kept.catalog, ROOT, Paging(size=9))).entries
    (run,) = entry.upkeep.runs
    assert (run.task_id, run.ordered_by, run.outcome, run.text) == (
        order.task_id,
        "root",
        "SUCCESS",
        "rewrote 3",
    )


async def test_the_task_is_in_the_trace_of_who_ordered_it(kept: Kept) -> None:
    with run_collector() as collector:
        close = start_tracing(TelemetrySettings(otel_endpoint=collector.url), service="test")
        try:
            with span("request"):
                await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))
        finally:
            close()
        spans = {each.name: each for each in collector.spans()}

    request, ordering = spans["request"], spans["catalog.order_maintenance"]
    assert ordering.trace_id == request.trace_id
    assert ordering.trace_id.hex() in (kept.executor.orders[0].traceparent or "")


async def test_two_orders_are_two_tasks_one_after_the_other(kept: Kept) -> None:
    first = await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))
    with pytest.raises(Conflict) as refused:
        await order_maintenance(kept.catalog, ROOT, T, Wanted("TABLE_COMPACTION"))
    assert refused.value.details["task_id"] == first.task_id
    other = await order_maintenance(kept.catalog, ROOT, T, Wanted("EXPIRE_SNAPSHOTS"))
    await kept.end_all()
    await kept.round()
    second = await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))

    assert len({first.task_id, other.task_id, second.task_id}) == 3


async def test_the_schedule_counts_from_it(kept: Kept) -> None:
    await append(kept.catalog, 9)
    await policy(kept.catalog, "p", COMPACTION, ON_T, schedule="PT1H")
    await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))

    assert await kept.round() == []
    assert (await kept.decisions())["ns.t", "DATA_COMPACTION"] is Decision.RUNNING
    await kept.end_all()
    assert await kept.round() == []
    await kept.clock.advance(3600)
    assert len(await kept.round()) == 1


@pytest.mark.parametrize("operation", ["TABLE_PURGE", "PURGE_TABLE", "SYNCHRONOUS_TABLE_PURGE", "", "VACUUM"])
async def test_what_cannot_be_ordered(kept: Kept, operation: str) -> None:
    with pytest.raises(BadInput) as refused:
        await order_maintenance(kept.catalog, ROOT, T, Wanted(operation))

    assert refused.value.field == "operation"
    assert kept.executor.orders == []


async def test_a_purge_may_be_tried_dry(kept: Kept) -> None:
    await order_maintenance(kept.catalog, ROOT, T, Wanted("TABLE_PURGE", {"dryRun": "true"}))

    assert [order.task_type for order in kept.executor.orders] == [TaskType.TABLE_PURGE]
    with pytest.raises(BadInput):
        await order_maintenance(kept.catalog, ROOT, T, Wanted("TABLE_PURGE", {"dryRun": "perhaps"}))


async def test_a_table_that_is_missing_and_a_service_that_is(kept: Kept) -> None:
    with pytest.raises(NoSuchTable):
        await order_maintenance(kept.catalog, ROOT, Identifier(("ns",), "missing"), Wanted("COMPACTION"))
    kept.executor.is_delegated = False
    with pytest.raises(BadInput, match="delegation service"):
        await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))
    kept.executor.is_delegated = True
    kept.executor.refusal = Unavailable("away")
    with pytest.raises(Unavailable):
        await order_maintenance(kept.catalog, ROOT, T, Wanted("COMPACTION"))
    assert (await list_maintenance(kept.catalog, ROOT, Paging(size=9))).entries == []


async def test_runs_in_pages_and_of_a_part(kept: Kept) -> None:
    for table in (T, U):
        for operation in ("COMPACTION", "REMOVE_ORPHAN_FILES", "EXPIRE_SNAPSHOTS"):
            await order_maintenance(kept.catalog, ROOT, table, Wanted(operation))

    found, token = [], None
    while True:
        page = await list_maintenance(kept.catalog, ROOT, Paging(token=token, size=4))
        found += [(each.path, str(each.upkeep.task_type)) for each in page.entries]
        token = page.next_token
        if token is None:
            break

    assert len(found) == len(set(found)) == 6
    assert found[:3] == [
        (("ns", "t"), "DATA_COMPACTION"),
        (("ns", "t"), "ORPHAN_FILE_REMOVAL"),
        (("ns", "t"), "SNAPSHOT_EXPIRY"),
    ]
    of_deep = await list_maintenance(kept.catalog, ROOT, Paging(size=9), About(("ns", "deep")))
    assert {each.path for each in of_deep.entries} == {("ns", "deep", "u")}
    of_t = await list_maintenance(kept.catalog, ROOT, Paging(size=9), About(("ns",), "t"))
    assert {each.path for each in of_t.entries} == {("ns", "t")}
