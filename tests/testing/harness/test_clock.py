"""A clock that a test moves."""

import asyncio

import pytest

from cynosure.common.clock import Clock
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


async def test_time_stands_still_until_it_is_advanced(manual_clock: ManualClock):
    clock: Clock = manual_clock
    before = clock.now_us(), clock.monotonic_s()
    await asyncio.sleep(0.001)
    assert (clock.now_us(), clock.monotonic_s()) == before

    await manual_clock.advance(1.5)
    assert clock.now_us() == before[0] + 1_500_000
    assert clock.monotonic_s() == before[1] + 1.5


async def test_sleepers_wake_in_order_and_each_sees_its_own_due_time(manual_clock: ManualClock):
    start_s = manual_clock.monotonic_s()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await manual_clock.sleep(seconds)
        woken.append((name, round(manual_clock.monotonic_s() - start_s, 6)))

    tasks = [asyncio.create_task(sleeper(*who)) for who in [("late", 3), ("early", 1), ("early too", 1)]]
    await manual_clock.advance(0.5)
    assert woken == []
    await manual_clock.advance(2.5)
    assert woken == [("early", 1), ("early too", 1), ("late", 3)]
    await asyncio.gather(*tasks)


async def test_a_loop_that_sleeps_again_is_woken_as_often_as_time_allows(manual_clock: ManualClock):
    ticks = 0

    async def loop() -> None:
        nonlocal ticks
        while True:
            await manual_clock.sleep(0.1)
            ticks += 1

    task = asyncio.create_task(loop())
    await manual_clock.advance(1)
    assert ticks == 10
    task.cancel()


async def test_wall_time_steps_back_without_touching_elapsed_time_or_sleepers(manual_clock: ManualClock):
    wall_us, elapsed_s = manual_clock.now_us(), manual_clock.monotonic_s()
    task = asyncio.create_task(manual_clock.sleep(1))
    await manual_clock.wait_for_sleepers(1)

    manual_clock.step_wall(-3600)

    assert manual_clock.now_us() == wall_us - 3600 * 1_000_000
    assert manual_clock.monotonic_s() == elapsed_s
    await manual_clock.advance(0.999)
    assert not task.done()
    await manual_clock.advance(0.001)
    assert task.done()


async def test_a_cancelled_sleeper_is_forgotten(manual_clock: ManualClock):
    task = asyncio.create_task(manual_clock.sleep(1))
    await manual_clock.wait_for_sleepers(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert manual_clock.sleeping == 0
    await manual_clock.advance(2)


async def test_time_cannot_be_advanced_backwards(manual_clock: ManualClock):
    with pytest.raises(ValueError, match="backwards"):
        await manual_clock.advance(-1)


async def test_sleeping_for_no_time_only_gives_others_a_turn(manual_clock: ManualClock):
    await manual_clock.sleep(0)
    await manual_clock.sleep(-1)
    assert manual_clock.sleeping == 0
