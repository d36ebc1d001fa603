import asyncio
import random

import pytest

from cynosure.common.retry import Backoff


class SleepingClock:
    """Time passes only in `sleep`, by exactly what was asked plus `oversleep_s`."""

    def __init__(self):
        self.now_s = 100.0
        self.oversleep_s = 0.0
        self.sleeps_s = []

    def now_us(self):
        return int(self.now_s * 1e6)

    def monotonic_s(self):
        return self.now_s

    async def sleep(self, seconds):
        self.sleeps_s.append(seconds)
        self.now_s += seconds + self.oversleep_s
        await asyncio.sleep(0)


@pytest.fixture
def clock():
    return SleepingClock()


def make(clock, seed=1, **options):
    return Backoff(
        clock, random.Random(seed), **{"first_s": 0.01, "max_s": 0.25, "deadline_s": 60.0, **options}
    )


@pytest.mark.anyio
async def test_the_first_sleeps_double_up_to_the_maximum(clock):
    backoff = make(clock)
    bounds_s = []
    for _ in range(6):
        bounds_s.append(backoff.bound_s())
        await backoff.wait()

    assert bounds_s[0] == 0.01
    assert bounds_s == sorted(bounds_s)
    assert max(bounds_s) <= 0.25


@pytest.mark.anyio
async def test_who_has_waited_longer_sleeps_shorter(clock):
    old, young = make(clock), make(clock)
    while old.waited_s < 20:
        assert await old.wait()
    young = make(clock)
    for _ in range(6):
        await young.wait()

    assert old.bound_s() < young.bound_s() / 4


@pytest.mark.anyio
async def test_a_sleep_is_in_the_upper_half_of_its_bound_and_never_below_half_the_first(clock):
    backoff = make(clock, deadline_s=500.0)
    while True:
        bound_s = backoff.bound_s()
        if not await backoff.wait():
            break
        assert bound_s / 2 <= clock.sleeps_s[-1] <= bound_s
        assert clock.sleeps_s[-1] >= 0.005


@pytest.mark.anyio
async def test_the_same_seed_gives_the_same_sleeps(clock):
    first, second = make(clock, seed=7), make(SleepingClock(), seed=7)
    for _ in range(10):
        await first.wait()
        await second.wait()

    assert clock.sleeps_s == second._clock.sleeps_s
    assert clock.sleeps_s != sorted(clock.sleeps_s)


@pytest.mark.anyio
async def test_no_attempt_begins_after_the_deadline(clock):
    backoff = make(clock, deadline_s=3.0)
    while await backoff.wait():
        assert backoff.waited_s < 3.0

    assert backoff.waited_s < 3.0
    assert sum(clock.sleeps_s) > 2.7


@pytest.mark.anyio
async def test_a_process_stopped_past_its_deadline_makes_no_attempt(clock):
    backoff = make(clock)
    clock.oversleep_s = 3600.0

    assert not await backoff.wait()
    assert backoff.remaining_s == 0.0


@pytest.mark.anyio
async def test_a_wish_of_the_other_side_is_respected_up_to_the_deadline(clock):
    backoff = make(clock, deadline_s=10.0)

    assert await backoff.wait(at_least_s=5.0)
    assert clock.sleeps_s == [5.0]
    assert not await backoff.wait(at_least_s=5.0)


@pytest.mark.anyio
async def test_thousands_of_waits_do_not_overflow(clock):
    backoff = make(clock, first_s=0.001, max_s=0.001, deadline_s=1e9)
    for _ in range(2_000):
        assert await backoff.wait()

    assert backoff.waits == 2_000


@pytest.mark.anyio
async def test_in_a_crowd_the_oldest_gets_more_turns_than_newcomers():
    """One contender that waited 10 s against newcomers: attempts per second decide who wins races."""
    old_clock, new_clock = SleepingClock(), SleepingClock()
    old = make(old_clock)
    old_clock.now_s += 10.0
    old_attempts = new_attempts = 0
    while old_clock.now_s < 115.0:
        await old.wait()
        old_attempts += 1
    newcomer = make(new_clock)
    while new_clock.now_s < 105.0:
        await newcomer.wait()
        new_attempts += 1

    assert old_attempts > 2 * new_attempts
