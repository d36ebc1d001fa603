"""Turns at a remote: so many at once, so many waiting, and none at the cost of others (I120)."""

import asyncio
import random
from collections import Counter

import pytest

from cynosure.federation.guard.limits import Limit
from cynosure.federation.settings import FederationSettings

pytestmark = pytest.mark.anyio


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_turns_come_in_the_order_of_asking() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=10))
    order: list[int] = []

    async def work(number: int) -> None:
        assert await limit.acquire()
        order.append(number)
        await asyncio.sleep(0)
        limit.release()

    await asyncio.gather(*(work(number) for number in range(6)))

    assert order == [0, 1, 2, 3, 4, 5]
    assert (limit.running, limit.waiting) == (0, 0)


async def test_who_comes_when_too_many_wait_is_turned_away() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=1))
    await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await settle()

    assert not await limit.acquire()
    limit.release()
    assert await waiting


async def test_nobody_overtakes_those_who_wait() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=1))
    await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await settle()
    limit.release()  # to who waits, although it has not run since
    late = asyncio.create_task(limit.acquire())
    await settle()

    assert waiting.done()
    assert not late.done()
    limit.release()
    assert await late


async def test_who_stops_waiting_leaves_its_place() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=1))
    await limit.acquire()
    gone = asyncio.create_task(limit.acquire())
    await settle()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    waiting = asyncio.create_task(limit.acquire())
    await settle()
    limit.release()

    assert await waiting
    limit.release()
    assert (limit.running, limit.waiting) == (0, 0)


async def test_a_turn_given_to_somebody_who_is_gone_is_given_on() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=2))
    await limit.acquire()
    gone = asyncio.create_task(limit.acquire())
    waiting = asyncio.create_task(limit.acquire())
    await settle()
    limit.release()
    gone.cancel()  # its turn has come, and it has not run since
    await asyncio.gather(gone, return_exceptions=True)

    assert await waiting
    limit.release()
    assert (limit.running, limit.waiting) == (0, 0)


class Crowd:
    """People at a limit: who waits, who has a turn, who was turned away, in their order."""

    def __init__(self, **settings: int) -> None:
        self.limit = Limit(FederationSettings(**settings))
        self.tasks: list[tuple[str, asyncio.Task[bool]]] = []
        self.running: list[str] = []
        """Who has a turn that was not handed back."""
        self.away: list[str] = []

    async def come(self, *people: str) -> None:
        for who in people:
            self.tasks.append((who, asyncio.create_task(self.limit.acquire(who))))
            await self.look()

    async def look(self) -> None:
        await settle()
        for each in list(self.tasks):
            who, task = each
            if task.done():
                self.tasks.remove(each)
                if not task.cancelled():
                    (self.running if task.result() else self.away).append(who)

    async def leave(self, who: str) -> None:
        self.running.remove(who)
        self.limit.release(who)
        await self.look()

    def waiting(self) -> Counter[str]:
        return Counter(who for who, task in self.tasks if not task.done())


async def test_turns_go_round_the_principals() -> None:
    crowd = Crowd(concurrent=1, waiting=20)
    await crowd.come(*["many"] * 6, "one", "two", "two")
    order = []
    while crowd.running:
        order.append(crowd.running[0])
        await crowd.leave(crowd.running[0])

    assert order == ["many", "many", "one", "two", "many", "two", "many", "many", "many"]


async def test_a_turn_goes_to_who_has_the_fewest() -> None:
    crowd = Crowd(concurrent=4, waiting=20)
    await crowd.come(*["many"] * 8, "few", "few")
    await crowd.leave("many")
    await crowd.leave("many")

    # Two turns each, although twice as many of the others had waited longer.
    assert sorted(crowd.running) == ["few", "few", "many", "many"]


async def test_who_asks_most_is_turned_away_and_not_who_asks_once() -> None:
    crowd = Crowd(concurrent=1, waiting=4)
    await crowd.come(*["many"] * 9)
    assert crowd.away == ["many"] * 4
    await crowd.come("one", "two", "three")

    assert crowd.away == ["many"] * 7
    assert crowd.waiting() == {"many": 1, "one": 1, "two": 1, "three": 1}
    await crowd.come("four", "many", "one")
    assert crowd.away[7:] == ["four", "many", "one"]  # all lines are equal: nobody makes room for anybody


async def test_the_longest_line_gives_up_its_last_place() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=2))
    await limit.acquire("many")
    first, last = (asyncio.create_task(limit.acquire("many")) for _ in range(2))
    await settle()
    late = asyncio.create_task(limit.acquire("one"))
    await settle()

    assert (last.done(), first.done(), late.done()) == (True, False, False)
    assert await last is False


async def test_nobody_has_all_turns() -> None:
    crowd = Crowd(concurrent=4, concurrent_each=3, waiting=8)
    await crowd.come(*["slow"] * 6)
    assert crowd.running == ["slow"] * 3
    await crowd.come("one", "two")
    assert crowd.running == ["slow"] * 3 + ["one"]
    await crowd.leave("one")
    assert crowd.running == ["slow"] * 3 + ["two"]
    await crowd.leave("two")
    assert crowd.running == ["slow"] * 3  # who waits may not have the turn that is left
    await crowd.leave("slow")
    assert crowd.running == ["slow"] * 3


async def test_who_is_turned_away_and_cancelled_at_once_costs_no_turn() -> None:
    limit = Limit(FederationSettings(concurrent=1, waiting=2))
    await limit.acquire("many")
    _, last = tasks = [asyncio.create_task(limit.acquire("many")) for _ in range(2)]
    await settle()
    tasks.append(asyncio.create_task(limit.acquire("one")))
    await asyncio.sleep(0)
    last.cancel()  # it was turned away, and has not run since
    await settle()

    assert (limit.running, limit.waiting) == (1, 2)
    limit.release("many")
    await settle()
    assert sum(each.done() and not each.cancelled() for each in tasks) == 1
    assert (limit.running, limit.waiting) == (1, 1)


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_happens_no_turn_is_lost_and_none_is_given_twice(seed: int) -> None:
    """People come, go, give up and are cut off at random moments; what must hold does after each."""
    rng = random.Random(seed)
    concurrent, each, waiting = rng.randint(1, 5), rng.randint(1, 5), rng.randint(0, 8)
    crowd = Crowd(concurrent=concurrent, concurrent_each=each, waiting=waiting)
    passed_over: Counter[str] = Counter()
    for _ in range(200):
        before, had = crowd.waiting(), Counter(crowd.running)
        step, who = rng.random(), rng.choice("abcd")
        if step < 0.5:
            await crowd.come(who)
        elif step < 0.8 and crowd.running:
            leaving = rng.choice(crowd.running)
            await crowd.leave(leaving)
            _count_passed_over(passed_over, before, had, Counter(crowd.running), leaving)
        elif crowd.tasks:
            victims = rng.sample(crowd.tasks, rng.randint(1, len(crowd.tasks)))
            is_racing = bool(crowd.running) and rng.random() < 0.5
            if is_racing:
                # A turn is handed on in the same moment, perhaps to one of them.
                crowd.limit.release(crowd.running.pop())
            for _, task in victims:
                task.cancel()
            await crowd.look()
            passed_over.clear()
        has, now = Counter(crowd.running), crowd.waiting()
        assert crowd.limit.running == len(crowd.running) <= concurrent
        assert crowd.limit.waiting == now.total() <= waiting
        assert all(has[each_who] <= each for each_who in has)
        if len(crowd.running) < concurrent:
            assert all(has[each_who] >= each for each_who in now), "a turn is left, and somebody may have it"
        assert all(n <= 3 for n in passed_over.values())  # three others
    for _, task in crowd.tasks:
        task.cancel()
    await crowd.look()
    while crowd.running:
        await crowd.leave(crowd.running[0])
    assert (crowd.limit.running, crowd.limit.waiting) == (0, 0)
    assert not crowd.limit._lines
    assert not crowd.limit._has


def _count_passed_over(
    passed_over: Counter[str], before: Counter[str], had: Counter[str], has: Counter[str], leaving: str
) -> None:
    """Note who waits without any turn while another was given one."""
    had[leaving] -= 1
    for who in before:
        if has[who] > had[who] or had[who] > 0:
            passed_over[who] = 0
        elif has.total() > had.total():
            passed_over[who] += 1
