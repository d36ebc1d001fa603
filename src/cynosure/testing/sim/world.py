"""One whole run: machines, servers, clients and troubles, from a seed to a verdict.

    set up calmly ──► clients and troubles ──► heal, drain, stop ──► last collections ──► checker

Must not break: every random number comes from a generator derived from the seed by name.
"""

import asyncio
import gc
from dataclasses import replace
from random import Random

from cynosure.common.errors import CynosureError
from cynosure.persistence.references import ensure_reference
from cynosure.testing.sim.chaos import SANE_SKEW_S, Troubles
from cynosure.testing.sim.checker import check_run
from cynosure.testing.sim.chores import ChoreBook
from cynosure.testing.sim.client import Client
from cynosure.testing.sim.clock import SimClock
from cynosure.testing.sim.faults import Network
from cynosure.testing.sim.history import BrokenRule, History, WatchedRows, watched_store
from cynosure.testing.sim.keyed_history import KeyedHistory
from cynosure.testing.sim.keyed_load import KeyedLoad
from cynosure.testing.sim.loop import SimLoop, Stuck
from cynosure.testing.sim.operations import Operation
from cynosure.testing.sim.server import REFERENCES, Parts, SimServer, make_database
from cynosure.testing.sim.turns import Turns
from cynosure.testing.sim.weather import Weather, draw_keyed_weather, draw_weather

_MOST_STEPS = 2_000_000


def seeded(seed: int, name: str) -> Random:
    """The random numbers of one part of a run."""
    return Random(f"{seed}/{name}")


class Machine:
    """A host with a clock, and the server that runs on it."""

    def __init__(self, world: "World", number: int) -> None:
        self.name = f"m{number}"
        self._world = world
        self._starts = 0
        rng = world.rng(self.name)
        self.skew_s = rng.uniform(-SANE_SKEW_S, SANE_SKEW_S)
        if world.weather.has_wild_clock and number == 0:
            self.skew_s = rng.uniform(-4000.0, 4000.0)
        self.clock = SimClock(world.loop, skew_s=self.skew_s, drift=rng.uniform(-1e-4, 1e-4))
        self.restart()

    def restart(self) -> None:
        """Start a server process."""
        self._starts += 1
        self.server = self._world.new_server(f"{self.name}.{self._starts}", self.name, self.clock)
        self.server.process.spawn(self.server.start())


class World:
    """Everything of one run."""

    def __init__(self, seed: int, *, parts: Parts, weather: Weather | None = None) -> None:
        self.seed = seed
        self.weather = weather if weather is not None else draw_weather(self.rng("weather"))
        self.loop = SimLoop(self.rng("loop"), is_shuffled=self.weather.is_shuffled, most_steps=_MOST_STEPS)
        self.history = History(self.loop, has_wild_clock=self.weather.has_wild_clock)
        self._parts = parts
        rows = WatchedRows(self.history)
        self.keyed = None if self.weather.keyed is None else KeyedHistory(self.history, self.weather.is_quiet)
        if self.keyed is not None:
            rows.see = self.keyed.see_row
        self.store = watched_store(self.history, rows)
        self.database = make_database(self.weather, self.store)
        self.network = Network(
            self.loop, self.rng("network"), self.database, self.weather.faults, self.history
        )
        self._turns = Turns(self.loop.time, self.history) if self.weather.has_turns else None
        self._book = ChoreBook(self.history, self.weather)
        self.servers: list[SimServer] = []
        self.machines: list[Machine] = []
        self._choices = self.rng("choices")
        self._keyed_load: KeyedLoad | None = None

    def rng(self, name: str) -> Random:
        """The generator of one part of the run."""
        return seeded(self.seed, name)

    def new_server(self, name: str, machine: str, clock: SimClock) -> SimServer:
        """A server process that has not started yet."""
        server = SimServer(
            name,
            machine,
            loop=self.loop,
            clock=clock,
            rng=self.rng(name),
            network=self.network,
            turns=self._turns,
            weather=self.weather,
            history=self.history,
            parts=self._parts,
            book=self._book,
            peers=self.servers,
        )
        self.servers.append(server)
        return server

    async def pick(self) -> SimServer:
        """Any server that is up."""
        while True:
            up = [machine.server for machine in self.machines if machine.server.is_up]
            if up:
                return self._choices.choice(up)
            await asyncio.sleep(0.1)

    async def run(self) -> None:
        """All of it."""
        await self.database.setup()
        clock = SimClock(self.loop)
        for key in REFERENCES:
            await ensure_reference(self.database, key, clock)
        self.machines = [Machine(self, number) for number in range(self.weather.servers)]
        await self._work()
        await self._quiesce()
        await self._finish()

    async def _work(self) -> None:
        clients = [
            Client(
                f"c{number}",
                servers=self,
                rng=self.rng(f"c{number}"),
                weather=self.weather,
                history=self.history,
            )
            for number in range(self.weather.clients)
        ]
        for key in REFERENCES[: self.weather.references]:
            is_open = False
            while not is_open:
                attempt = await clients[0].change(key, Operation("open"), is_patient=True)
                is_open = attempt.outcome in ("committed", "already")
        troubles = Troubles(
            list(self.machines),
            pick=self.pick,
            network=self.network,
            rng=self.rng("troubles"),
            weather=self.weather,
            history=self.history,
        )
        trouble = asyncio.ensure_future(troubles.run())
        if self.keyed is None or self.weather.keyed is None:
            await asyncio.gather(*(client.run() for client in clients))
        else:
            self._keyed_load = KeyedLoad(self, self.weather, self.weather.keyed, self.keyed)
            await asyncio.gather(self._keyed_load.run(), *(client.run() for client in clients))
        trouble.cancel()
        await asyncio.wait([trouble])

    async def _quiesce(self) -> None:
        """Heal everything, let late messages arrive, stop the servers; nothing may be left running."""
        self.network.heal()
        self.history.note("world", "HEALED")
        for machine in self.machines:
            if machine.server.is_stopping and not machine.server.process.is_dead:
                machine.server.crash()  # Its restart was called off.
            if machine.server.process.is_dead:
                machine.restart()
        if self._keyed_load is not None:
            await self._keyed_load.settle_all()
        # Longer than any message is late, any deadline and any lease.
        await asyncio.sleep(40.0)
        for machine in self.machines:
            server = machine.server
            if not server.is_up:
                # Still waiting for a node id: wild clocks lease them for hours.
                if not self.weather.has_wild_clock:
                    self.history.breach("a healed store works", f"{server.name} did not start")
                server.crash()
                continue
            if self._keyed_load is not None:
                self._keyed_load.check_idle(server)
            await server.call(server.stop)
            left = server.process.pending_tasks()
            if left:
                self.history.breach("no task is leaked", f"{server.name}: {left[0].get_coro()}")
        for server in self.servers:
            counters = server.counters
            self.history.count("commits", counters.commits)
            self.history.count("lost swaps", counters.lost)
            self.history.count("unknown swaps", counters.unknown)
            self.history.count("prepared again", counters.prepared_again)
            self.history.count("turns", counters.turns)

    async def _finish(self) -> None:
        """The last collections, by a fresh server with a true clock; then the verdict."""
        self.weather = replace(self.weather, has_tasks=False)
        if self.weather.has_wild_clock:
            await asyncio.sleep(9000.0)  # Rows and commits may be dated hours ahead.
        auditor = self.new_server("auditor", "m-auditor", SimClock(self.loop))
        await auditor.process.spawn(auditor.start())
        keeper = Client(
            "keeper",
            servers=_Only(auditor),
            rng=self.rng("keeper"),
            weather=self.weather,
            history=self.history,
        )
        for key in REFERENCES[: self.weather.references]:
            attempt = await keeper.change(
                key, Operation("transfer", ("account-0", "account-1", 0)), is_patient=True
            )
            if attempt.outcome != "committed":
                self.history.breach("a healed store works", f"{attempt.outcome} {attempt.error}")
        for _ in range(2):
            # The second one is for what the first one wrote down for itself.
            await asyncio.sleep(30.0)
            began_us = auditor.clock.now_us()
            try:
                await auditor.call(auditor.collector().run)
            except CynosureError as error:
                self.history.breach("a healed store works", f"collection: {error}")
        await check_run(
            self.history,
            self.store,
            auditor,
            self.weather,
            last_collection_us=began_us,
            keyed=self.keyed,
        )
        await auditor.call(auditor.stop)


class _Only:
    def __init__(self, server: SimServer) -> None:
        self._server = server

    async def pick(self) -> SimServer:
        return self._server


class Run:
    """A finished run: its history and, when a rule was broken, which."""

    def __init__(self, world: World, broken: BrokenRule | None) -> None:
        self.seed = world.seed
        self.broken = broken
        self.history = world.history
        self.steps = world.loop.steps
        self.span_s = world.loop.time()


def run_keyed_seed(seed: int, *, parts: Parts | None = None, weather: Weather | None = None) -> Run:
    """As `run_seed`, with requests that carry an Idempotency-Key."""
    drawn = weather if weather is not None else draw_keyed_weather(seeded(seed, "weather"))
    return run_seed(seed, parts=parts, weather=drawn)


def run_seed(seed: int, *, parts: Parts | None = None, weather: Weather | None = None) -> Run:
    """Run one seed to its verdict."""
    was_collecting = gc.isenabled()
    # When Python finalizes what is in a cycle must not depend on what ran before; and what was there before
    # need not be looked through in the end.
    gc.disable()
    gc.freeze()
    try:
        return _run(World(seed, parts=parts or Parts(), weather=weather))
    finally:
        gc.collect()
        gc.unfreeze()
        if was_collecting:
            gc.enable()


def _run(world: World) -> Run:
    broken: BrokenRule | None = None
    try:
        world.loop.run(world.run())
    except Stuck as error:
        broken = BrokenRule("every run ends", str(error))
    except BrokenRule as error:
        broken = error.with_traceback(None)  # Its frames would keep the whole world alive.
    breaches = world.history.breaches
    breaches += [BrokenRule("no exception is lost", problem) for problem in world.loop.problems]
    return Run(world, breaches[0] if breaches else broken)
