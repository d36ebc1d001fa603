"""Commit an operation of a caller, at most once for each Idempotency-Key.

The key goes into the chain with the change (`persistence/commit/recent_keys.py`), so it can never be
committed twice, whoever was paused, taken over or cut off. When it is there already, the caller is authorized
again and gets the result that the first attempt had (`receipts.py`).

Must not break: an attempt that follows another (`RequestKey.is_repeat`) leaves its refusal in the chain,
under the same key. Otherwise the first attempt, paused until then, could still commit what the client was
told is refused.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final, TypeVar

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.receipts import Done, Recall, pack_receipt, unpack_receipt
from cynosure.auth.request_key import Overtaken, Refused, Rehearsed, RequestKey
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    Forbidden,
    KeyReused,
    NotFound,
)
from cynosure.persistence.commit import AlreadyCommitted, Committed, Committer, Prepared, Request, State, View
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.spi import ObjId, RefKey

R = TypeVar("R")
_OF_THE_STATE: Final = (NotFound, AlreadyExists, Conflict, BadInput)
"""What may be in the way of an operation besides missing rights."""
Check = Callable[[View], Awaitable[Mapping[RefKey, ObjId]]]
"""Authorizes the caller on a state; see `Prepared.guards` for what it returns."""


async def commit_as(
    committer: Committer,
    caller: Caller,
    operation: str,
    prepare: Callable[[View], Awaitable[Prepared[R]]],
    *,
    check: Check,
    recall: Recall[R],
) -> Committed[R]:
    """Commit one operation of this caller. Errors of `prepare` reach the caller as they are.

    `prepare` authorizes; `check` is that alone, for when nothing is prepared because it has been done before.
    """
    key = caller.key
    if key is None:
        outcome = await committer.commit(_request(caller, operation, prepare))
        assert isinstance(outcome, Committed)  # noqa: S101 - it has no key
        return outcome
    if key.is_rehearsal:
        await check((await committer.read()).state)
        raise Rehearsed

    async def kept(view: View) -> Prepared[R]:
        prepared = await prepare(view)
        return replace(prepared, receipt=pack_receipt(key, "answer", recall.keep(prepared.result, key)))

    try:
        outcome = await committer.commit(_request(caller, operation, kept, key))
    except CynosureError as error:
        found = await _refuse_for_good(committer, caller, operation, error)
        if found is None:
            raise
        outcome = found
    if isinstance(outcome, AlreadyCommitted):
        return await _recalled(committer, key, outcome.commit_id, check, recall)
    key.is_committed = True
    return outcome


async def commit_part(
    committer: Committer, caller: Caller, name: str, prepare: Callable[[View], Awaitable[Prepared[R]]]
) -> R:
    """Commit what is needed on the way to something that this caller was authorized for already.

    No further right is asked for, so what it does must follow from the stored state alone, never from names
    or values of the caller's that have not been authorized. It does not carry the operation's key: a key is
    committed once per reference, and it belongs to the commit that answers the caller.
    """
    end_rehearsal(caller)
    outcome = await committer.commit(_request(caller, name, prepare))
    assert isinstance(outcome, Committed)  # noqa: S101 - it has no key
    return outcome.result


def without_key(caller: Caller) -> Caller:
    """The caller, for a commit of its own on the way to the one that has the key."""
    end_rehearsal(caller)
    return structs.replace(caller, key=None)


def end_rehearsal(caller: Caller) -> None:
    """To be called by an operation that is authorized and about to do something before its commit."""
    if caller.key is not None and caller.key.is_rehearsal:
        raise Rehearsed


async def find_recalled(
    committer: Committer, caller: Caller, *, check: Check, recall: Recall[R]
) -> Committed[R] | None:
    """What an earlier attempt at this request committed; `None` when none did.

    For operations that look at the state, or do something, before they commit: they ask this first, because
    to them the world after their own success looks as if it were in the way.
    """
    key = caller.key
    if key is None or key.is_rehearsal:
        return None
    # Also when nothing is known of an earlier attempt: its record may be lost, its commit is not.
    found = await committer.find_key(key.hash)
    return None if found is None else await _recalled(committer, key, found, check, recall)


@asynccontextmanager
async def refusing(committer: Committer, caller: Caller, operation: str) -> AsyncIterator[None]:
    """Around what such an operation does before its commit: refused there, it is refused for good."""
    try:
        yield
    except CynosureError as error:
        if await _refuse_for_good(committer, caller, operation, error) is not None:
            raise Overtaken from error
        raise


async def _refuse_for_good(
    committer: Committer, caller: Caller, operation: str, error: CynosureError
) -> AlreadyCommitted | None:
    """Put the refusal of a repeated request into the chain; what was committed there before, if anything."""
    key = caller.key
    if key is None or not key.is_repeat or key.is_rehearsal or key.is_committed:
        return None
    answer = key.describe_refusal(error)
    if answer is None:
        return None
    receipt = pack_receipt(key, "refusal", key.seal(answer))

    async def nothing(view: View) -> Prepared[None]:
        return Prepared(None, receipt=receipt)

    outcome = await committer.commit(_request(caller, operation, nothing, key))
    if isinstance(outcome, AlreadyCommitted):
        return outcome
    key.is_committed = True
    return None


async def _recalled(
    committer: Committer, key: RequestKey, commit_id: ObjId, check: Check, recall: Recall[R]
) -> Committed[R]:
    after = await State.load(committer.store, commit_id)
    record = next(each for each in after.commit.record.requests if each.key_hash == key.hash)
    receipt = unpack_receipt(record.receipt)
    if receipt.payload_hash.hex() != key.payload_hash:
        raise KeyReused()
    parents = after.commit.record.parents
    before = await State.load(committer.store, parents[0] if parents else NO_COMMIT)
    await _check_again(check, (await committer.read()).state, before, after)
    key.is_committed = key.is_recalled = True
    if receipt.kind == "refusal":
        raise Refused(key.open(receipt.data))
    result = await recall.recall(Done(record, receipt.data, after, before, key))
    return Committed(result, commit_id, after.commit.record.sequence)


async def _check_again(check: Check, current: State, before: State, after: State) -> None:
    """Refuse who may no longer do it, as rights and restrictions are now.

    What it was done to is looked for by the names of then: it may be gone, and another have its name.
    """
    try:
        await check(current)
    except (AccessDenied, *_OF_THE_STATE) as refusal:
        # Rights are asked for below, on what it was really done to. What restricts the caller in other ways,
        # such as a policy, may be younger than that state.
        if isinstance(refusal, AccessDenied) and not refusal.decision.missing:
            raise
    for state in (before, after):
        try:
            await check(state)
        except _OF_THE_STATE as error:
            if isinstance(error.__cause__, Forbidden):
                raise
            # This request, or others in the same commit, made it so or not so: look on the other side of it.
        else:
            return
    # What it was about is gone from both. The answer tells nothing that this principal was not told.


def _request(
    caller: Caller,
    operation: str,
    prepare: Callable[[View], Awaitable[Prepared[R]]],
    key: RequestKey | None = None,
) -> Request[R]:
    return Request(
        prepare,
        caller.principal,
        operation=operation,
        request_id=caller.request_id,
        key_hash="" if key is None else key.hash,
        actor=caller.actor,
        roles=caller.roles,
        is_recorded=key is not None,
    )
