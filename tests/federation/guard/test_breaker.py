import random
from datetime import timedelta

import pytest

from cynosure.federation.guard.breaker import Breaker
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    settings = FederationSettings(break_after=3, break_for=timedelta(seconds=10))
    return Breaker(settings, clock, random.Random(1))


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        ticket = breaker.admit()
        assert ticket is not None
        breaker.fail(ticket)


async def test_it_opens_after_so_many_failures_in_a_row(breaker: Breaker) -> None:
    fail(breaker, 2)
    assert breaker.state == "closed"
    fail(breaker, 1)
    assert breaker.state == "open"
    assert breaker.admit() is None


async def test_a_success_between_failures_begins_the_row_anew(breaker: Breaker) -> None:
    fail(breaker, 2)
    breaker.succeed(breaker.admit())
    fail(breaker, 2)

    assert breaker.state == "closed"


async def test_one_probe_is_let_through_after_a_while(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 3)
    await clock.advance(9.9)
    assert breaker.admit() is None
    await clock.advance(2.2)

    probe = breaker.admit()
    assert probe is not None
    assert breaker.admit() is None
    breaker.succeed(probe)
    assert breaker.state == "closed"
    assert breaker.admit() is not None


async def test_a_probe_that_fails_opens_it_again(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 3)
    await clock.advance(12.1)
    breaker.fail(breaker.admit())

    assert breaker.state == "open"
    await clock.advance(9.9)
    assert breaker.admit() is None
    await clock.advance(2.2)
    assert breaker.admit() is not None


async def test_a_probe_that_nobody_waited_for_leaves_its_place(breaker: Breaker, clock: ManualClock) -> None:
    fail(breaker, 3)
    await clock.advance(12.1)
    breaker.abandon(breaker.admit())

    assert breaker.admit() is not None


async def test_late_answers_of_requests_from_before_do_not_count(
    breaker: Breaker, clock: ManualClock
) -> None:
    late = [breaker.admit() for _ in range(4)]
    fail(breaker, 3)
    breaker.succeed(late[0])
    assert breaker.state == "open"
    await clock.advance(12.1)
    breaker.succeed(breaker.admit())
    for ticket in late[1:]:
        breaker.fail(ticket)

    assert breaker.state == "closed"


async def test_many_servers_do_not_try_at_the_same_moment(clock: ManualClock) -> None:
    settings = FederationSettings(break_after=1, break_for=timedelta(seconds=10))
    breakers = [Breaker(settings, clock, random.Random(seed)) for seed in range(20)]
    for each in breakers:
        each.fail(each.admit())

    assert len({each.open_s for each in breakers}) == 20
    assert all(10 <= each.open_s <= 12 for each in breakers)
