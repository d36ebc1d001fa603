"""The catalog's side: three outcomes that never merge, and waiting across restarts of the service."""

import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.catalog.task_executor import TaskQuery
from cynosure.client.delegation import DelegationApi
from cynosure.client.http import HttpClient
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import (
    BadInput,
    Conflict,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.delegation.executors.delegated import DelegatedTaskExecutor
from cynosure.testing.service_tokens import TokenMaker
from cynosure.testing.small_delegation import REALM, Gate, make_order
from tests.delegation.http.conftest import World

pytestmark = pytest.mark.anyio

Fault = Callable[[httpx.Request], Exception | httpx.Response | None]
"""What happens to a request instead of being answered; `None`: it is answered."""


class Network(httpx.AsyncBaseTransport):
    """The way to the service, with faults before it and after it."""

    def __init__(self, app: Any) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.before: list[Fault] = []
        self.after: list[Fault] = []
        self.paths: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(f"{request.method} {request.url.path}")
        self._fail(self.before, request)
        answer = await self._inner.handle_async_request(request)
        await answer.aread()
        self._fail(self.after, request)
        return answer

    def _fail(self, faults: list[Fault], request: httpx.Request) -> None:
        fault = faults.pop(0)(request) if faults else None
        if isinstance(fault, Exception):
            raise fault


class Way:
    """An executor, and the network between it and the service."""

    def __init__(self, world: World, http: HttpClient, network: Network) -> None:
        self.world = world
        self.network = network
        patient = DelegationApi(http, world.catalog)
        self.executor = DelegatedTaskExecutor(lambda realm: patient)
        hasty = DelegationApi(http, world.catalog, order_timeout_s=1.0, read_timeout_s=0.5)
        self.hasty = DelegatedTaskExecutor(lambda realm: hasty)
        """For what does not come through, however often it is tried."""


@pytest.fixture
async def way(world: World) -> AsyncIterator[Way]:
    network = Network(world.service.app)
    async with HttpClient(
        "http://service", clock=SystemClock(), rng=random.Random(1), transport=network
    ) as http:
        yield Way(world, http, network)


def refused(_: httpx.Request) -> Exception:
    return httpx.ConnectError("refused")


def cut(_: httpx.Request) -> Exception:
    return httpx.ReadError("cut")


def pass_on(_: httpx.Request) -> None:
    return None


async def test_an_order_comes_back_as_the_task_it_is(way: Way) -> None:
    order = make_order(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

    first = await way.executor.purge_table(order)
    again = await way.executor.purge_table(order)

    assert first == again
    assert (first.task_id, first.status, first.version) == (order.task_id, TaskStatus.SUBMITTED, 1)
    assert order.traceparent is not None
    assert order.traceparent in first.task_payload
    assert way.executor.is_delegated


async def test_an_order_that_never_arrived_is_unavailable(way: Way) -> None:
    way.network.before = [refused] * 100

    with pytest.raises(Unavailable):
        await way.hasty.purge_table(make_order())

    assert not await way.world.tasks.history(make_order().task_id)


async def test_an_order_whose_answer_was_lost_is_repeated_and_is_one_task(way: Way) -> None:
    way.network.after = [cut]

    task = await way.executor.purge_table(make_order())

    assert task.version == 1
    assert way.network.paths.count("POST /delegation-service/api/v1/tasks") == 2


async def test_an_order_that_may_have_arrived_is_unknown_until_somebody_can_ask(way: Way) -> None:
    way.network.after = [cut] * 100

    with pytest.raises(OutcomeUnknown):
        await way.hasty.purge_table(make_order())

    way.network.after = []
    found = await way.executor.find(REALM, make_order().task_id)
    assert found is not None


async def test_one_cut_and_an_outage_after_it_is_still_unknown(way: Way) -> None:
    way.network.before = [cut, *[refused] * 100]

    with pytest.raises(OutcomeUnknown):
        await way.hasty.purge_table(make_order())


async def test_an_order_that_was_taken_is_unknown_when_nobody_can_ask_for_it(way: Way) -> None:
    way.network.before = [pass_on, *[refused] * 1000]

    with pytest.raises(OutcomeUnknown):
        await way.hasty.purge_table(make_order())

    assert await way.world.tasks.find(make_order().task_id)


async def test_refusals_come_back_as_what_they_are(way: Way) -> None:
    executor = way.executor
    await executor.purge_table(make_order())

    with pytest.raises(Conflict):
        await executor.purge_table(make_order(properties={"skipTrash": "true"}))
    with pytest.raises(Forbidden):
        await executor.purge_table(make_order(realm="elsewhere", correlation_id="x"))
    with pytest.raises(BadInput) as bad:
        await executor.purge_table(make_order("u", properties={"bad": "1"}))
    assert "instruction" in bad.value.message
    with pytest.raises(BadInput):
        await executor.compact_data(make_order("c", task_type=TaskType.DATA_COMPACTION))
    with pytest.raises(NotFound):
        await executor.retry(REALM, "nobody")
    assert await executor.find(REALM, "nobody") is None
    assert await executor.wait(REALM, "nobody", 1.0) is None
    assert await executor.history(REALM, "nobody") == []


@pytest.mark.parametrize("status", [404, 500, 502, 503])
async def test_that_there_is_no_task_is_believed_of_the_service_only(world: World, status: int) -> None:
    """A proxy's 404 would else lift tombstones of tables that are being purged."""

    async def proxy(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>no such page</html>"})

    transport = httpx.ASGITransport(proxy)
    async with HttpClient(
        "http://proxy", clock=SystemClock(), rng=random.Random(1), transport=transport
    ) as http:
        api = DelegationApi(http, world.catalog, order_timeout_s=0.2, read_timeout_s=0.3)
        executor = DelegatedTaskExecutor(lambda realm: api)
        for asking in (executor.wait(REALM, "t", 0.2), executor.purge_table(make_order())):
            with pytest.raises((Unavailable, OutcomeUnknown)):
                await asking
        with pytest.raises(Unavailable):
            await executor.find(REALM, "t")


async def test_a_token_that_is_refused_is_made_anew_once(way: Way) -> None:
    catalog = way.world.catalog
    good = catalog.signer
    catalog.signer = TokenMaker(SystemClock()).signer
    await catalog.load()
    catalog.signer = good
    assert await way.executor.find(REALM, "nobody") is None

    catalog.signer = TokenMaker(SystemClock()).signer
    catalog.drop()
    with pytest.raises(NotAuthenticated):
        await way.executor.find(REALM, "nobody")


async def test_waiting_outlives_restarts_of_the_service(way: Way) -> None:
    gate = Gate()
    way.world.small.job.script = [gate]
    await way.world.work()
    order = make_order()
    await way.executor.purge_table(order)
    await gate.entered.wait()
    way.network.before = [cut, refused, refused]

    def let_go(_: httpx.Request) -> None:
        gate.opened.set()

    way.network.before.append(let_go)
    task = await way.executor.wait(REALM, order.task_id, 30.0)

    assert task is not None
    assert task.status is TaskStatus.SUCCESS


async def test_who_waits_gets_the_task_as_it_is_when_the_time_is_over(way: Way) -> None:
    task = await way.executor.purge_table(make_order())

    waited = await way.executor.wait(REALM, task.task_id, 0.3)

    assert waited == task
    way.network.before = [refused] * 1000
    with pytest.raises(Unavailable):
        await way.executor.wait(REALM, task.task_id, 0.3)


async def test_tasks_are_listed_cancelled_and_tried_again(way: Way) -> None:
    executor = way.executor
    for name in "abc":
        await executor.purge_table(make_order(name))

    query = TaskQuery(status=TaskStatus.SUBMITTED, catalog="lake", page_size=2)
    page = await executor.list(REALM, query)
    rest = await executor.list(REALM, msgspec.structs.replace(query, page_token=page.next_page_token))
    assert [len(page.tasks), len(rest.tasks)] == [2, 1]
    task_id = rest.tasks[0].task_id
    assert (await executor.cancel(REALM, task_id)).status is TaskStatus.FAILURE
    with pytest.raises(Conflict):
        await executor.cancel(REALM, task_id)
    assert (await executor.retry(REALM, task_id)).status is TaskStatus.SUBMITTED
    assert len(await executor.history(REALM, task_id)) == 3


async def test_what_must_be_done_before_an_order_keeps_it_from_being_sent(world: World) -> None:
    network = Network(world.service.app)

    async def refuse(_: Any) -> None:
        raise Unavailable("Not now")

    async with HttpClient(
        "http://service", clock=SystemClock(), rng=random.Random(1), transport=network
    ) as http:
        executor = DelegatedTaskExecutor(lambda realm: DelegationApi(http, world.catalog), refuse)
        with pytest.raises(Unavailable, match="Not now"):
            await executor.purge_table(make_order())
    assert network.paths == []
