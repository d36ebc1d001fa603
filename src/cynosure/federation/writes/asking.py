"""The question to the remote: sent once, and what becomes of it when the answer does not come.

| the remote             | an answer is lost            | a repeated request, after a crash            |
|------------------------|------------------------------|----------------------------------------------|
| takes Idempotency-Keys | sent again with the same key | looked at; then sent again with the same key |
| does not               | looked at                    | looked at; sent again if that is harmless    |

What still cannot be known is `OutcomeUnknown`.

Must not break: without keys, nothing is sent for a request that an earlier attempt may have sent, unless the
remote was looked at since and doing it twice is impossible. And a remote that says it takes keys may not
honour them everywhere, or forget them early: a refusal of what was sent before may be the first attempt's own
doing, so it is believed only if the remote, looked at again, has provably not done it.
"""

import uuid
from typing import TypeVar

from cynosure.common.errors import CynosureError, KeyReused, OutcomeUnknown, Unavailable
from cynosure.federation.writes.asked import forget_asked, note_asked
from cynosure.federation.writes.write import Again, Before, Write

A = TypeVar("A")
R = TypeVar("R")


async def ask(write: Write[A, R], judged: Before | CynosureError) -> A:
    """What the remote answers. `judged` is an error where the request would be refused if it were new."""
    own, before = write.caller.key, judged if isinstance(judged, Before) else Before()
    forwarded = _choose_key(write) if write.remote.abilities.takes_keys else None
    earlier = None if own is None else await note_asked(write.catalog, write.caller, own, before)
    write.before = before if earlier is None else earlier
    if earlier is not None:
        found = await write.find(earlier)
        if found is None and forwarded is None:
            raise unknown_of(write)
        if found is None:
            return await _send_again(write, forwarded, earlier, unknown_of(write))
        if not isinstance(found, Again):
            return found
    try:
        if isinstance(judged, CynosureError):
            raise judged
        return await write.send(forwarded)
    except OutcomeUnknown as unknown:
        if forwarded is None:
            return await _look_for(write, before, unknown)
        return await _send_again(write, forwarded, before, unknown)
    except CynosureError as refusal:
        if earlier is not None and isinstance(judged, Before):
            # What was sent then may have arrived since it was looked for.
            return await _doubt(write, refusal, earlier, unknown_of(write))
        if own is not None:
            await forget_asked(write.catalog, write.caller, own)
        raise


def _choose_key(write: Write[A, R]) -> str:
    """A request without a key gets one for the way: so a lost answer can be asked for again."""
    own, rng = write.caller.key, write.catalog.shared.persistence.rng
    return str(uuid.UUID(int=rng.getrandbits(128), version=4)) if own is None else own.derive()


async def _send_again(
    write: Write[A, R], forwarded: str | None, before: Before, unknown: OutcomeUnknown
) -> A:
    try:
        return await write.send(forwarded)
    except OutcomeUnknown:
        raise unknown from None
    except CynosureError as refusal:
        return await _doubt(write, refusal, before, unknown)


async def _doubt(write: Write[A, R], refusal: CynosureError, before: Before, unknown: OutcomeUnknown) -> A:
    """What the remote did for an attempt before the one that it refused; the refusal if it did nothing."""
    if isinstance(refusal, Unavailable | KeyReused):
        # It says nothing about the other attempt.
        raise unknown from None
    try:
        found = await write.find(before)
    except CynosureError:
        raise unknown from None
    if isinstance(found, Again):
        raise refusal from None
    if found is None:
        raise unknown from None
    return found


async def _look_for(write: Write[A, R], before: Before, unknown: OutcomeUnknown) -> A:
    try:
        found = await write.find(before)
    except CynosureError:
        raise unknown from None
    if found is None or isinstance(found, Again):
        # It is not there yet. What is on its way may still arrive.
        raise unknown
    return found


def unknown_of(write: Write[A, R]) -> OutcomeUnknown:
    """For a change that the remote was asked for once, and may have made."""
    return OutcomeUnknown(
        "Whether the remote catalog did this cannot be known",
        fix="Load what was to be changed, and see. To ask for it once more, use another Idempotency-Key.",
        catalog=write.catalog.entity.name,
    )
