"""Listing, waiting, trying again and giving up."""

import asyncio

import pytest

from cynosure.catalog.task_executor import TaskQuery
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import BadInput, BadPageToken, Conflict, NotFound, Unavailable
from cynosure.delegation.jobs.port import JobFailed
from cynosure.testing.small_delegation import Gate, SmallDelegation, make_order, stumble

pytestmark = pytest.mark.anyio


async def submit_some(small: SmallDelegation, count: int) -> list[str]:
    ids = []
    for number in range(count):
        ids.append((await small.service.submit(make_order(f"t{number}"))).task_id)
        await small.clock.advance(1)
    return ids


async def test_pages_hold_all_tasks_once_the_newest_first(small: SmallDelegation) -> None:
    ids = await submit_some(small, 5)
    found: list[str] = []
    token: str | None = None
    for _ in range(3):
        page = await small.service.list(TaskQuery(page_size=2, page_token=token))
        found += [each.task_id for each in page.tasks]
        token = page.next_page_token

    assert found == ids[::-1]
    assert token is None


async def test_a_listing_shows_what_is_asked_for(small: SmallDelegation) -> None:
    ids = await submit_some(small, 3)
    await small.service.cancel(ids[1])

    failed = await small.service.list(TaskQuery(status=TaskStatus.FAILURE))
    other = await small.service.list(TaskQuery(task_type=TaskType.DATA_COMPACTION))
    elsewhere = await small.service.list(TaskQuery(catalog="sea"))

    assert [each.task_id for each in failed.tasks] == [ids[1]]
    assert (other.tasks, elsewhere.tasks) == ([], [])


@pytest.mark.parametrize("size", [0, -1, 1_001])
async def test_a_page_has_a_size_within_bounds(small: SmallDelegation, size: int) -> None:
    with pytest.raises(BadInput) as refused:
        await small.service.list(TaskQuery(page_size=size))

    assert refused.value.field == "page_size"


async def test_a_token_is_for_its_own_listing_only(small: SmallDelegation) -> None:
    await submit_some(small, 3)
    token = (await small.service.list(TaskQuery(page_size=1))).next_page_token
    assert token is not None

    for query in (
        TaskQuery(page_token=token, status=TaskStatus.SUBMITTED),
        TaskQuery(page_token=token[:-2] + "AA"),
        TaskQuery(page_token="garbage"),
    ):
        with pytest.raises(BadPageToken):
            await small.service.list(query)


async def test_another_instance_goes_on_with_a_token(small: SmallDelegation) -> None:
    ids = await submit_some(small, 2)
    token = (await small.service.list(TaskQuery(page_size=1))).next_page_token

    page = await small.make_service().list(TaskQuery(page_token=token))

    assert [each.task_id for each in page.tasks] == [ids[0]]


async def test_who_waits_is_told_at_once(small: SmallDelegation) -> None:
    gate = Gate()
    small.job.script = [gate]
    task = await small.service.submit(make_order())
    await small.start_worker()
    waiting = asyncio.ensure_future(small.service.wait(task.task_id, 60))
    await small.settle()
    assert gate.entered.is_set()
    assert not waiting.done()

    gate.opened.set()
    await small.settle()  # no time passes

    ended = await waiting
    assert ended is not None
    assert ended.status is TaskStatus.SUCCESS


async def test_who_waits_elsewhere_is_told_within_a_second(small: SmallDelegation) -> None:
    task = await small.service.submit(make_order())
    waiting = asyncio.ensure_future(small.make_service().wait(task.task_id, 60))
    await small.settle()
    await small.service.cancel(task.task_id)
    await small.settle()
    assert not waiting.done()

    await small.advance(1)

    assert waiting.done()


async def test_waiting_ends_with_the_time(small: SmallDelegation) -> None:
    task = await small.service.submit(make_order())
    waiting = asyncio.ensure_future(small.service.wait(task.task_id, 3))
    await small.advance(2.5)
    assert not waiting.done()

    await small.advance(1)

    found = await waiting
    assert found is not None
    assert found.status is TaskStatus.SUBMITTED


async def test_nobody_waits_for_what_is_not_there(small: SmallDelegation) -> None:
    assert await small.service.wait("5b2d6a70-0000-0000-0000-000000000000", 60) is None
    assert await small.service.find("nothing") is None
    assert await small.service.history("nothing") == []


async def test_a_process_that_stops_lets_everybody_go(small: SmallDelegation) -> None:
    task = await small.service.submit(make_order())
    waiting = asyncio.ensure_future(small.service.wait(task.task_id, 60))
    await small.settle()

    small.service.stop_waiting()
    await small.settle()

    assert (await waiting) == await small.service.find(task.task_id)


async def test_a_task_that_failed_is_tried_again_with_all_attempts(small: SmallDelegation) -> None:
    small.job.script = [stumble(JobFailed("No", code="NO")), stumble(Unavailable("Away"))]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()
    assert await small.status(task_id) is TaskStatus.FAILURE

    again = await small.service.retry(task_id)
    await small.settle()

    assert (again.status, again.attempt_count) == (TaskStatus.SUBMITTED, 0)
    details = await small.details(task_id)
    assert (details.status, details.attempt_count) == (TaskStatus.RETRY_SCHEDULED, 1)


async def test_a_task_that_waits_is_tried_now(small: SmallDelegation) -> None:
    small.job.script = [stumble(Unavailable("Away")), stumble(JobFailed("No", code="NO"))]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()
    assert await small.status(task_id) is TaskStatus.RETRY_SCHEDULED

    await small.service.retry(task_id)
    await small.settle()  # no time passes

    assert await small.status(task_id) is TaskStatus.FAILURE


async def test_only_who_waits_or_failed_is_tried_again(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    with pytest.raises(Conflict):
        await small.service.retry(task_id)
    await small.start_worker()
    await small.settle()
    assert await small.status(task_id) is TaskStatus.SUCCESS

    with pytest.raises(Conflict):
        await small.service.retry(task_id)
    with pytest.raises(Conflict):
        await small.service.cancel(task_id)
    for ask in (small.service.retry, small.service.cancel):
        with pytest.raises(NotFound):
            await ask("nothing")


async def test_a_task_that_waits_is_given_up(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id

    details = await small.service.cancel(task_id)
    await small.start_worker()
    await small.advance(60)

    assert (details.status, details.error_code) == (TaskStatus.FAILURE, "CANCELLED")
    assert not details.is_begun
    assert small.job.attempts == []


@pytest.mark.parametrize("luck", ["applied, answer lost", "not applied, answer lost"])
async def test_giving_up_survives_a_lost_answer(small: SmallDelegation, luck: str) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    lucks = iter([luck])
    small.memory.rule = lambda name: next(lucks, "answered") if name == "swap" else "answered"  # type: ignore[return-value]

    cancelling = asyncio.ensure_future(small.service.cancel(task_id))
    await small.advance(2)

    assert (await cancelling).status is TaskStatus.FAILURE
    assert len(await small.service.history(task_id)) == 2
