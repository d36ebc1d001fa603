"""The simulator must notice an idempotency engine that is broken on purpose, as in `test_sim_mutants.py`.

Each mutant leaves out one thing that keeps the promise of a key: executed once, answered the same, by one at
a time, to who may ask, and in the end.
"""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from cynosure.auth.request_key import RequestKey
from cynosure.common.errors import CynosureError
from cynosure.idempotency import record as records
from cynosure.idempotency.engine import Execute, Idempotency, Outcome
from cynosure.idempotency.leases import Leases
from cynosure.idempotency.record import RECORD, Answer, Record, unpack_answer
from cynosure.idempotency.reservations import Claim, Held, Reservations
from cynosure.persistence.commit import AlreadyCommitted, Committed, Committer, Prepared, Request, View
from cynosure.persistence.store import Versioned
from cynosure.testing.sim.weather import Faults, Weather, draw_keyed_weather
from tests.robustness.mutants import Mutant, check_noticed

pytestmark = pytest.mark.usefixtures("no_logs")

_QUIET = {"crash_s": 0.0, "restart_s": 0.0, "pause_s": 0.0, "partition_s": 0.0, "outage_s": 0.0}


class DoesNotFenceRefusals(Idempotency):
    """Tells a refusal of a later attempt without making sure that no earlier one can still succeed."""

    def _describe_refusal(self, error: CynosureError) -> bytes | None:
        return None


class TakesEveryAttemptForTheFirst(Idempotency):
    """Does not say that there was an attempt before."""

    def _key(self, claim: Claim, *, is_repeat: bool = False, is_rehearsal: bool = False) -> RequestKey:
        return super()._key(claim, is_repeat=False, is_rehearsal=is_rehearsal)


class AnswersBeforeStoring(Idempotency):
    """Tells an outcome that is nowhere yet, and stores it afterwards."""

    async def _settle(
        self, claim: Claim, held: Held, key: RequestKey, outcome: Answer | CynosureError, running: Any
    ) -> Outcome | None:
        if key.is_committed:
            return await super()._settle(claim, held, key, outcome, running)
        self._start(self._store_later(claim, held, key, outcome, running))
        if isinstance(outcome, CynosureError):
            raise outcome
        return Outcome(outcome, False)

    async def _store_later(self, *arguments: Any) -> None:
        await asyncio.sleep(0.2)
        try:
            await super()._settle(*arguments)
        except CynosureError:
            return


class StoresServerErrors(Idempotency):
    """Takes any error for the outcome."""

    async def _settle(
        self, claim: Claim, held: Held, key: RequestKey, outcome: Answer | CynosureError, running: Any
    ) -> Outcome | None:
        if isinstance(outcome, CynosureError) and not key.is_committed:
            answer = self._describe(outcome)
            if not await self._reservations.finalize(held, answer.status, key.seal(answer.pack())):
                return None
            raise outcome
        return await super()._settle(claim, held, key, outcome, running)


class ReplaysToAnybody(Idempotency):
    """Does not ask again whether the caller may."""

    async def _replay(self, claim: Claim, record: Record, execute: Execute) -> Outcome:
        if record.is_in_chain:
            return await super()._replay(claim, record, execute)
        key = self._key(claim)
        sealed = await self._reservations.load_sealed(record)
        return Outcome(unpack_answer(key.open(sealed)), is_replayed=True)


class RemembersEnded(Idempotency):
    """Leaves what it has answered among what it is at."""

    def _noted(self, claim: Claim, running: Any) -> None:
        pass


class DoesNotLookAfterItsOwn(Idempotency):
    """Lets two requests with one key run side by side in one process."""

    async def run(self, claim: Claim, execute: Execute) -> Outcome:
        self._running.pop(claim.key_hash, None)
        return await super().run(claim, execute)

    def _end(self, claim: Claim, running: Any) -> None:
        self._running.setdefault(claim.key_hash, running)
        super()._end(claim, running)


class LetsLeasesRunOut(Idempotency):
    """Never renews."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._leases = _NeverKept(self._reservations, self._clock, lease_s=1e9)


class _NeverKept(Leases):
    async def _keep(self) -> None:
        return


class FinalizesWhateverThereIs(Reservations):
    """Overwrites the outcome of who has taken over."""

    async def finalize(self, held: Held, status: int, sealed: bytes) -> bool:
        found = await self._store.fetch(RECORD, held.current.id)
        if found is not None:
            value = records.finalized(
                found.value, now_us=self._clock.now_us(), status=status, is_in_chain=False, sealed=sealed
            )
            await self._store.swap(RECORD, found, value)
        return True


class _SeesOtherRecords(Reservations):
    async def reserve(self, claim: Claim) -> Held | Versioned[Record]:
        found = await super().reserve(claim)
        if isinstance(found, Held):
            return found
        return found._replace(value=self._see(found.value, claim))

    def _see(self, record: Record, claim: Claim) -> Record:
        raise AssertionError


class TakesOverWhileItIsHeld(_SeesOtherRecords):
    """Does not wait for a lease to run out."""

    def _see(self, record: Record, claim: Claim) -> Record:
        return msgspec.structs.replace(record, lease_until_us=0)


class TakesAnyPayload(_SeesOtherRecords):
    """Does not look at what a key stands for."""

    def _see(self, record: Record, claim: Claim) -> Record:
        return msgspec.structs.replace(record, payload_hash=claim.payload_hash)


class RenewsBehindItsOwnBack(Reservations):
    """Renews a lease so that the outcome of the same request is too late."""

    async def renew(self, held: Held) -> bool:
        value = records.renewed(held.record, now_us=self._clock.now_us(), lease_us=self._lease_us)
        return await self._store.swap(RECORD, held.current, value) is not None


class ForgetsSoon(Reservations):
    """Lets keys expire before their time."""

    def _fresh(self, claim: Claim) -> Record:
        record = super()._fresh(claim)
        return msgspec.structs.replace(record, expires_us=record.created_us + self._kept_us // 3)


class ForgetsJoinedKeys(Committer):
    """Looks only for the key of the first of those that share a change."""

    async def commit(self, request: Request[Any]) -> Committed[Any] | AlreadyCommitted:
        return await super().commit(replace(request, joined_keys=()))


class LeavesOutJoinedRecords(Committer):
    """Writes down the last of those that share a change as if it had not come."""

    async def commit(self, request: Request[Any]) -> Committed[Any] | AlreadyCommitted:
        async def prepare(view: View) -> Prepared[Any]:
            prepared = await request.prepare(view)
            return replace(prepared, joined=prepared.joined[:-1])

        return await super().commit(replace(request, prepare=prepare))


def busy(weather: Weather) -> Weather:
    """Nothing goes wrong, except that several clients want the same of several servers."""
    assert weather.keyed is not None
    faults = Faults(delay_s=0.01, refused=0.0, request_lost=0.0, answer_lost=0.0, late=0.0, late_s=0.0)
    chaos = replace(weather.chaos, **_QUIET, clock_step_s=0.0, disconnect=0.0, deafness=0.3)
    keyed = replace(weather.keyed, clients=5, principals=1, operations=12, revoke_s=0.0)
    keyed = replace(keyed, twins=0.5, repeated=0.3)
    weather = replace(weather, servers=3, clients=1, operations=4, names=3, think_s=0.3)
    return replace(
        weather, faults=faults, chaos=chaos, keyed=keyed, has_tasks=False, staleness_s=0.0, references=1
    )


def taking_long(weather: Weather) -> Weather:
    """Executions that take longer than a lease."""
    weather = busy(weather)
    assert weather.keyed is not None
    return replace(weather, keyed=replace(weather.keyed, slow=0.7))


def stopping(weather: Weather) -> Weather:
    """Servers that are stopped while they execute, for longer than a lease."""
    weather = taking_long(weather)
    assert weather.keyed is not None
    chaos = replace(weather.chaos, pause_s=0.2, long_pause=1.0, longest_pause_s=7.0)
    keyed = replace(weather.keyed, clients=8, twins=0.7, repeated=0.2, reused=0.0)
    return replace(weather, chaos=chaos, keyed=keyed, think_s=0.1, names=2)


def flipping(weather: Weather) -> Weather:
    """As `stopping`; and what is refused now would succeed a moment later."""
    weather = stopping(weather)
    assert weather.keyed is not None
    keyed = replace(weather.keyed, kinds=("register", "drop"), operations=20, slow=0.5)
    keyed = replace(keyed, twins=1.0, repeated=0.0)
    chaos = replace(weather.chaos, pause_s=0.02, deafness=0.0)
    return replace(weather, keyed=keyed, chaos=chaos, think_s=0.05, names=1)


def crashing(weather: Weather) -> Weather:
    """Servers that die right after an answer."""
    weather = busy(weather)
    return replace(weather, chaos=replace(weather.chaos, crash_s=0.4), think_s=0.1)


def losing_messages(weather: Weather) -> Weather:
    """A database that is often not to be reached."""
    weather = busy(weather)
    faults = replace(weather.faults, refused=0.1, request_lost=0.03, answer_lost=0.05, late=0.03, late_s=2.0)
    return replace(weather, faults=faults)


def revoking(weather: Weather) -> Weather:
    """Rights that come and go."""
    weather = busy(weather)
    assert weather.keyed is not None
    return replace(weather, keyed=replace(weather.keyed, revoke_s=0.5, repeated=0.5))


def joining(weather: Weather) -> Weather:
    """Nearly everything is committed together, and asked for again."""
    weather = busy(weather)
    assert weather.keyed is not None
    keyed = replace(weather.keyed, kinds=("join", "increment"), twins=0.0, repeated=0.5, reused=0.0)
    return replace(weather, keyed=keyed, think_s=0.05, servers=1)


def reusing(weather: Weather) -> Weather:
    """The wrong keys, all the time."""
    weather = busy(weather)
    assert weather.keyed is not None
    return replace(weather, keyed=replace(weather.keyed, reused=0.5, repeated=0.1))


ONCE = (
    "what was refused is not done",
    "a key has one answer",
    "a key is in the chain once",
)
GIVEN_UP = ("nobody is given up for dead without a fault",)

MUTANTS = (
    Mutant(DoesNotFenceRefusals, "idempotency", flipping, ONCE, first_seed=2),
    Mutant(TakesEveryAttemptForTheFirst, "idempotency", flipping, ONCE, first_seed=2),
    Mutant(AnswersBeforeStoring, "idempotency", crashing, ONCE),
    Mutant(StoresServerErrors, "idempotency", losing_messages, ("every key ends", *ONCE)),
    Mutant(ReplaysToAnybody, "idempotency", revoking, ("who may not is not told",)),
    Mutant(RemembersEnded, "idempotency", busy, ("every key ends", "nothing of an ended request is left")),
    Mutant(DoesNotLookAfterItsOwn, "idempotency", busy, ("a server executes a key one at a time",)),
    Mutant(LetsLeasesRunOut, "idempotency", taking_long, GIVEN_UP),
    Mutant(FinalizesWhateverThereIs, "reservations", stopping, ONCE),
    Mutant(TakesOverWhileItIsHeld, "reservations", busy, ("a lease that runs is respected",)),
    Mutant(TakesAnyPayload, "reservations", reusing, ("a key stands for one payload", *ONCE)),
    Mutant(RenewsBehindItsOwnBack, "reservations", taking_long, GIVEN_UP),
    Mutant(ForgetsJoinedKeys, "committer", joining, ONCE, first_seed=3),
    Mutant(
        LeavesOutJoinedRecords,
        "committer",
        joining,
        ("who is told success finds it in the chain", "results are those of the order in the chain"),
    ),
    Mutant(ForgetsSoon, "reservations", busy, ("a key is known for its lifetime",)),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.variant.__name__)
def test_the_simulator_notices_a_broken_engine(mutant: Mutant) -> None:
    check_noticed(mutant, draw_keyed_weather)
