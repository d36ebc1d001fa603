"""Clients that hold Idempotency-Keys: they repeat, use each other's keys, and sometimes the wrong ones.

Must not break: what a server said is written down also where its client did not hear it, because another
attempt may be told something else.
"""

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from cynosure.api.idempotency import describe
from cynosure.common.errors import CynosureError, Damaged, Forbidden, KeyReused
from cynosure.idempotency.engine import STORED, Outcome, is_hiding
from cynosure.idempotency.errors import CommitInProgress, RequestInProgress
from cynosure.idempotency.fingerprint import fingerprint
from cynosure.idempotency.keys import hash_scope
from cynosure.idempotency.reservations import Claim
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.testing.sim.client import Servers
from cynosure.testing.sim.keyed_history import KeyedAttempt, KeyedHistory
from cynosure.testing.sim.keyed_work import KeyedWork
from cynosure.testing.sim.operations import ACCOUNTS, SHARED, Operation
from cynosure.testing.sim.server import CATALOG, REALM, REFERENCES, ServerDied
from cynosure.testing.sim.weather import CLOCK_SLACK_S, Keyed, Weather

_ATTEMPTS: Final = 6
_KINDS: Final = {
    "create": 16,
    "register": 14,
    "provision": 8,
    "stage": 8,
    "increment": 14,
    "set-if": 8,
    "transfer": 14,
    "drop": 8,
    "rename": 4,
    "ensure": 6,
    "tally": 4,
    "join": 10,
    "malformed": 3,
}


class Intent(NamedTuple):
    """A key and what it stands for."""

    key: str
    reference: RefKey
    operation: Operation


@dataclass(slots=True)
class KeyPool:
    """Keys that the clients of one principal have used."""

    principal: str
    used: list[tuple[Intent, float]]


class KeyedClient:
    """One client: a sequence of requests with keys, each repeated until it is answered."""

    def __init__(
        self,
        name: str,
        pool: KeyPool,
        *,
        servers: Servers,
        rng: Random,
        weather: Weather,
        settings: Keyed,
        keyed: KeyedHistory,
    ) -> None:
        self.name = name
        self._pool = pool
        self._servers = servers
        self._rng = rng
        self._weather = weather
        self._settings = settings
        self._keyed = keyed
        self._history = keyed.history
        self._asked = 0
        self._references = REFERENCES[: weather.references]

    async def run(self) -> None:
        """Do everything this client does."""
        for number in range(self._settings.operations):
            await asyncio.sleep(self._rng.expovariate(1.0 / self._weather.think_s))
            luck = self._rng.random()
            used = self._pool.used
            if used and luck < self._settings.repeated:
                self._history.count("keys repeated")
                await self.insist(self._rng.choice(used)[0])
            elif used and luck < self._settings.repeated + self._settings.reused:
                self._history.count("keys reused")
                await self.insist(self._rng.choice(used)[0]._replace(operation=self._draw()))
            else:
                intent = Intent(f"{self.name}-{number}", self._rng.choice(self._references), self._draw())
                used.append((intent, self._history.now_s))
                if self._rng.random() < self._settings.twins:
                    self._history.count("keys sent several times at once")
                    await asyncio.gather(*(self.insist(intent) for _ in range(self._rng.choice((2, 3)))))
                elif intent.operation.kind == "join":
                    await asyncio.gather(*map(self.insist, self._draw_company(intent)))
                else:
                    await self.insist(intent)

    def _draw_company(self, first: Intent) -> list[Intent]:
        """What goes well together, sent at the same time: each with a key, and repeated, by itself."""
        company = [first]
        name = first.operation.args[0]
        for number in range(self._rng.randrange(1, 9)):
            operation = Operation("join", (name, self._rng.randrange(1000)))
            company.append(Intent(f"{first.key}-{number}", first.reference, operation))
        self._pool.used += [(intent, self._history.now_s) for intent in company[1:]]
        return company

    async def insist(self, intent: Intent) -> None:
        """Send a request until it is answered, or patience is at its end."""
        for _ in range(_ATTEMPTS):
            attempt = await self.ask(intent, hang_up_after_s=self._draw_patience_s())
            is_deaf = self._rng.random() < self._weather.chaos.deafness
            if attempt.outcome in ("answered", "conflict", "forbidden") and not is_deaf:
                return
            await asyncio.sleep(self._rng.expovariate(2.0))

    async def ask(self, intent: Intent, *, hang_up_after_s: float | None = None) -> KeyedAttempt:
        """Send a request once, to any server."""
        server = await self._servers.pick()
        self._asked += 1
        claim = make_claim(intent, self._pool.principal)
        request_id = f"{self.name}~{self._asked}"
        invoked = self._history.note(
            self.name, "asks", server.name, request_id, claim.key_hash[:8], intent.operation
        )
        attempt = KeyedAttempt(
            request_id=request_id,
            principal=self._pool.principal,
            operation=intent.operation,
            reference=intent.reference,
            key=intent.key,
            key_hash=claim.key_hash,
            payload_hash=claim.payload_hash,
            server=server.name,
            invoked=invoked,
            invoked_s=self._history.now_s,
        )
        self._keyed.attempts.append(attempt)
        rng = Random(self._rng.random())
        work = KeyedWork(attempt, server, self._keyed, rng, slow=self._settings.slow)

        async def run() -> Outcome:
            assert server.idempotency is not None
            return await server.idempotency.run(claim, work.execute)

        if hang_up_after_s is not None:
            self._history.count("hang-ups")
        await self._settle(attempt, server.call(run, hang_up_after_s=hang_up_after_s))
        return attempt

    async def _settle(self, attempt: KeyedAttempt, asked: Any) -> None:
        said = ""
        try:
            outcome = await asked
        except ServerDied:
            attempt.outcome = "unknown"
        except (RequestInProgress, CommitInProgress):
            attempt.outcome = "in progress"
        except KeyReused:
            attempt.outcome = "conflict"
        except CynosureError as error:
            self._refused(attempt, error)
            said = type(error).__name__
        else:
            attempt.outcome, attempt.answer = "answered", outcome.answer
            said = str(outcome.answer.status)
            self._history.count("answers replayed", int(outcome.is_replayed))
        attempt.ended = self._history.note(self.name, "told", attempt.request_id, attempt.outcome, said)
        attempt.ended_s = self._history.now_s
        self._history.count(f"keyed requests {attempt.outcome}")

    def _refused(self, attempt: KeyedAttempt, error: CynosureError) -> None:
        answer = describe(error)
        if isinstance(error, Forbidden) or is_hiding(error):
            attempt.outcome = "forbidden"
        elif answer.status in STORED:
            attempt.outcome, attempt.answer, attempt.error = "answered", answer, type(error).__name__
        else:
            attempt.outcome = "unknown"
            retention_s = self._weather.gc.history_retention.total_seconds()
            span_s = self._history.now_s - attempt.invoked_s
            if isinstance(error, Damaged) and span_s < retention_s - 2 * CLOCK_SLACK_S:
                text = f"{attempt.request_id} on {attempt.server}: {error}"
                self._history.breach("nothing in use is collected", text)

    def _draw_patience_s(self) -> float | None:
        if self._rng.random() < self._weather.chaos.disconnect:
            return self._rng.expovariate(5.0)
        return None

    def _draw(self) -> Operation:
        rng = self._rng
        name = f"{rng.choice('xy')}{rng.randrange(self._weather.names)}"
        kinds = self._settings.kinds or tuple(_KINDS)
        kind = rng.choices(kinds, [_KINDS[kind] for kind in kinds])[0]
        match kind:
            case "increment":
                return Operation(kind, (name, rng.randrange(1, 5)))
            case "set-if":
                return Operation(kind, (name, rng.randrange(3), rng.randrange(3)))
            case "rename":
                return Operation(kind, (name, f"{rng.choice('xy')}{rng.randrange(self._weather.names)}"))
            case "drop":
                return Operation(kind, (name,))
            case "join":
                shared = rng.choice((name, f"{SHARED}0", f"{SHARED}1"))
                # What it says beside the name makes it another payload, and nothing else.
                return Operation(kind, (shared, rng.randrange(1000)))
            case "tally":
                return Operation(kind, (rng.choice("xy"),))
            case "transfer":
                source, target = rng.sample(range(ACCOUNTS), 2)
                return Operation(kind, (f"account-{source}", f"account-{target}", rng.randrange(1, 60)))
        return Operation(kind, (name, f"{rng.randrange(self._weather.names)}/"))


def make_claim(intent: Intent, principal: str) -> Claim:
    """What a request claims, as the router makes it of a real one."""
    body = msgspec.json.encode([intent.operation.kind, list(intent.operation.args)])
    path = f"/{intent.reference.name}"
    key_hash = hash_scope(
        realm=REALM,
        catalog=CATALOG,
        method="POST",
        path=path,
        principal_id=ObjId(int(principal.removeprefix("p")) + 1),
        actor_id=ObjId(0),
        key=intent.key,
    )
    return Claim(
        key=intent.key,
        key_hash=key_hash,
        payload_hash=fingerprint(body),
        realm=REALM,
        method="POST",
        path=path,
        principal=principal,
        is_commit=intent.operation.kind == "set-if",
    )
