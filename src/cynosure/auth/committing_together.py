"""Commit operations of several callers as one change.

Where many callers change one thing in a way that does not depend on the order, one change does what all of
them asked for: worked out once, written once. In the chain every one of them has a record of its own, with
its key and its receipt, in the same commit or not at all.

Must not break: it is a shortcut, never another rule. Whoever cannot come along (not allowed, already
committed, refused by the work itself) is left out with nothing of it done, and tries alone (`commit_as`),
where it hears why. Nothing is said here to anyone but those whose change is committed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.committing import Check
from cynosure.auth.receipts import Recall, pack_receipt
from cynosure.common.errors import Conflict, CynosureError, OutcomeUnknown, Unavailable
from cynosure.persistence.commit import (
    AlreadyCommitted,
    Change,
    Committer,
    Joined,
    Prepared,
    Request,
    View,
)
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.persistence.store import NewObject

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Member(Generic[R]):
    """One caller's operation among others."""

    caller: Caller
    operation: str
    check: Check
    """Authorizes the caller on a state."""
    recall: Recall[R]

    @property
    def can_join(self) -> bool:
        """Whether it may be committed with others; what is only rehearsed is not committed at all."""
        return self.caller.key is None or not self.caller.key.is_rehearsal


@dataclass(frozen=True, slots=True)
class Worked(Generic[R]):
    """What one change does for several members."""

    results: Mapping[Member[R], R]
    """Of those it does something for; the others are left out."""
    changes: Mapping[str, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    objects: Sequence[NewObject] = ()
    feed: Sequence[Change] = ()
    """Told as done by the first of them."""
    feed_of_others: Sequence[Change] = ()
    """Told as done by each of the others."""


Work = Callable[[View, Sequence[Member[R]]], Awaitable[Worked[R]]]
"""Works out the change for members that are allowed to make it, of whom there is at least one. May run
several times, as `Prepare`."""


class _FirstLeftOut(Exception):
    """The record of a commit is its first member's, so without that one it is begun again."""

    def __init__(self, others: Iterable[Any]) -> None:
        super().__init__()
        self.others = list(others)
        """Who comes along without it."""


async def commit_together(
    committer: Committer, members: Sequence[Member[R]], work: Work[R]
) -> dict[Member[R], R]:
    """The results of those whose change is committed; every other member has to try alone.

    `OutcomeUnknown` and what may pass (`Unavailable`) are for all of them.
    """
    left = _without_twins([member for member in members if member.can_join])
    while len(left) > 1:
        try:
            outcome = await committer.commit(_request(left, work))
        except _FirstLeftOut as error:
            left = error.others
            continue
        except (OutcomeUnknown, Unavailable):
            raise
        except CynosureError:
            return {}
        if isinstance(outcome, AlreadyCommitted):
            left = [each for each in left if _key_of(each) != outcome.key_hash]
            continue
        for member in outcome.result:
            if member.caller.key is not None:
                member.caller.key.is_committed = True
        return dict(outcome.result)
    return {}


def _request(members: Sequence[Member[R]], work: Work[R]) -> Request[Mapping[Member[R], R]]:
    first = members[0]

    async def prepare(view: View) -> Prepared[Mapping[Member[R], R]]:
        allowed, guards = await _find_allowed(view, members)
        if first not in allowed:
            raise _FirstLeftOut(allowed)
        worked = await work(view, allowed)
        if first not in worked.results:
            raise _FirstLeftOut(worked.results)

        async def renew() -> Mapping[RefKey, ObjId]:
            again, renewed = await _find_allowed(view, list(worked.results))
            if len(again) < len(worked.results):
                raise Conflict("One of them may not do it any more")  # So it is worked out for the others.
            return renewed

        return Prepared(
            worked.results,
            worked.changes,
            worked.objects,
            worked.feed,
            guards,
            renew,
            receipt=_receipt(first, worked.results[first]),
            joined=[
                _join(member, result, worked.feed_of_others)
                for member, result in worked.results.items()
                if member is not first
            ],
        )

    return Request(
        prepare,
        first.caller.principal,
        operation=first.operation,
        request_id=first.caller.request_id,
        key_hash=_key_of(first),
        joined_keys=tuple(key for member in members[1:] if (key := _key_of(member))),
        actor=first.caller.actor,
        roles=first.caller.roles,
        is_recorded=any(_key_of(member) for member in members),
    )


def _without_twins(members: Sequence[Member[R]]) -> list[Member[R]]:
    """The first of those that have the same key; whether a key is in the chain is asked once for each."""
    keys: set[str] = set()
    found = []
    for member in members:
        key = _key_of(member)
        if key not in keys:
            found.append(member)
        if key:
            keys.add(key)
    return found


async def _find_allowed(
    view: View, members: Sequence[Member[R]]
) -> tuple[list[Member[R]], dict[RefKey, ObjId]]:
    allowed: list[Member[R]] = []
    guards: dict[RefKey, ObjId] = {}
    for member in members:
        try:
            found = await member.check(view)
        except CynosureError:
            continue
        if any(guards.get(key, head) != head for key, head in found.items()):
            # It was decided on a newer state of somebody's rights than the others were: not in this one.
            continue
        guards |= found
        allowed.append(member)
    return allowed, guards


def _join(member: Member[R], result: R, feed: Sequence[Change]) -> Joined:
    caller = member.caller
    return Joined(
        caller.principal,
        member.operation,
        caller.request_id,
        _key_of(member),
        caller.actor,
        caller.roles,
        feed,
        _receipt(member, result),
    )


def _key_of(member: Member[R]) -> str:
    return "" if member.caller.key is None else member.caller.key.hash


def _receipt(member: Member[R], result: R) -> bytes:
    key = member.caller.key
    return b"" if key is None else pack_receipt(key, "answer", member.recall.keep(result, key))
