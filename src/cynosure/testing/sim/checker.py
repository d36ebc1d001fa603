"""What must be true of every run, whatever befell it.

Judged after the fact on recorded events, whose numbers are real time: an answer that was given before a
question was asked comes before it for everybody.

Must not break: a rule here says what users rely on, not what the code happens to do. `tests/robustness`
shows for each rule a broken variant of production code that it catches.
"""

from itertools import pairwise

from cynosure.persistence.backends.memory import MemoryStore
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.spi import RefKey
from cynosure.testing.sim.final_state import check_final_state, check_rows
from cynosure.testing.sim.history import Attempt, BrokenRule, History
from cynosure.testing.sim.keyed_checker import check_keyed, check_refusals
from cynosure.testing.sim.keyed_history import KeyedHistory
from cynosure.testing.sim.model import Refused
from cynosure.testing.sim.operations import ACCOUNTS, OPENING_BALANCE
from cynosure.testing.sim.replay import Chain, replay
from cynosure.testing.sim.server import REFERENCES, SimServer
from cynosure.testing.sim.weather import CLOCK_SLACK_S, Weather

_BALANCE = ACCOUNTS * OPENING_BALANCE


async def check_run(
    history: History,
    store: MemoryStore,
    auditor: SimServer,
    weather: Weather,
    *,
    last_collection_us: int,
    keyed: KeyedHistory | None = None,
) -> None:
    """Raise `BrokenRule` for the first rule that does not hold."""
    chains = {key: replay(history.moves[key]) for key in REFERENCES}
    if keyed is not None:
        check_keyed(keyed, chains.values(), weather)
        check_refusals(keyed, chains, weather)
    judge = _Judge(history, chains, weather)
    for attempt in history.attempts.values():
        judge.check_attempt(attempt)
    judge.check_keys()
    judge.check_reads()
    judge.check_states()
    for key, chain in chains.items():
        await check_final_state(store, key, chain, auditor)
    check_rows(store, since_us=last_collection_us)


class _Judge:
    def __init__(self, history: History, chains: dict[RefKey, Chain], weather: Weather) -> None:
        self._history = history
        self._chains = chains
        self._weather = weather

    # --- requests -------------------------------------------------------------------------------

    def check_attempt(self, attempt: Attempt) -> None:
        chain = self._chains[attempt.reference]
        landed = chain.requests.get(attempt.request_id)
        about = f"{attempt.request_id} {attempt.operation} on {attempt.server}"
        if landed is not None:
            if landed.at < attempt.invoked:
                raise BrokenRule("nothing is committed before it is asked for", about)
            late_s = self._history.sent[landed.commit_id] - attempt.started_s - self._weather.deadline_s
            if late_s > 1e-6:
                raise BrokenRule("no attempt begins after the deadline", f"{about}: {late_s:.3f} s late")
            self._check_guard(attempt, landed.number, landed.at, about)
        match attempt.outcome:
            case "committed":
                self._check_committed(attempt, chain, about)
            case "already":
                known = [each for _, each in chain.keys.get(attempt.key_hash, ()) if each.at < attempt.ended]
                if attempt.commit_id not in [each.commit_id for each in known]:
                    raise BrokenRule("a known key names its commit", f"{about}: {attempt.commit_id}")
            case "refused":
                if landed is not None:
                    raise BrokenRule("what was refused is not committed", f"{about}: {attempt.error}")
                self._check_refused(attempt, chain, about)
            case "unavailable":
                if landed is not None:
                    text = f"{about}: {attempt.error}, yet in {landed.commit_id}"
                    raise BrokenRule("unavailable means nothing was applied", text)
            case "damaged":
                self._check_damaged(attempt, about)
            case "unknown":
                pass
            case other:
                raise BrokenRule("every request is answered", f"{about}: {other}")

    def _check_committed(self, attempt: Attempt, chain: Chain, about: str) -> None:
        landed = chain.requests.get(attempt.request_id)
        result = _plain(attempt.result)
        if landed is None:
            if attempt.operation.kind == "restore":
                is_justified = result == 0
            else:
                is_justified = self._is_justified(attempt, chain, None, result)
            if not is_justified:
                raise BrokenRule("an acknowledged commit is in the chain", f"{about}: {attempt.commit_id}")
            if attempt.commit_id not in chain.by_commit:
                raise BrokenRule("an answer names a commit of the chain", f"{about}: {attempt.commit_id}")
            return
        told = (attempt.commit_id, attempt.sequence, result)
        if told != (landed.commit_id, landed.sequence, landed.result):
            raise BrokenRule("an answer names its own commit and result", f"{about}: {told}, but {landed}")
        if landed.at > (attempt.ended):
            raise BrokenRule("a commit is in the chain when it is acknowledged", about)

    def _check_refused(self, attempt: Attempt, chain: Chain, about: str) -> None:
        if attempt.operation.kind == "restore":
            target = attempt.operation.args[0]
            promised_s = 0.9 * self._weather.gc.history_retention.total_seconds() - 2 * CLOCK_SLACK_S
            replaced_s = chain.replaced_s.get(target, float("inf"))
            if attempt.ended_s - attempt.started_s > promised_s:
                return  # Its server was stopped for that long, and knew no better.
            if attempt.error == "NotFound" and self._weather.staleness_s:
                return  # Too new for a server that may serve an older head.
            if attempt.ended_s - replaced_s < promised_s:
                text = f"{about}: {attempt.error}, replaced {attempt.ended_s - replaced_s:.1f} s ago"
                raise BrokenRule("retained history can be restored", text)
        elif not self._is_justified(attempt, chain, attempt.error, None):
            raise BrokenRule("a refusal is true of a state in its span", f"{about}: {attempt.error}")

    def _is_justified(self, attempt: Attempt, chain: Chain, refusal: str | None, result: object) -> bool:
        """Whether an answer that changed nothing fits a state between question and answer."""
        first = attempt.invoked
        if self._weather.staleness_s:
            first = chain.event_before(attempt.invoked_s - self._weather.staleness_s)
        for state in chain.states_between(first, attempt.ended):
            try:
                changed, answer = state.apply(attempt.operation, result)
            except Refused as refused:
                if str(refused) == refusal:
                    return True
                continue
            if refusal is None and answer == result and changed.things == state.things:
                return True
        return False

    def _check_guard(self, attempt: Attempt, number: int, landed_at: int, about: str) -> None:
        if number in attempt.guards:
            guard, head = attempt.guards[number]
            prepared_at = attempt.preparations[number]
            if self._weather.staleness_s:
                return  # A guard is as fresh as any other read.
            if not self._chains[guard].was_current(head, prepared_at, landed_at):
                raise BrokenRule("a guard holds after the preparation", f"{about}: {guard.name} at {head}")

    def _check_damaged(self, attempt: Attempt, about: str) -> None:
        """Only a request that took as long as history is kept may find its state collected."""
        span_s = attempt.ended_s - attempt.invoked_s
        is_old = span_s > self._weather.gc.history_retention.total_seconds() - 2 * CLOCK_SLACK_S
        if not is_old and not self._weather.has_wild_clock:
            raise BrokenRule("nothing in use is collected", f"{about}: {attempt.error}")

    def check_keys(self) -> None:
        """A key is committed once in its lifetime, and every answer for it names that commit."""
        for chain in self._chains.values():
            for landings in chain.keys.values():
                for (_, first), (request_id, again) in pairwise(landings):
                    if request_id not in self._history.attempts:
                        continue  # It came through `cynosure.idempotency`: judged in `keyed_checker.py`.
                    # A request that a stopped server took up when the key was forgotten is a new one.
                    since_s = self._history.attempts[request_id].started_s - first.at_s
                    if since_s < self._weather.key_lifetime_s - 2 * CLOCK_SLACK_S:
                        raise BrokenRule("a key is committed once", f"{request_id} in {again.commit_id}")

    # --- reads and states -----------------------------------------------------------------------

    def check_reads(self) -> None:
        """Every head a client was given was current between question and answer."""
        for read in self._history.reads:
            chain = self._chains[read.reference]
            first = read.invoked
            if self._weather.staleness_s:
                first = chain.event_before(read.invoked_s - self._weather.staleness_s)
            if not chain.was_current(read.head, first, read.ended):
                text = f"{read.server} gave {read.head} for {read.reference.name} at event {read.ended}"
                raise BrokenRule("reads are linearizable", text)
        for listing in self._history.listings:
            chain = self._chains[listing.reference]
            names = tuple(sorted(chain.by_commit[listing.commit_id].things))
            if listing.names != names:
                text = f"{listing.commit_id}: {listing.names}, not {names}"
                raise BrokenRule("pages show one state", text)
            if listing.balance != _BALANCE:
                raise BrokenRule("transfers keep the sum", f"{listing.commit_id}: {listing.balance}")

    def check_states(self) -> None:
        """Invariants of the model, which by now is known to be what the chain says."""
        for chain in self._chains.values():
            for commit_id, state in chain.by_commit.items():
                if commit_id != NO_COMMIT and state.balance != _BALANCE:
                    raise BrokenRule("transfers keep the sum", f"{commit_id}: {state.balance}")
                if overlapping := state.overlapping_locations():
                    raise BrokenRule("no two entities share a location", f"{commit_id}: {overlapping[0]}")


def _plain(result: object) -> object:
    return list(result) if isinstance(result, tuple) else result
