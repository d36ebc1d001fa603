"""The clients with Idempotency-Keys of one run, and what is asked of their keys in the end.

Must not break: once nothing goes wrong any more, every key ends. That is asked for by trying, not by looking
at records.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Final, Protocol

from cynosure.testing.sim.keyed_client import Intent, KeyedClient, KeyPool
from cynosure.testing.sim.keyed_history import KeyedHistory, Revoked
from cynosure.testing.sim.server import SimServer
from cynosure.testing.sim.weather import Keyed, Weather

_FINAL: Final = frozenset({"answered", "conflict"})
_LATE_S: Final = 13.0
"""After this long no message of before is on its way any more."""


class Servers(Protocol):
    """The part of the world that the load needs."""

    async def pick(self) -> SimServer:
        """Any server that is up."""
        ...

    def rng(self, name: str) -> Random:
        """The generator of one part of the run."""
        ...


class KeyedLoad:
    """All clients with keys."""

    def __init__(self, world: Servers, weather: Weather, settings: Keyed, keyed: KeyedHistory) -> None:
        self._world = world
        self._settings = settings
        self._keyed = keyed
        self._weather = weather
        self._pools = [KeyPool(f"p{number}", []) for number in range(settings.principals)]
        self._clients = [
            self._client(f"k{number}", self._pools[number % len(self._pools)])
            for number in range(settings.clients)
        ]

    def _client(self, name: str, pool: KeyPool, settings: Keyed | None = None) -> KeyedClient:
        return KeyedClient(
            name,
            pool,
            servers=self._world,
            rng=self._world.rng(name),
            weather=self._weather,
            settings=settings or self._settings,
            keyed=self._keyed,
        )

    async def run(self) -> None:
        """Until every client has done all it does."""
        revoking = asyncio.ensure_future(self._revoke(self._world.rng("rights")))
        await asyncio.gather(*(client.run() for client in self._clients))
        revoking.cancel()
        await asyncio.wait([revoking])

    async def _revoke(self, rng: Random) -> None:
        """Take rights away for a while, again and again."""
        history = self._keyed.history
        while self._settings.revoke_s:
            await asyncio.sleep(rng.expovariate(1.0 / self._settings.revoke_s))
            principal = rng.choice(self._pools).principal
            span = Revoked(principal, history.note("world", "REVOKED", principal))
            self._keyed.revoked.append(span)
            history.count("rights revoked")
            try:
                await asyncio.sleep(rng.expovariate(1.0))
            finally:
                span.until = history.note("world", "GRANTED", principal)

    async def settle_all(self) -> None:
        """All is well again: every key of late gets its answer, and gets it at once when all calmed down."""
        history, settings = self._keyed.history, self._settings.settings
        recent_s = history.now_s - settings.lifetime.total_seconds() / 2
        # What takes longer than its deadline is refused, also when all is well.
        swift = replace(self._settings, slow=0.0)
        clients = [self._client(f"last-{pool.principal}", pool, swift) for pool in self._pools]
        recent = [
            (client, intent)
            for client, pool in zip(clients, self._pools, strict=True)
            for intent, used_s in pool.used
            if used_s > recent_s
        ]
        healed_s = history.now_s

        async def insist(client: KeyedClient, intent: Intent) -> None:
            while (attempt := await client.ask(intent)).outcome not in _FINAL:
                if history.now_s - healed_s > 30.0:
                    text = f"{attempt.request_id} {attempt.key_hash[:8]}: {attempt.outcome}"
                    history.breach("every key ends", text)
                    return
                await asyncio.sleep(0.5)

        await asyncio.gather(*(insist(client, intent) for client, intent in recent))
        await asyncio.sleep(max(0.0, healed_s + _LATE_S - history.now_s))
        bound_s = (settings.wait + settings.lease).total_seconds() + self._weather.deadline_s
        for client, intent in recent:
            attempt = await client.ask(intent)
            if attempt.outcome not in _FINAL or attempt.ended_s - attempt.invoked_s > bound_s:
                history.breach("every key ends", f"{attempt.request_id}: {attempt.outcome} once all was well")

    def check_idle(self, server: SimServer) -> None:
        """Nothing of requests that have ended is kept in memory."""
        engine = server.idempotency
        if engine is None:
            return
        left = [*engine._running, *engine._finishing, *engine._leases._held]
        if left or server.executing:
            self._keyed.history.breach("nothing of an ended request is left", f"{server.name}: {left}")
