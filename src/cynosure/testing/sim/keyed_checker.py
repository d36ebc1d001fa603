"""What must be true of requests with an Idempotency-Key, whatever befell them.

A key has *epochs*: from when it is new until it has expired and is used again. Within one, all attempts are
one request. An answer that was given while a new epoch began may belong to either, and is not compared.

Must not break: what is no answer proves nothing. "In progress", "unknown" and "not allowed" leave everything
open.
"""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from cynosure.persistence.spi import RefKey
from cynosure.testing.sim.history import BrokenRule
from cynosure.testing.sim.keyed_history import KeyedAttempt, KeyedHistory
from cynosure.testing.sim.keyed_work import EFFECTLESS, meaning
from cynosure.testing.sim.model import Refused
from cynosure.testing.sim.replay import Chain, Landed
from cynosure.testing.sim.weather import CLOCK_SLACK_S, Weather


def check_keyed(keyed: KeyedHistory, chains: Iterable[Chain], weather: Weather) -> None:
    """Raise `BrokenRule` for the first rule that does not hold."""
    landings = {key: landed for chain in chains for key, landed in chain.keys.items()}
    by_key: dict[str, list[KeyedAttempt]] = {}
    for attempt in keyed.attempts:
        by_key.setdefault(attempt.key_hash, []).append(attempt)
        if attempt.outcome == "pending":
            raise BrokenRule("every request is answered", _about(attempt))
    for key_hash, attempts in by_key.items():
        landed = [each for _, each in landings.get(key_hash, ())]
        keyed.history.count("refusals in the chain", sum(each.is_refusal for each in landed))
        _Key(keyed, weather, key_hash, attempts, landed).check()


class _Key:
    """Everything about one key."""

    def __init__(
        self,
        keyed: KeyedHistory,
        weather: Weather,
        key_hash: str,
        attempts: list[KeyedAttempt],
        landed: list[Landed],
    ) -> None:
        self._keyed = keyed
        self._weather = weather
        self._epochs = keyed.epochs.get(key_hash, [])
        self._attempts = attempts
        self._landed = landed
        assert weather.keyed is not None
        self._lifetime_s = weather.keyed.settings.lifetime.total_seconds()
        self._kept_s = weather.keyed.settings.kept.total_seconds()

    def check(self) -> None:
        for first, second in pairwise(self._epochs):
            known_s = second.begins_s - first.created_s
            if known_s < self._lifetime_s - CLOCK_SLACK_S:
                text = f"{_about(self._attempts[0])}: forgotten after {known_s:.1f} s"
                raise BrokenRule("a key is known for its lifetime", text)
        for one, other in pairwise(self._landed):
            if other.at_s - one.at_s < self._kept_s - 2 * CLOCK_SLACK_S:
                text = f"{_about(self._attempts[0])}: {one.commit_id}, {other.commit_id}"
                raise BrokenRule("a key is in the chain once", text)
        for attempt in self._attempts:
            self._check_alone(attempt)
        told: dict[int, KeyedAttempt] = {}
        for attempt in self._attempts:
            epoch = self._epoch_of(attempt)
            if epoch is not None and attempt.outcome == "answered":
                self._check_in_epoch(attempt, epoch)
                self._compare(told.setdefault(epoch, attempt), attempt)

    def _check_alone(self, attempt: KeyedAttempt) -> None:
        others = [each for each in self._attempts if each.payload_hash != attempt.payload_hash]
        if attempt.outcome == "conflict" and not any(each.invoked < attempt.ended for each in others):
            raise BrokenRule("only another payload is a conflict", _about(attempt))
        if attempt.outcome != "answered" or attempt.answer is None:
            return
        is_checked = attempt.operation.kind != "malformed"  # Refused before rights are looked at.
        if is_checked and self._keyed.was_without_rights(attempt.principal, attempt.invoked, attempt.ended):
            raise BrokenRule("who may not is not told", _about(attempt))
        if attempt.answer.status < 300 and attempt.operation.kind not in EFFECTLESS:
            said = msgspec.msgpack.decode(attempt.answer.body)
            effects = [each for each in self._landed if not each.is_refusal and each.at < attempt.ended]
            if attempt.operation.kind == "join":  # The result alone says which commit it is of.
                there = [[each.result] for each in effects]
            else:
                there = [[each.result, each.commit_id, each.sequence] for each in effects]
            if said not in there:
                raise BrokenRule("who is told success finds it in the chain", f"{_about(attempt)}: {said}")

    def _check_in_epoch(self, attempt: KeyedAttempt, epoch: int) -> None:
        assert attempt.answer is not None
        begins_s, created_s = self._epochs[epoch]
        is_last = epoch + 1 == len(self._epochs)
        ends_s = created_s + self._kept_s if is_last else self._epochs[epoch + 1].begins_s
        effects = [each for each in self._landed if not each.is_refusal and begins_s < each.at_s < ends_s]
        if attempt.answer.status >= 400 and effects:
            raise BrokenRule("what was refused is not done", f"{_about(attempt)}: {effects[0].commit_id}")

    def _compare(self, first: KeyedAttempt, attempt: KeyedAttempt) -> None:
        if first.payload_hash != attempt.payload_hash:
            text = f"{_about(first)} and {_about(attempt)}"
            raise BrokenRule("a key stands for one payload", text)
        if first.answer != attempt.answer:
            text = f"{_about(first)}: {first.answer}; {_about(attempt)}: {attempt.answer}"
            raise BrokenRule("a key has one answer", text)

    def _epoch_of(self, attempt: KeyedAttempt) -> int | None:
        """`None` where it cannot be told, or where the chain still knew the key from an epoch before."""
        epoch = bisect_right(self._epochs, attempt.ended_s, key=lambda each: each.begins_s) - 1
        if epoch < 0 or (epoch > 0 and attempt.invoked_s <= self._epochs[epoch].begins_s):
            return None
        begins_s, created_s = self._epochs[epoch]
        if attempt.ended_s > created_s + self._lifetime_s:
            return None
        if any(begins_s - self._kept_s - CLOCK_SLACK_S < each.at_s < begins_s for each in self._landed):
            return None
        return epoch


def check_refusals(keyed: KeyedHistory, chains: dict[RefKey, Chain], weather: Weather) -> None:
    """What a server refused by itself was to be refused at some instant between question and answer."""
    for attempt in keyed.attempts:
        if attempt.outcome != "answered" or not attempt.error or attempt.error == "BadInput":
            continue
        chain = chains[attempt.reference]
        first = attempt.invoked
        if weather.staleness_s:
            first = chain.event_before(attempt.invoked_s - weather.staleness_s)
        for state in chain.states_between(first, attempt.ended):
            try:
                state.apply(meaning(attempt.operation))
            except Refused as refused:
                if str(refused) == attempt.error:
                    break
        else:
            raise BrokenRule(
                "a refusal is true of a state in its span", f"{_about(attempt)}: {attempt.error}"
            )


def _about(attempt: KeyedAttempt) -> str:
    return f"{attempt.request_id} {attempt.operation} {attempt.key_hash[:8]} on {attempt.server}"
