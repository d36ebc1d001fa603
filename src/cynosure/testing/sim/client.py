"""Clients: they ask servers for changes and reads, give up, come back, and write down what they were told.

Must not break: a client records its question before it asks and the answer when it has it, so the span
between the two events contains the instant at which the answer was true.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple, Protocol

from cynosure.common.errors import (
    AlreadyExists,
    Conflict,
    CynosureError,
    Damaged,
    Expired,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.persistence.commit import AlreadyCommitted, Committed, Prepared, Request, State, View
from cynosure.persistence.gc.pins import drop_pin, renew_pin, set_pin
from cynosure.persistence.history.restore import restore
from cynosure.persistence.index import after
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.testing.sim.history import Attempt, HeadRead, History, Listing
from cynosure.testing.sim.operations import ACCOUNTS, ENTITY, Operation, prepare
from cynosure.testing.sim.server import REFERENCES, ServerDied, SimServer
from cynosure.testing.sim.weather import CLOCK_SLACK_S, Weather

_REFUSALS = (AlreadyExists, Conflict, NotFound, Expired)
_ATTEMPTS = 5
_PAGE = 3


class Servers(Protocol):
    """Where a client finds its servers."""

    async def pick(self) -> SimServer:
        """Any server that is up."""
        ...


class _Asking(NamedTuple):
    """What a client wants, however often it has to ask."""

    number: str
    reference: RefKey
    operation: Operation
    key_hash: str
    guard: RefKey | None


class Client:
    """One client: a sequence of operations with pauses in between."""

    def __init__(
        self, name: str, *, servers: Servers, rng: Random, weather: Weather, history: History
    ) -> None:
        self.name = name
        self._servers = servers
        self._rng = rng
        self._weather = weather
        self._history = history
        self._references = REFERENCES[: weather.references]
        self._asked = 0
        self._known: dict[RefKey, list[tuple[ObjId, float]]] = {key: [] for key in REFERENCES}
        """Heads this client has seen, and when."""

    async def run(self) -> None:
        """Do everything this client does."""
        for _ in range(self._weather.operations):
            await asyncio.sleep(self._rng.expovariate(1.0 / self._weather.think_s))
            reference = self._rng.choice(self._references)
            luck = self._rng.random()
            past = 0.0 if self._weather.has_wild_clock else self._weather.past
            if luck < 0.08:
                await self.list_names(reference)
            elif luck < 0.08 + past / 2:
                await self.hold_pin(reference)
            elif luck < 0.08 + past:
                await self.restore(reference)
            elif luck < 0.08 + past + self._weather.reads:
                await self.read_head(reference)
            else:
                await self.change(reference, self._draw())

    def _draw(self) -> Operation:
        rng = self._rng
        name = f"{rng.choice('xy')}{rng.randrange(self._weather.names)}"
        kind = rng.choices(
            ("increment", "set-if", "create", "ensure", "rename", "drop", "drop-first", "tally", "transfer"),
            (20, 8, 18, 6, 8, 6, 4, 8, 16),
        )[0]
        if kind == "increment":
            return Operation(kind, (name, rng.randrange(1, 5)))
        if kind == "set-if":
            return Operation(kind, (name, rng.randrange(3), rng.randrange(3)))
        if kind in ("create", "ensure"):
            depth = rng.choice((1, 1, 2, 3))
            parts = [str(rng.randrange(self._weather.names)) for _ in range(depth)]
            return Operation(kind, (name, "/".join(parts) + "/"))
        if kind == "rename":
            return Operation(kind, (name, f"{rng.choice('xy')}{rng.randrange(self._weather.names)}"))
        if kind == "drop":
            return Operation(kind, (name,))
        if kind in ("drop-first", "tally"):
            return Operation(kind, (rng.choice("xy"),))
        source, target = rng.sample(range(ACCOUNTS), 2)
        return Operation(kind, (f"account-{source}", f"account-{target}", rng.randrange(1, 60)))

    def _draw_known(self, reference: RefKey) -> ObjId:
        """A head seen before; more often one that is about to leave the history, where mistakes are."""
        retention_s = self._weather.gc.history_retention.total_seconds()
        known = self._known[reference]
        old = [each for each in known if 0.5 * retention_s < self._now_s() - each[1] < 1.2 * retention_s]
        return self._rng.choice(old if old and self._rng.random() < 0.7 else known)[0]

    # --- changes --------------------------------------------------------------------------------

    async def change(self, reference: RefKey, operation: Operation, *, is_patient: bool = False) -> Attempt:
        """Ask for a change; with an idempotency key, until the outcome is known."""
        self._asked += 1
        number = f"{self.name}-{self._asked}"
        has_key = self._rng.random() < 0.5 and not self._weather.has_wild_clock
        key_hash = hashlib.sha256(number.encode()).hexdigest()[:32] if has_key else ""
        guard = self._rng.choice(self._references) if self._rng.random() < self._weather.guards else None
        asking = _Asking(number, reference, operation, key_hash, guard if guard != reference else None)
        # A key is remembered for its lifetime; an attempt takes up to the deadline, clocks differ a little.
        last_s = self._now_s() + self._weather.key_lifetime_s - self._weather.deadline_s - 2 * CLOCK_SLACK_S
        if is_patient:
            return await self._attempt(asking, "0", None)
        if has_key and self._rng.random() < self._weather.hedging:
            self._history.count("hedged requests")
            attempt, _ = await asyncio.gather(
                self._attempt(asking, "0", self._draw_patience_s()),
                self._attempt(asking, "hedge", self._draw_patience_s()),
            )
            return attempt
        for again in range(_ATTEMPTS):
            attempt = await self._attempt(asking, str(again), self._draw_patience_s())
            if self._rng.random() < self._weather.chaos.deafness:
                self._forget(attempt)
            is_open = attempt.outcome in ("unknown", "unavailable") and key_hash
            if not is_open or self._now_s() >= last_s:
                break
            await asyncio.sleep(self._rng.expovariate(2.0))
        return attempt

    def _draw_patience_s(self) -> float | None:
        """After how long this client hangs up; `None` when it waits for the answer."""
        if self._rng.random() < self._weather.chaos.disconnect:
            return self._rng.expovariate(10.0)
        return None

    async def _attempt(self, asking: "_Asking", again: str, patience_s: float | None) -> Attempt:
        server = await self._servers.pick()
        reference, request_id = asking.reference, f"{asking.number}.{again}"
        attempt = self._invoke(request_id, reference, asking.operation, asking.key_hash, server)
        request = Request(
            self._prepare(attempt, server, asking.guard),
            principal=self.name,
            operation=asking.operation.kind,
            request_id=request_id,
            key_hash=asking.key_hash,
        )
        if patience_s is not None:
            self._history.count("hang-ups")

        async def commit() -> Any:
            attempt.started_s = self._now_s()
            return await server.committers[reference].commit(request)

        await self._settle(attempt, server.call(commit, hang_up_after_s=patience_s))
        return attempt

    def _invoke(
        self, request_id: str, reference: RefKey, operation: Operation, key_hash: str, server: SimServer
    ) -> Attempt:
        attempt = Attempt(
            request_id=request_id,
            operation=operation,
            reference=reference,
            key_hash=key_hash,
            server=server.name,
            invoked=self._history.note(self.name, "asks", server.name, request_id, reference.name, operation),
            invoked_s=self._now_s(),
        )
        self._history.attempts[request_id] = attempt
        return attempt

    def _prepare(self, attempt: Attempt, server: SimServer, guard: RefKey | None) -> Any:
        is_slow = self._rng.random() < self._weather.slow_prepare
        text = self._rng.randbytes(self._rng.choice((4, 4, 700)))
        slowness = Random(self._rng.random())

        async def run(view: View) -> Prepared[Any]:
            number = len(attempt.preparations) + 1
            attempt.preparations[number] = 0
            if is_slow:
                await server.clock.sleep(slowness.expovariate(5.0))
            prepared = await prepare(
                attempt.operation, view, new_id=server.ids.next, text=text, number=number
            )
            if guard is not None:
                head = (await server.heads.load(guard)).head
                attempt.guards[number] = (guard, head)
                prepared = replace(prepared, guards={guard: head})
            attempt.preparations[number] = self._history.note(
                server.name, "prepared", attempt.request_id, number
            )
            return prepared

        return run

    async def _settle(self, attempt: Attempt, asked: Any) -> None:
        try:
            answer = await asked
        except (ServerDied, OutcomeUnknown) as error:
            attempt.outcome, attempt.error = "unknown", type(error).__name__
        except Unavailable as error:
            attempt.outcome, attempt.error = "unavailable", type(error).__name__
        except _REFUSALS as error:
            attempt.outcome, attempt.error = "refused", type(error).__name__
        except CynosureError as error:
            attempt.outcome, attempt.error = "damaged", f"{type(error).__name__}: {error}"
        else:
            attempt.commit_id = answer.commit_id
            if isinstance(answer, AlreadyCommitted):
                attempt.outcome = "already"
            else:
                assert isinstance(answer, Committed)
                attempt.outcome = "committed"
                attempt.sequence, attempt.result = answer.sequence, answer.result
            self._known[attempt.reference].append((answer.commit_id, self._now_s()))
        attempt.ended = self._history.note(
            self.name, "told", attempt.request_id, attempt.outcome, attempt.error, attempt.commit_id
        )
        attempt.ended_s = self._now_s()
        self._history.count(f"requests {attempt.outcome}")

    def _forget(self, attempt: Attempt) -> None:
        """The answer got lost on its way to the client."""
        attempt.outcome, attempt.error = "unknown", "AnswerLost"
        self._history.note(self.name, "was not told", attempt.request_id)

    async def restore(self, reference: RefKey) -> None:
        """Make an earlier state current again."""
        if not self._known[reference]:
            return
        target = self._draw_known(reference)
        server = await self._servers.pick()
        self._asked += 1
        request_id = f"{self.name}-{self._asked}.0"
        attempt = self._invoke(request_id, reference, Operation("restore", (target,)), "", server)

        async def commit() -> Any:
            attempt.started_s = self._now_s()
            return await restore(
                server.committers[reference],
                target,
                principal=self.name,
                request_id=request_id,
                clock=server.clock,
                retention=self._weather.gc.history_retention,
            )

        await self._settle(attempt, server.call(commit))

    # --- reads ----------------------------------------------------------------------------------

    async def read_head(self, reference: RefKey) -> ObjId | None:
        """Ask for the current state."""
        server = await self._servers.pick()
        invoked = self._history.note(self.name, "reads", server.name, reference.name)
        invoked_s = self._now_s()
        try:
            base = await server.call(server.committers[reference].read)
        except (Unavailable, ServerDied):
            return None
        except Damaged as error:
            self._may_be_missing(invoked_s, error, "a head")
            return None
        head = base.ref.head
        ended = self._history.note(self.name, "has read", reference.name, head)
        self._history.reads.append(HeadRead(reference, server.name, invoked, invoked_s, ended, head))
        self._history.count("reads")
        if head:
            self._known[reference].append((head, self._now_s()))
        return head

    async def list_names(self, reference: RefKey) -> None:
        """Read all names of one state page by page, from several servers, within the life of a token."""
        until_s = self._now_s() + self._weather.page_life_s
        head = await self.read_head(reference)
        if not head:
            return
        listing = await self._list(reference, head, lambda: self._now_s() < until_s)
        if listing is not None:
            self._history.listings.append(listing)
            self._history.count("listings")

    async def _list(
        self, reference: RefKey, commit_id: ObjId, is_fresh: Callable[[], bool]
    ) -> Listing | None:
        names: list[str] = []
        balance = 0
        start = b""
        while is_fresh():
            server = await self._servers.pick()
            page_start = start

            async def read_page(server: SimServer = server, start: bytes = page_start) -> Any:
                store = server.store_of(reference.realm, reference.catalog)
                state = await State.load(store, commit_id)
                entries = await state.scan("names", start=start, limit=_PAGE)
                entities = await state.load_many(ENTITY, [ObjRef.unpack(value).id for _, value in entries])
                return entries, entities

            try:
                entries, entities = await server.call(read_page)
            except (Unavailable, ServerDied):
                await asyncio.sleep(0.2)
                continue
            except Damaged as error:
                if is_fresh():
                    self._may_be_missing(self._now_s(), error, f"a page of {commit_id}")
                return None
            names += [entity.name for entity in entities]
            balance += sum(each.counter for each in entities if each.name.startswith("account-"))
            if len(entries) < _PAGE:
                return Listing(reference, commit_id, tuple(names), balance)
            start = after(entries[-1][0])
            await asyncio.sleep(self._rng.expovariate(4.0))
        return None

    async def hold_pin(self, reference: RefKey) -> None:
        """Keep a state alive beyond the retained history, and read it in the end."""
        if not self._known[reference]:
            return
        commit_id = self._draw_known(reference)
        server = await self._servers.pick()
        store = server.store_of(reference.realm, reference.catalog)
        life_s = 6.0

        async def pin() -> Any:
            head = (await server.heads.load(reference)).head
            return await set_pin(
                store,
                head=head,
                commit=commit_id,
                owner=self.name,
                life_s=life_s,
                ids=server.ids,
                clock=server.clock,
                retention=self._weather.gc.history_retention,
            )

        until_s = self._now_s()
        try:
            pinned = await server.call(pin)
            until_s += life_s - CLOCK_SLACK_S
            self._history.note(self.name, "pinned", commit_id, pinned.id)
            self._history.count("pins")
            for _ in range(self._rng.randrange(8)):
                await asyncio.sleep(life_s / 3)
                asked_s = self._now_s()
                pinned = await server.call(
                    lambda: renew_pin(store, pinned, life_s=life_s, clock=server.clock)  # noqa: B023
                )
                until_s = asked_s + life_s - CLOCK_SLACK_S
            listing = await self._list(reference, commit_id, lambda: self._now_s() < until_s)
            if listing is not None:
                self._history.listings.append(listing)
                self._history.count("pinned listings")
            await server.call(lambda: drop_pin(store, pinned))
        except (Unavailable, OutcomeUnknown, Expired, NotFound, LeaseLost, ServerDied) as error:
            self._history.note(self.name, "pin ends", commit_id, type(error).__name__)
        except Damaged as error:
            self._may_be_missing(self._now_s(), error, f"pinned {commit_id}")

    def _may_be_missing(self, since_s: float, error: Damaged, what: str) -> None:
        """Only a request that took as long as history is kept may find it gone."""
        if self._weather.has_wild_clock:
            return
        retention_s = self._weather.gc.history_retention.total_seconds()
        if self._now_s() - since_s < retention_s - 2 * CLOCK_SLACK_S:
            self._history.breach("nothing in use is collected", f"{self.name} read {what}: {error}")

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
