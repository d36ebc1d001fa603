"""What the simulated network does to messages, and what it tells their senders."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import (
    CatalogId,
    DeleteIf,
    Insert,
    Limits,
    ObjId,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
)
from cynosure.testing.sim.clock import START_US, SimClock
from cynosure.testing.sim.faults import FaultyBackend, Network
from cynosure.testing.sim.history import History, watched_store
from cynosure.testing.sim.loop import Process, SimLoop
from cynosure.testing.sim.turns import Turns
from cynosure.testing.sim.weather import CALM, Faults

KEY = ObjKey(RealmId("r"), CatalogId("c"), "t", ObjId(1))
REF = Reference(RefKey(RealmId("r"), CatalogId("c"), "main"), ObjId(0), 0, (), 0)
LIMITS = Limits(row_bytes=1 << 20, swap_carries_rows=True, is_shared=True, is_durable=True)


class Scene:
    """One or two servers and a database."""

    def __init__(self, faults: Faults) -> None:
        self.loop = SimLoop(Random(1), is_shuffled=False, most_steps=100_000)
        self.history = History(self.loop)
        self.database = MemoryBackend(watched_store(self.history))
        self.network = Network(self.loop, Random(2), self.database, faults, self.history)
        self.turns = Turns(self.loop.time, self.history)

    def server(self, name: str = "s") -> tuple[Process, FaultyBackend]:
        process = self.loop.new_process(name)
        return process, FaultyBackend(self.network, name, process, LIMITS, self.turns)

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def all_of_it() -> None:
            await self.database.setup()
            await self.database.insert_ref(REF)
            await work()

        self.loop.run(all_of_it())


def certain(**chances: float) -> Faults:
    defaults: dict[str, float] = {"refused": 0.0, "request_lost": 0.0, "answer_lost": 0.0, "late": 0.0}
    return Faults(delay_s=0.01, late_s=5.0, **{**defaults, **chances})


@pytest.mark.parametrize(
    ("faults", "expected", "is_applied"),
    [
        (certain(refused=1.0), Unavailable, False),
        (certain(request_lost=1.0), OutcomeUnknown, False),
        (certain(answer_lost=1.0), OutcomeUnknown, True),
        (certain(late=1.0), OutcomeUnknown, True),
    ],
    ids=["refused", "request-lost", "answer-lost", "late"],
)
def test_a_writer_is_told_no_more_than_it_can_know(
    faults: Faults, expected: type[Exception], is_applied: bool
) -> None:
    scene = Scene(faults)

    async def work() -> None:
        _, backend = scene.server()
        with pytest.raises(expected):
            await backend.insert(Row(KEY, b"", "token"))
        await asyncio.sleep(10.0)
        assert (await scene.database.fetch([KEY]))[0] is not None or not is_applied
        assert ((await scene.database.fetch([KEY]))[0] is not None) is is_applied

    scene.run(work)


def test_a_late_write_lands_after_its_sender_gave_up() -> None:
    scene = Scene(certain(late=1.0))

    async def work() -> None:
        _, backend = scene.server()
        with pytest.raises(OutcomeUnknown):
            await backend.insert(Row(KEY, b"", "token"))
        assert await scene.database.fetch([KEY]) == [None]
        await asyncio.sleep(10.0)
        assert await scene.database.fetch([KEY]) != [None]

    scene.run(work)


def test_a_read_that_is_not_answered_is_unavailable() -> None:
    scene = Scene(certain(answer_lost=1.0))

    async def work() -> None:
        _, backend = scene.server()
        with pytest.raises(Unavailable):
            await backend.fetch([KEY])

    scene.run(work)


def test_a_message_arrives_although_its_sender_died() -> None:
    scene = Scene(CALM)

    async def work() -> None:
        process, backend = scene.server()
        process.spawn(backend.insert(Row(KEY, b"", "token")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        process.kill()
        await asyncio.sleep(10.0)
        assert await scene.database.fetch([KEY]) != [None]

    scene.run(work)


def test_who_is_cut_off_reaches_nothing_and_others_do() -> None:
    scene = Scene(CALM)

    async def work() -> None:
        scene.network.cut_off.add("a")
        _, cut_off = scene.server("a")
        _, other = scene.server("b")
        with pytest.raises((Unavailable, OutcomeUnknown)):
            await cut_off.insert(Row(KEY, b"", "token"))
        assert await other.insert(Row(KEY, b"", "token"))

    scene.run(work)


def test_turns_are_taken_one_after_the_other() -> None:
    scene = Scene(CALM)
    held: list[str] = []

    async def hold(name: str, backend: FaultyBackend) -> None:
        turn = backend.hold_ref(REF.key, "commit")
        assert turn is not None
        async with turn as held_ref:
            assert held_ref.current == REF
            held.append(f"{name} begins")
            await asyncio.sleep(0.05)
            held.append(f"{name} ends")

    async def work() -> None:
        servers = [scene.server(name) for name in "abc"]
        await asyncio.gather(*(process.spawn(hold(process.name, backend)) for process, backend in servers))

    scene.run(work)

    assert [each.split()[1] for each in held] == ["begins", "ends"] * 3


def test_the_turn_of_a_dead_server_ends() -> None:
    scene = Scene(CALM)

    async def hold(backend: FaultyBackend, span_s: float) -> None:
        turn = backend.hold_ref(REF.key, "commit")
        assert turn is not None
        async with turn:
            await asyncio.sleep(span_s)

    async def work() -> None:
        process, backend = scene.server("a")
        process.spawn(hold(backend, 100.0))
        await asyncio.sleep(0.1)
        process.kill()
        _, other = scene.server("b")
        await hold(other, 0.0)
        assert scene.loop.time() < 2.0

    scene.run(work)


def test_a_wall_clock_may_be_wrong_while_elapsed_time_is_not() -> None:
    scene = Scene(CALM)

    async def work() -> None:
        clock = SimClock(scene.loop, skew_s=-3.0, drift=0.5)
        await clock.sleep(10.0)
        assert clock.monotonic_s() == scene.loop.time()
        assert clock.now_us() == START_US + round(scene.loop.time() * 1.5 * 1_000_000) - 3_000_000
        clock.step(-100.0)
        assert clock.monotonic_s() == scene.loop.time()
        assert clock.now_us() < START_US

    scene.run(work)


def test_relaxed_writes_that_nothing_followed_die_with_the_machine() -> None:
    scene = Scene(CALM)
    _, backend = scene.server()
    first = Row(KEY, b"x", token="t1", created_us=1)
    second = Row(KEY._replace(id=ObjId(2)), b"x", token="t2", created_us=1)

    async def work() -> None:
        await backend.write_each([Insert(first)], is_relaxed=True)
        await backend.insert(second)
        await backend.write_each([DeleteIf(first.key, first.token)], is_relaxed=True)
        scene.network.go_down()

        assert await scene.database.fetch([first.key, second.key]) == [first, second]

    scene.run(work)
