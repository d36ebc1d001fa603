"""A drop with purge, and what is left and told when it goes wrong: every row of the table (I92)."""

import asyncio
from datetime import timedelta

import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.purge_errors import PurgeFailed, PurgeIncomplete, PurgeNotOrdered, PurgePending
from cynosure.catalog.purging.outbox import look_after_purges
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadInput, OutcomeUnknown, Unavailable
from cynosure.testing.small_catalog import ROOT
from tests.catalog.purging.conftest import Purging
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio


async def is_gone(purging: Purging) -> bool:
    try:
        await load_table(purging.catalog, ROOT, T)
    except NoSuchTable:
        return True
    return False


async def has_places(purging: Purging) -> bool:
    return bool(await (await purging.catalog.read()).scan("locations", limit=1))


async def purge(purging: Purging) -> None:
    await drop_table(purging.catalog, ROOT, T, is_purge_requested=True)


async def test_a_drop_ends_when_the_last_file_is_gone_and_leaves_nothing(purging: Purging):
    made = await make(purging.catalog)
    drop = await purging.start_drop()
    order = purging.executor.orders[0]
    tombstone = await purging.tombstone()

    assert (order.table.path, order.table.table_entity_id) == (("ns", "t"), str(tombstone.entity_id))
    assert order.correlation_id == f"purge-{purging.catalog.entity.id}-{tombstone.drop_id}"
    assert order.task_id == tombstone.task_id
    assert order.expected.table_uuid == decoded(made)["table-uuid"]
    assert order.expected.location == decoded(made)["location"]
    assert await is_gone(purging)
    assert not drop.done()
    await purging.succeed()
    await asyncio.wait_for(drop, 10)

    assert await purging.find_tombstone() is None
    assert (await list_dropped(purging.catalog, ROOT, size=5)).entries == []
    assert not await has_places(purging)


async def test_row_1_a_service_that_is_down_leaves_the_table_as_it_was(purging: Purging):
    made = await make(purging.catalog)
    purging.executor.refusal = Unavailable("Connection refused")

    with pytest.raises(PurgeNotOrdered) as refused:
        await purge(purging)

    assert "as they were" in str(refused.value)
    assert (await load_table(purging.catalog, ROOT, T)).load_body() == made.load_body()
    assert await purging.find_tombstone() is None
    assert (await list_dropped(purging.catalog, ROOT, size=5)).entries == []


async def test_row_1_an_order_that_is_refused_leaves_the_table_as_it_was(purging: Purging):
    made = await make(purging.catalog)
    purging.executor.refusal = BadInput("No such realm", field="realm", fix="Ask another service.")

    with pytest.raises(PurgeFailed, match="No such realm"):
        await purge(purging)

    assert (await load_table(purging.catalog, ROOT, T)).load_body() == made.load_body()


async def test_row_1_an_order_that_got_lost_is_asked_for_and_the_table_put_back(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    made = await make(purging.catalog)

    async def lose(order: TaskOrder) -> TaskDetails:
        raise OutcomeUnknown("No answer")

    monkeypatch.setattr(purging.executor, "purge_table", lose)
    with pytest.raises(PurgeNotOrdered):
        await purge(purging)

    assert (await load_table(purging.catalog, ROOT, T)).load_body() == made.load_body()


async def test_an_order_whose_answer_got_lost_is_found_and_waited_for(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    await make(purging.catalog)
    arrive = purging.executor.purge_table

    async def lose_answer(order: TaskOrder) -> TaskDetails:
        await arrive(order)
        raise OutcomeUnknown("No answer")

    monkeypatch.setattr(purging.executor, "purge_table", lose_answer)
    drop = await purging.start_drop()
    await purging.succeed()

    await asyncio.wait_for(drop, 10)
    assert await is_gone(purging)


async def test_an_order_nobody_knows_of_is_left_to_the_outbox(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    await make(purging.catalog)

    async def lose(*_: object) -> TaskDetails:
        raise OutcomeUnknown("No answer")

    with monkeypatch.context() as cut:
        cut.setattr(purging.executor, "purge_table", lose)
        cut.setattr(purging.executor, "find", lose)
        with pytest.raises(PurgePending, match="cynosure tasks watch"):
            await purge(purging)
    assert purging.executor.orders == []

    await look_after_purges(purging.catalog, ROOT)
    assert len(purging.executor.orders) == 1
    await purging.succeed()
    assert await look_after_purges(purging.catalog, ROOT) == 1
    assert await purging.find_tombstone() is None
    assert await is_gone(purging)


async def test_row_2_without_credentials_nothing_is_begun_and_the_table_is_as_it_was(purging: Purging):
    made = await make(purging.catalog)
    drop = await purging.start_drop()
    await purging.fail("CREDENTIAL_VENDING_FAILED", is_begun=False)

    with pytest.raises(PurgeFailed, match="CREDENTIAL_VENDING_FAILED: it went wrong"):
        await asyncio.wait_for(drop, 10)

    assert (await load_table(purging.catalog, ROOT, T)).load_body() == made.load_body()
    assert await purging.find_tombstone() is None
    # And it can be dropped again, by another task.
    again = await purging.start_drop()
    assert len({order.task_id for order in purging.executor.orders}) == 2
    await purging.succeed()
    await asyncio.wait_for(again, 10)


async def test_row_3_what_was_begun_stays_dropped_and_is_tried_again_by_asking_again(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    await purging.fail("STORAGE_REFUSED", is_begun=True)
    with pytest.raises(PurgeIncomplete, match="STORAGE_REFUSED") as told:
        await asyncio.wait_for(drop, 10)
    tombstone = await purging.tombstone()

    assert f"cynosure tasks retry {tombstone.task_id}" in str(told.value)
    assert (tombstone.state, tombstone.last_error) == ("purging", "STORAGE_REFUSED: it went wrong")
    assert await is_gone(purging)
    assert await look_after_purges(purging.catalog, ROOT) == 0
    assert await purging.tombstone() == tombstone
    again = await purging.start_drop()
    task = await purging.executor.find("default", tombstone.task_id)
    assert task is not None
    assert task.status is TaskStatus.RETRY_SCHEDULED
    await purging.succeed()
    await asyncio.wait_for(again, 10)
    assert await purging.find_tombstone() is None


async def test_row_4_a_service_that_dies_after_the_last_file_is_asked_again_later(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    drop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await drop
    await purging.succeed()
    purging.executor.refusal = Unavailable("Connection refused")
    assert await look_after_purges(purging.catalog, ROOT) == 0
    assert (await purging.tombstone()).state == "purging"

    purging.executor.refusal = None
    assert await look_after_purges(purging.catalog, ROOT) == 1

    assert await purging.find_tombstone() is None
    assert not await has_places(purging)


async def test_a_service_that_goes_away_while_somebody_waits_is_waited_for(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    await make(purging.catalog)
    answer, failures = purging.executor.wait, [Unavailable("Connection reset"), OutcomeUnknown("No answer")]

    async def wait(realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:
        if failures:
            raise failures.pop()
        return await answer(realm, task_id, timeout_s)

    monkeypatch.setattr(purging.executor, "wait", wait)
    drop = await purging.start_drop()
    await purging.succeed()

    await asyncio.wait_for(drop, 10)
    assert failures == []


async def test_a_task_that_the_service_lost_is_ordered_again(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    tombstone = await purging.tombstone()
    async with purging.executor._changed:
        purging.executor.forget(tombstone.task_id)
        purging.executor._changed.notify_all()
    await purging.executor.until(lambda: len(purging.executor.orders) == 2)

    await purging.succeed()
    await asyncio.wait_for(drop, 10)


async def test_who_has_waited_long_enough_is_told_how_to_watch_while_it_goes_on(purging: Purging):
    await make(purging.catalog)
    purging.use(sync_timeout=timedelta(milliseconds=50))

    with pytest.raises(PurgePending) as told:
        await purge(purging)
    tombstone = await purging.tombstone()

    assert f"cynosure tasks watch {tombstone.task_id}" in str(told.value)
    await purging.succeed()
    assert await look_after_purges(purging.catalog, ROOT) == 1
    assert await purging.find_tombstone() is None


async def test_a_server_that_is_about_to_end_lets_those_go_who_wait(
    purging: Purging, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cynosure.catalog.purging.purge._LONGEST_WAIT_S", 0.05)
    await make(purging.catalog)
    drop = await purging.start_drop()

    purging.directory.shared.watching.stop()

    with pytest.raises(PurgePending):
        await asyncio.wait_for(drop, 10)
    assert (await purging.tombstone()).last_error == ""


async def test_a_task_that_says_done_but_never_asked_to_begin_drops_nothing_for_good(purging: Purging):
    await make(purging.catalog)
    drop = await purging.start_drop()
    tombstone = await purging.tombstone()
    await purging.executor.end(tombstone.task_id)

    with pytest.raises(PurgeFailed, match=r"PURGE_NOT_BEGUN.*cynosure tables restore"):
        await asyncio.wait_for(drop, 10)

    assert (await purging.tombstone()).state == "restorable"


async def test_a_task_that_may_delete_and_failed_before_it_did_is_not_put_back(purging: Purging):
    """Who has it tried again at this moment may delete, without asking for more."""
    await make(purging.catalog)
    drop = await purging.start_drop()
    task_id = await purging.begin()
    await purging.executor.end(task_id, TaskStatus.FAILURE, error_code="UNEXPECTED")

    with pytest.raises(PurgeIncomplete, match=r"may be gone.*cynosure tasks retry"):
        await asyncio.wait_for(drop, 10)

    assert await is_gone(purging)
    assert (await purging.tombstone()).state == "purging"
