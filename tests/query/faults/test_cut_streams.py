"""A network that loses connections between executors and the gateway's broker."""

import asyncio
import os
from collections.abc import AsyncIterator

import msgspec
import pytest

from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.errors import EngineUnavailable
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import FragmentOrder, Scan, read_fragments
from cynosure.query.worker.stream_client import BrokerPlace
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.small_broker import HeldScan, SmallBroker, make_order, number_batches, scan_files

pytestmark = pytest.mark.anyio


@pytest.fixture
async def small() -> AsyncIterator[SmallBroker]:
    async with SmallBroker() as running:
        yield running


def order_through(proxy: FaultProxy, query: BrokeredQuery) -> FragmentOrder:
    place = BrokerPlace(f"{proxy.host}:{proxy.port}", query.ca_pem)
    return msgspec.structs.replace(make_order(query, ["f0"]), broker=place)


async def attempt(order: FragmentOrder, number: int, scan: Scan) -> int:
    """How many rows Spark would get."""

    def run() -> int:
        tried = Attempt(number, number, "0/0", "host/1", "host:1")
        batches = read_fragments(order, number_batches(1), attempt=tried, scan=scan)
        return sum(each.num_rows for each in batches)

    return await asyncio.to_thread(run)


def proxy_before(query: BrokeredQuery) -> FaultProxy:
    return FaultProxy(int(query.address.rpartition(":")[2]))


async def cut(small: SmallBroker, proxy: FaultProxy, held: HeldScan) -> None:
    """Cut all connections, until the executor knows."""
    proxy.cut_all()
    await small.wait_for(held.is_unwanted)


async def test_a_stream_that_is_cut_fails_its_attempt_and_the_next_one_gives_all_rows(
    small: SmallBroker,
) -> None:
    query = small.open("q", ["f0"])
    held = HeldScan()
    async with proxy_before(query) as proxy:
        order = order_through(proxy, query)
        first = asyncio.create_task(attempt(order, 0, held))
        await held.wait_reached()
        await cut(small, proxy, held)
        held.let_go(10)
        with pytest.raises(EngineUnavailable):
            await first
        await small.wait_for(lambda: small.reports)
        assert not small.reports[0].is_success
        assert await attempt(order, 1, scan_files) == 3
    await small.wait_for(lambda: len(small.reports) == 2)
    assert not query.failed.done()
    assert [each.is_success for each in small.reports] == [False, True]


async def test_a_stream_that_is_cut_as_often_as_it_is_tried_ends_the_statement(small: SmallBroker) -> None:
    query = small.open("q", ["f0"], retries=2)
    async with proxy_before(query) as proxy:
        for number in range(3):
            held = HeldScan()
            running = asyncio.create_task(attempt(order_through(proxy, query), number, held))
            await held.wait_reached()
            await cut(small, proxy, held)
            held.let_go(10)
            with pytest.raises(EngineUnavailable):
                await running
            # A next attempt that came before the broker knows would fence this one, which is no failure.
            await small.wait_for(lambda so_far=number + 1: len(small.reports) == so_far)
        error = await asyncio.wait_for(query.failed, 30)
    assert isinstance(error, EngineUnavailable)
    assert error.details["attempts"] == 3
    assert small.broker.runtime.tasks()


@pytest.mark.skipif("CYNOSURE_SOAK_GOVERNED" not in os.environ, reason="./dev soak governed: 10 s of waiting")
async def test_a_broker_that_cannot_be_reached_is_no_hang(small: SmallBroker) -> None:
    query = small.open("q", ["f0"])
    async with proxy_before(query) as proxy:
        order = order_through(proxy, query)
    # Closed now: nobody listens there.
    with pytest.raises(EngineUnavailable) as raised:
        await attempt(order, 0, scan_files)
    assert raised.value.details["kind"] == "Unavailable"
