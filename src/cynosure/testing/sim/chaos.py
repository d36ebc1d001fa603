"""What befalls the servers of a run: crashes, stops, partitions, outages, clocks set, collections started.

Must not break: each kind draws from its own random numbers, so that a change to one leaves the others'
histories alone as far as possible.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Protocol

from cynosure.common.errors import CynosureError, Damaged, OutcomeUnknown, Unavailable
from cynosure.persistence.gc.collect import GcProgress
from cynosure.testing.sim.clock import SimClock
from cynosure.testing.sim.faults import Network
from cynosure.testing.sim.history import History
from cynosure.testing.sim.server import ServerDied, SimServer
from cynosure.testing.sim.weather import Weather

SANE_SKEW_S = 0.4


class Machine(Protocol):
    """A machine as chaos sees it."""

    name: str
    clock: SimClock
    skew_s: float
    server: SimServer

    def restart(self) -> None:
        """A new server process in place of the dead one."""
        ...


class Troubles:
    """Runs all kinds of trouble until it is cancelled."""

    def __init__(
        self,
        machines: list[Machine],
        *,
        pick: Callable[[], Awaitable[SimServer]],
        network: Network,
        rng: Random,
        weather: Weather,
        history: History,
    ) -> None:
        self._machines = machines
        self._pick = pick
        self._network = network
        self._rng = rng
        self._weather = weather
        self._history = history
        self._unfinished: GcProgress | None = None

    async def run(self) -> None:
        """Until cancelled."""
        chaos = self._weather.chaos
        kinds: tuple[tuple[float, Callable[[Random], Awaitable[None]]], ...] = (
            (chaos.crash_s, self._crash),
            (chaos.restart_s, self._restart),
            (chaos.pause_s, self._pause),
            (chaos.partition_s, self._partition),
            (chaos.outage_s, self._outage),
            (chaos.clock_step_s, self._step_clock),
            (chaos.collect_s, self.collect),
        )
        tasks = [
            asyncio.ensure_future(self._repeat(every_s, kind, Random(self._rng.random())))
            for every_s, kind in kinds
            if every_s
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _repeat(self, every_s: float, kind: Callable[[Random], Awaitable[None]], rng: Random) -> None:
        while True:
            await asyncio.sleep(rng.expovariate(1.0 / every_s))
            await kind(rng)

    async def _crash(self, rng: Random) -> None:
        machine = rng.choice(self._machines)
        if machine.server.process.is_dead:
            return
        self._history.note(machine.name, "CRASH", machine.server.name)
        self._history.count("crashes")
        server = machine.server
        server.crash()
        await asyncio.sleep(rng.expovariate(1.0))
        if machine.server is server:
            machine.restart()

    async def _restart(self, rng: Random) -> None:
        """A clean exit, as in a rolling upgrade. Whoever still waits for an answer is cut off."""
        machine = rng.choice(self._machines)
        server = machine.server
        if not server.is_up:
            return
        self._history.note(machine.name, "RESTART", server.name)
        self._history.count("restarts")
        try:
            await server.call(server.stop)
            server.crash()
        except ServerDied:
            pass
        if machine.server is server:
            machine.restart()

    async def _pause(self, rng: Random) -> None:
        server = rng.choice(self._machines).server
        chaos = self._weather.chaos
        is_long = rng.random() < chaos.long_pause
        span_s = rng.uniform(4.0, chaos.longest_pause_s) if is_long else rng.random()
        self._history.note(server.name, "STOP", f"{span_s:.3f}s")
        self._history.count("pauses")
        server.process.pause()
        try:
            await asyncio.sleep(span_s)
        finally:
            server.process.resume()
            self._history.note(server.name, "CONTINUE")

    async def _partition(self, rng: Random) -> None:
        machine = rng.choice(self._machines).name
        self._history.note(machine, "CUT OFF")
        self._history.count("partitions")
        self._network.cut_off.add(machine)
        await asyncio.sleep(rng.expovariate(0.7))
        self._network.cut_off.discard(machine)
        self._history.note(machine, "BACK")

    async def _outage(self, rng: Random) -> None:
        self._history.note("database", "DOWN")
        self._history.count("outages")
        self._network.go_down()
        await asyncio.sleep(rng.expovariate(1.0))
        self._network.is_down = False
        self._history.note("database", "UP")

    async def _step_clock(self, rng: Random) -> None:
        machine = rng.choice(self._machines)
        bound_s = SANE_SKEW_S
        if self._weather.has_wild_clock and machine is self._machines[0]:
            bound_s = 4000.0
        skew_s = rng.uniform(-bound_s, bound_s)
        self._history.note(machine.name, "CLOCK", f"{skew_s - machine.skew_s:+.3f}s")
        self._history.count("clock steps")
        machine.clock.step(skew_s - machine.skew_s)
        machine.skew_s = skew_s

    async def collect(self, rng: Random) -> None:
        """One garbage collection, on any server; an interrupted one is sometimes taken up again."""
        server = await self._pick()
        resume = self._unfinished if rng.random() < 0.7 else None

        async def report(progress: GcProgress) -> None:
            self._unfinished = progress if progress.phase == "delete" else None

        self._history.note(server.name, "collects", "again" if resume else "")
        self._history.count("collections started")
        try:
            done = await server.call(lambda: server.collector().run(resume=resume, report=report))
        except (Unavailable, OutcomeUnknown, ServerDied) as error:
            self._history.note(server.name, "collection ends", type(error).__name__)
        except Damaged as error:
            if not self._weather.has_wild_clock:
                self._history.breach("nothing in use is collected", f"{server.name}'s collection: {error}")
        except CynosureError as error:
            self._history.breach("no bug escapes", f"{server.name}'s collection: {error!r}")
        else:
            self._unfinished = None
            self._history.note(server.name, "collected", f"doomed={done.doomed} deleted={done.deleted}")
            self._history.count("collections")
