"""The flow of a request with an Idempotency-Key.

    reserve ─┬─ new ───────────────────────► execute ─┬─ in the chain ──► answer; finalize soon after
             │                                        ├─ refused ───────► finalize, then answer
             │                                        └─ no outcome ────► release, then answer
             └─ known ─┬─ another payload ─► 422
                       ├─ FINALIZED ───────► replay: from the chain, or as stored once it is authorized again
                       ├─ lease runs ──────► wait for it; at last 409, or 504 where 409 means something else
                       └─ lease is out ────► take over and execute: R1 if the key is in the chain, R2 if not

R1 and R2 are one thing here: the request is executed with its key, and the commit itself finds out whether
that key is in the chain already (`auth/committing.py`).

Must not break:
- an outcome that is in no chain is stored before it is told, and told only by whoever stored it;
- an outcome that may be another one next time (5xx, 401, 403, 408, 419, 429) is never stored;
- whoever has waited is judged by what is so then, not by what was so when it came (`forget_ahead`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Final, NamedTuple

from cynosure.auth.request_key import Overtaken, Peppers, Refused, Rehearsed, RequestKey
from cynosure.common.clock import Clock
from cynosure.common.errors import (
    CynosureError,
    Forbidden,
    KeyReused,
    NotAuthenticated,
    NotFound,
)
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.idempotency import metrics
from cynosure.idempotency.errors import CommitInProgress, RequestInProgress
from cynosure.idempotency.leases import Leases
from cynosure.idempotency.notes import Note, Notes
from cynosure.idempotency.record import Answer, Record, unpack_answer
from cynosure.idempotency.reservations import Claim, Held, Reservations
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.heads import forget_ahead

STORED: Final = frozenset({400, 404, 406, 409, 422})
"""Refusals that are final: the same request would be refused the same way."""

_FIRST_LOOK_S: Final = 0.02
_LONGEST_LOOK_S: Final = 0.5
_log = Log(__name__)

Execute = Callable[[RequestKey], Awaitable[Answer]]
"""Does what the request asks for. Errors are refusals, or no outcome at all."""
Describe = Callable[[CynosureError], Answer]
"""An error as it is answered."""


class Outcome(NamedTuple):
    """What a request is answered."""

    answer: Answer
    is_replayed: bool
    """An earlier attempt was, or would have been, told the same."""


class _Running:
    """A request that this process is at."""

    __slots__ = ("ended", "is_noting", "payload_hash")

    def __init__(self, payload_hash: str) -> None:
        self.payload_hash = payload_hash
        self.ended: asyncio.Event | None = None
        """Made by whoever waits for it; most have nobody who does."""
        self.is_noting = False
        """It is answered, and its record is about to say so: till then others take it for in progress."""


class Idempotency:
    """Executes requests with keys, each at most once."""

    def __init__(
        self,
        reservations: Reservations,
        clock: Clock,
        settings: IdempotencySettings,
        *,
        describe: Describe,
        peppers: Peppers,
    ) -> None:
        self._reservations = reservations
        self._clock = clock
        self._describe = describe
        self._peppers = peppers
        self._wait_s = settings.wait.total_seconds()
        self._leases = Leases(reservations, clock, lease_s=settings.lease.total_seconds())
        self._notes = Notes(reservations, clock)
        self._running: dict[str, _Running] = {}
        self._is_ending = False
        self._finishing: set[asyncio.Task[None]] = set()

    async def run(self, claim: Claim, execute: Execute) -> Outcome:
        """The outcome of a request, executed now or before.

        `KeyReused` when its key stands for another one; `RequestInProgress`, or `CommitInProgress`,
        when another attempt does not end in time. Errors of `execute` pass.
        """
        until_s = self._clock.monotonic_s() + self._wait_s
        pause_s = _FIRST_LOOK_S
        while True:
            running = self._running.get(claim.key_hash)
            if running is not None:
                if running.payload_hash != claim.payload_hash:
                    raise _reused()
                if running.is_noting:
                    return await self._replay_from_chain(claim, execute)
                await self._await_ours(running, claim, until_s)
                forget_ahead()
                continue
            running = self._running[claim.key_hash] = _Running(claim.payload_hash)
            try:
                outcome = await self._attempt(claim, execute, running)
            finally:
                self._end(claim, running)
            if outcome is not None:
                return outcome
            # Somebody else is at it, in another process.
            left_s = until_s - self._clock.monotonic_s()
            if left_s <= 0 or self._is_ending:
                raise _in_progress(claim)
            await self._clock.sleep(min(pause_s, left_s))
            forget_ahead()
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)

    def stop_waiting(self) -> None:
        """From now on nobody waits for what another process does: this one is about to end."""
        self._is_ending = True

    async def close(self) -> None:
        """Finish what was answered and is not noted yet; stop renewing leases."""
        await self._notes.close()
        while self._finishing:
            await asyncio.wait(list(self._finishing))
        await self._leases.close()

    async def _await_ours(self, running: _Running, claim: Claim, until_s: float) -> None:
        if running.ended is None:
            running.ended = asyncio.Event()
        try:
            async with asyncio.timeout(max(0.0, until_s - self._clock.monotonic_s())):
                await running.ended.wait()
        except TimeoutError:
            raise _in_progress(claim) from None

    def _end(self, claim: Claim, running: _Running) -> None:
        if not running.is_noting:
            del self._running[claim.key_hash]
            if running.ended is not None:
                running.ended.set()

    async def _attempt(self, claim: Claim, execute: Execute, running: _Running) -> Outcome | None:
        """Execute or replay; `None` when another process has the request, or was faster to take it over."""
        found = await self._reservations.reserve(claim)
        if isinstance(found, Held):
            metrics.RESERVED.inc()
            return await self._execute(claim, found, execute, running)
        record, now_us = found.value, self._clock.now_us()
        if record.expires_us <= now_us:
            metrics.EXPIRED.inc()
            held = await self._reservations.begin_anew(claim, found)
        elif record.payload_hash != claim.payload_hash:
            raise _reused()
        elif record.state == "FINALIZED":
            return await self._replay(claim, record, execute)
        elif record.lease_until_us > now_us:
            return None
        else:
            held = await self._reservations.take_over(found)
        return None if held is None else await self._execute(claim, held, execute, running)

    # --- execute ----------------------------------------------------------------------------------

    async def _execute(self, claim: Claim, held: Held, execute: Execute, running: _Running) -> Outcome | None:
        is_repeat = held.record.attempt > 1
        self._leases.keep(held)
        try:
            while True:
                key = self._key(claim, is_repeat=is_repeat)
                try:
                    outcome = await _outcome_of(key, execute)
                    break
                except Overtaken:
                    is_repeat = True
                except BaseException:
                    # Cancelled, or a defect. Nobody waits for this any more.
                    self._start(self._release(held))
                    raise
            if is_repeat:
                (metrics.FOUND_APPLIED if key.is_recalled else metrics.TAKEN_OVER).inc()
            return await self._settle(claim, held, key, outcome, running)
        finally:
            self._leases.leave(held)

    async def _settle(
        self, claim: Claim, held: Held, key: RequestKey, outcome: Answer | CynosureError, running: _Running
    ) -> Outcome | None:
        answer = outcome if isinstance(outcome, Answer) else self._describe(outcome)
        if isinstance(outcome, KeyReused):
            # Its record was lost, but the chain knows the key from another request: that one's it is.
            await self._forget(held)
        elif held.record.attempt == 1 and not key.is_committed and _is_refused_right(outcome):
            # The only attempt, and it is over. Who may do nothing must not be able to fill the store.
            await self._forget(held)
        elif not _is_final(answer, outcome):
            await self._release(held)
        elif key.is_committed:
            running.is_noting = True
            self._notes.add(Note(held, answer.status, partial(self._noted, claim, running)))
        elif not await self._reservations.finalize(held, answer.status, key.seal(answer.pack())):
            # Taken over while this was paused or cut off: what counts is what the other one says.
            return None
        if isinstance(outcome, CynosureError):
            raise outcome
        if key.is_recalled:
            metrics.REPLAYED.inc()
        return Outcome(answer, key.is_recalled)

    def _key(self, claim: Claim, *, is_repeat: bool = False, is_rehearsal: bool = False) -> RequestKey:
        return RequestKey(
            claim.key,
            key_hash=claim.key_hash,
            payload_hash=claim.payload_hash,
            describe_refusal=self._describe_refusal,
            peppers=self._peppers,
            is_repeat=is_repeat,
            is_rehearsal=is_rehearsal,
        )

    def _describe_refusal(self, error: CynosureError) -> bytes | None:
        answer = self._describe(error)
        return answer.pack() if _is_final(answer, error) else None

    # --- replay -----------------------------------------------------------------------------------

    async def _replay(self, claim: Claim, record: Record, execute: Execute) -> Outcome:
        if record.is_in_chain:
            return await self._replay_from_chain(claim, execute)
        key = self._key(claim, is_rehearsal=True)
        try:
            await execute(key)
        except Rehearsed:
            pass
        except (Forbidden, NotAuthenticated):
            raise
        except CynosureError as error:
            if is_hiding(error) or self._describe(error).status >= 500:
                raise
            # It would be refused for another reason by now. What counts is what was said first.
        sealed = await self._reservations.load_sealed(record)
        metrics.REPLAYED.inc()
        return Outcome(unpack_answer(key.open(sealed)), is_replayed=True)

    async def _replay_from_chain(self, claim: Claim, execute: Execute) -> Outcome:
        """Execute with the key, which is in the chain: so nothing is done, and the answer is made again.

        Where the chain itself is gone, with a catalog that was dropped and made anew, or was set back by an
        operator, the effect is gone as well, and it is done again.
        """
        while True:
            key = self._key(claim, is_repeat=True)
            try:
                outcome = await _outcome_of(key, execute)
                break
            except Overtaken:
                continue
        if isinstance(outcome, CynosureError):
            raise outcome
        if key.is_recalled:
            metrics.REPLAYED.inc()
        return Outcome(outcome, key.is_recalled)

    # --- afterwards -------------------------------------------------------------------------------

    def _noted(self, claim: Claim, running: _Running) -> None:
        running.is_noting = False
        self._end(claim, running)

    async def _release(self, held: Held) -> None:
        try:
            await self._reservations.release(held)
        except CynosureError as error:
            _log.event("idempotency.not_released", level=WARNING, error=error)

    async def _forget(self, held: Held) -> None:
        try:
            await self._reservations.forget(held)
        except CynosureError as error:
            _log.event("idempotency.not_forgotten", level=WARNING, error=error)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)


def is_hiding(error: Exception) -> bool:
    """Whether "not found" stands for "not allowed": then it may be another answer next time."""
    return isinstance(error, NotFound) and isinstance(error.__cause__, Forbidden | NotAuthenticated)


def _is_refused_right(outcome: Answer | CynosureError) -> bool:
    return isinstance(outcome, CynosureError) and (
        isinstance(outcome, Forbidden | NotAuthenticated) or is_hiding(outcome)
    )


def _is_final(answer: Answer, outcome: Answer | CynosureError) -> bool:
    if isinstance(outcome, CynosureError) and is_hiding(outcome):
        return False
    return answer.status < 300 or answer.status in STORED


async def _outcome_of(key: RequestKey, execute: Execute) -> Answer | CynosureError:
    try:
        return await execute(key)
    except Refused as refused:
        return unpack_answer(refused.answer)
    except CynosureError as error:
        return error


def _reused() -> KeyReused:
    metrics.CONFLICTS.inc()
    return KeyReused()


def _in_progress(claim: Claim) -> CynosureError:
    metrics.IN_PROGRESS.inc()
    return CommitInProgress() if claim.is_commit else RequestInProgress()
