"""What is accepted, what is refused, and what the same order again is."""

import asyncio

import msgspec
import pytest

from cynosure.common.delegated.payload import decode_order
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import BadInput, Conflict, Forbidden, OutcomeUnknown
from cynosure.testing.small_delegation import SmallDelegation, make_order

pytestmark = pytest.mark.anyio


async def test_an_order_becomes_a_task_with_all_it_says(small: SmallDelegation) -> None:
    order = make_order(requested_at="2026-01-01T00:00:00Z", traceparent="00-aa-bb-01")

    details = await small.service.submit(order)

    assert details.task_id == order.task_id
    assert (details.version, details.status, details.attempt_count) == (1, TaskStatus.SUBMITTED, 0)
    assert decode_order(details.task_payload) == order
    assert (details.correlation_id, details.table) == ("order-t", "lake.ns.t")
    assert details.created_ts.isoformat() == "2026-01-01T00:00:00+00:00"
    assert details.lease_acquired_ts is None
    assert await small.service.find(order.task_id) == details


async def test_the_same_order_again_is_the_same_task(small: SmallDelegation) -> None:
    first = await small.service.submit(make_order(requested_at="2026-01-01T00:00:00Z"))
    again = await small.service.submit(make_order(requested_at="2026-01-02T00:00:00Z", traceparent="x"))

    assert again == first
    assert len(await small.service.history(first.task_id)) == 1


async def test_many_at_once_are_one_task(small: SmallDelegation) -> None:
    found = await asyncio.gather(*(small.service.submit(make_order()) for _ in range(8)))

    assert len({each.task_id for each in found}) == 1


async def test_another_order_under_the_same_correlation_id_is_a_conflict(small: SmallDelegation) -> None:
    await small.service.submit(make_order())

    with pytest.raises(Conflict) as refused:
        await small.service.submit(make_order(properties={"dryRun": "true"}))

    assert refused.value.details["field"] == "common_payload.polaris_correlation_id"


async def test_another_realm_is_refused_by_its_name(small: SmallDelegation) -> None:
    with pytest.raises(Forbidden) as refused:
        await small.service.submit(make_order(realm="prod"))

    assert refused.value.details["realm"] == "prod"
    assert "default" in refused.value.fix
    assert small.memory.versions == {}


async def test_a_kind_that_is_not_done_here_is_refused(small: SmallDelegation) -> None:
    with pytest.raises(BadInput) as refused:
        await small.service.submit(make_order(task_type=TaskType.DATA_COMPACTION))

    assert refused.value.field == "common_payload.operation_type"
    assert "TABLE_PURGE" in refused.value.fix


async def test_the_job_refuses_instructions_before_anything_is_kept(small: SmallDelegation) -> None:
    with pytest.raises(BadInput) as refused:
        await small.service.submit(make_order(properties={"bad": "1"}))

    assert refused.value.field == "operation_parameters.properties.bad"
    assert small.memory.versions == {}


async def test_a_schedule_that_nobody_can_read_is_refused(small: SmallDelegation) -> None:
    with pytest.raises(BadInput) as refused:
        await small.service.submit(make_order(schedule="now and then"))

    assert refused.value.field == "common_payload.schedule"


@pytest.mark.parametrize("luck", ["applied, answer lost", "not applied, answer lost", "unavailable"])
async def test_a_lost_answer_is_asked_for_again(small: SmallDelegation, luck: str) -> None:
    lucks = iter([luck, luck])
    small.memory.rule = lambda name: next(lucks, "answered")  # type: ignore[return-value, arg-type]

    submitting = asyncio.ensure_future(small.service.submit(make_order()))
    await small.advance(5)

    assert (await submitting).version == 1


async def test_a_store_that_never_answers_leaves_it_unknown(small: SmallDelegation) -> None:
    small.memory.rule = lambda name: "not applied, answer lost"

    submitting = asyncio.ensure_future(small.service.submit(make_order()))
    await small.advance(60)

    with pytest.raises(OutcomeUnknown):
        await submitting


async def test_no_config_can_be_kept(small: SmallDelegation) -> None:
    """An order has no field for credentials, so none is in what is kept."""
    details = await small.service.submit(make_order())

    kept = msgspec.json.decode(details.task_payload)
    assert "config" not in kept
