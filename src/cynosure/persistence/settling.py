"""Conditional writes whose outcome is known in the end, where it can be.

A database that does not answer leaves a write applied, not applied, or applied later. The way out is to
repeat the same write: lost when repeated, the version it expected is passed, so no earlier attempt can be
applied any more; and the row's token, which nobody else can have written, says whether one was.

Must not break: a repeated write that is lost on a row with another token stays unknown, because somebody may
have changed the row after us. A deletion leaves no token behind, so once unknown it stays so.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.persistence.spi import Backend, ConditionalWrite, DeleteIf, Insert, Swap

_ATTEMPTS: Final = 8
_FIRST_PAUSE_S: Final = 0.05


async def settle_each(
    backend: Backend,
    clock: Clock,
    rng: Random,
    writes: Sequence[ConditionalWrite],
    *,
    is_relaxed: bool = False,
) -> list[bool | None]:
    """`Backend.write_each` until every outcome is known; `None` where it cannot be.

    Raises what `write_each` raises when nothing was applied at all.
    """
    outcomes: list[bool | None] = [None] * len(writes)
    left = list(range(len(writes)))
    was_unknown = False
    for attempt in range(_ATTEMPTS):
        sent = [writes[at] for at in left]
        try:
            won: Sequence[bool | None] = await _write(backend, sent, is_relaxed=is_relaxed)
            if was_unknown:
                won = await _recognize(backend, sent, won)
        except OutcomeUnknown:
            was_unknown = True
            left = [at for at in left if not isinstance(writes[at], DeleteIf)]
        except CynosureError:
            # "Nothing was applied" holds for this attempt only; an earlier one may have been.
            if not was_unknown:
                raise
        else:
            for at, outcome in zip(left, won, strict=True):
                outcomes[at] = outcome
            return outcomes
        if not left:
            return outcomes
        await clock.sleep(_FIRST_PAUSE_S * 2**attempt * rng.random())
    return outcomes


async def settle(backend: Backend, clock: Clock, rng: Random, write: ConditionalWrite) -> bool:
    """As `settle_each`, for one. Raises `OutcomeUnknown` when the outcome cannot be known."""
    (outcome,) = await settle_each(backend, clock, rng, [write])
    if outcome is None:
        raise unsettled(write)
    return outcome


def unsettled(write: ConditionalWrite) -> OutcomeUnknown:
    """The error for a write whose outcome could not be found out."""
    return OutcomeUnknown(
        "The database did not say whether an update was applied",
        fix="Try again when the database answers.",
        type=write.key.type,
        id=write.key.id,
    )


async def _write(backend: Backend, writes: Sequence[ConditionalWrite], *, is_relaxed: bool) -> list[bool]:
    if len(writes) != 1 or is_relaxed:
        return await backend.write_each(writes, is_relaxed=is_relaxed)
    (write,) = writes
    if isinstance(write, Insert):
        return [await backend.insert(write.row)]
    if isinstance(write, Swap):
        return [await backend.swap(write.row, write.expected_token)]
    return [await backend.delete_if(write.key, write.expected_token)]


async def _recognize(
    backend: Backend, writes: Sequence[ConditionalWrite], won: Sequence[bool | None]
) -> list[bool | None]:
    """What came of repeated inserts and swaps: those that are lost were won before, or it is unknown."""
    lost = [write.key for write, is_won in zip(writes, won, strict=True) if not is_won]
    tokens: dict[object, str] = {}
    batch = backend.limits.fetch_batch
    for at in range(0, len(lost), batch):
        rows = await backend.fetch(lost[at : at + batch])
        tokens.update((row.key, row.token) for row in rows if row is not None)
    return [
        True if is_won or _has_token(write, tokens.get(write.key)) else None
        for write, is_won in zip(writes, won, strict=True)
    ]


def _has_token(write: ConditionalWrite, token: str | None) -> bool:
    return not isinstance(write, DeleteIf) and write.row.token == token
