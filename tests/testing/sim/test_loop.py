"""Virtual time, random order, processes that stop and die."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from cynosure.testing.sim.loop import SimLoop, Stuck


def new_loop(seed: int = 0, *, is_shuffled: bool = True, most_steps: int = 100_000) -> SimLoop:
    return SimLoop(Random(seed), is_shuffled=is_shuffled, most_steps=most_steps)


def test_time_passes_without_waiting() -> None:
    loop = new_loop()

    async def sleep_long() -> float:
        await asyncio.sleep(1_000_000.0)
        return asyncio.get_running_loop().time()

    assert loop.run(sleep_long()) == 1_000_000.0


@pytest.mark.parametrize("seed", range(20))
def test_what_asyncio_offers_works_in_any_order(seed: int) -> None:
    loop = new_loop(seed)

    async def use_everything() -> list[Any]:
        lock, event, queue = asyncio.Lock(), asyncio.Event(), asyncio.Queue[int]()
        held: list[int] = []

        async def hold(number: int) -> int:
            async with lock:
                held.append(number)
                await asyncio.sleep(0.01 * number)
                assert held[-1] == number
            await event.wait()
            await queue.put(number)
            return number

        tasks = [asyncio.create_task(hold(number)) for number in range(5)]
        done, pending = await asyncio.wait(tasks, timeout=0.001)
        assert not done
        assert len(pending) == 5
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.shield(tasks[0])
        event.set()
        numbers = await asyncio.gather(*tasks)
        taken = sorted([await queue.get() for _ in numbers])
        victim = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(0)
        victim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await victim
        return [numbers, taken]

    assert loop.run(use_everything()) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    assert loop.problems == []


def order_of(seed: int, *, is_shuffled: bool) -> str:
    loop = new_loop(seed, is_shuffled=is_shuffled)
    order: list[str] = []

    async def step(name: str) -> None:
        for _ in range(3):
            order.append(name)
            await asyncio.sleep(0)

    async def run() -> None:
        processes = [loop.new_process(name) for name in "ab"]
        await asyncio.gather(
            *(process.spawn(step(f"{process.name}{number}")) for process in processes for number in "12")
        )

    loop.run(run())
    return " ".join(order)


def test_one_seed_gives_one_order_and_others_give_others() -> None:
    orders = [order_of(seed, is_shuffled=True) for seed in range(10)]

    assert orders == [order_of(seed, is_shuffled=True) for seed in range(10)]
    assert len(set(orders)) > 5


def test_without_shuffling_one_process_keeps_the_order_of_a_real_loop() -> None:
    orders = [order_of(seed, is_shuffled=False).split() for seed in range(10)]

    assert {tuple(each for each in order if each[0] == "a") for order in orders} == {
        ("a1", "a2") * 3,
    }
    assert len({tuple(order) for order in orders}) > 1


def in_process(work: Callable[[SimLoop, list[float]], Awaitable[None]]) -> tuple[SimLoop, list[float]]:
    loop = new_loop()
    beats: list[float] = []

    async def run() -> None:
        await work(loop, beats)

    loop.run(run())
    return loop, beats


async def beat(beats: list[float]) -> None:
    while True:
        await asyncio.sleep(1.0)
        beats.append(asyncio.get_running_loop().time())


def test_a_paused_process_finds_time_passed() -> None:
    async def work(loop: SimLoop, beats: list[float]) -> None:
        process = loop.new_process("p")
        process.spawn(beat(beats))
        await asyncio.sleep(2.5)
        process.pause()
        await asyncio.sleep(10.0)
        process.resume()
        await asyncio.sleep(1.5)

    _, beats = in_process(work)

    assert beats == [1.0, 2.0, 12.5, 13.5]


def test_a_killed_process_does_not_even_clean_up() -> None:
    cleaned: list[str] = []

    async def guarded(beats: list[float]) -> None:
        try:
            await beat(beats)
        finally:
            if beats:
                cleaned.append("in time")
            await asyncio.sleep(1.0)
            cleaned.append("after an await")

    async def work(loop: SimLoop, beats: list[float]) -> None:
        process = loop.new_process("p")
        task = process.spawn(guarded(beats))
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(10.0)
        assert cleaned == []
        assert process.pending_tasks() == [task]

    loop, beats = in_process(work)

    assert beats == [1.0, 2.0]
    assert loop.problems == []


def test_a_deadlock_is_noticed() -> None:
    loop = new_loop()

    async def wait_for_nobody() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Stuck, match="deadlock"):
        loop.run(wait_for_nobody())


def test_a_run_that_does_not_end_is_noticed() -> None:
    loop = new_loop(most_steps=1000)

    async def turn(round_: int) -> None:
        await asyncio.sleep(0)
        asyncio.get_running_loop().create_task(turn(round_ + 1))
        await asyncio.sleep(1.0)

    with pytest.raises(Stuck, match="1000 steps"):
        loop.run(turn(0))


def test_an_exception_that_nobody_retrieves_is_noticed() -> None:
    loop = new_loop()

    async def fail() -> None:
        raise ValueError("unseen")

    async def run() -> None:
        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(1.0)

    loop.run(run())

    assert len(loop.problems) == 1
    assert "unseen" in loop.problems[0]
