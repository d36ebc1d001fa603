"""What became of a swap whose answer was lost.

Reading the reference once proves nothing: the swap may still be under way and land afterwards. So the
*same* swap is repeated from the same expected head until that head is provably passed: either the
swap wins now, or it is lost for certain, and then the chain tells whether our commit is in it.

Must not break: no answer other than "won" or "lost for certain" ends this loop early, and giving up
raises `OutcomeUnknown`, never a refusal.
"""

from collections.abc import Sequence

from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.common.retry import Backoff
from cynosure.persistence.commit.view import State
from cynosure.persistence.spi import Backend, ObjId, Reference, Row
from cynosure.persistence.store import Store


async def settle_swap(
    backend: Backend,
    store: Store,
    backoff: Backoff,
    *,
    expected: Reference,
    updated: Reference,
    sequence: int,
    rows: Sequence[Row],
) -> bool:
    """Whether `updated.head` became part of the chain. Writes it there if it still can be."""
    while True:
        try:
            if await backend.swap_ref(expected, updated, rows):
                return True
            current = (await backend.fetch_refs([expected.key]))[0]
            if current is None:
                return False
            return await is_in_chain(store, current.head, updated.head, sequence)
        except CynosureError as error:
            # Also a refusal (no such user after a restart, say) or damage: it is about this attempt, and the
            # first one may have been applied.
            if not await backoff.wait():
                raise OutcomeUnknown(
                    "The database did not say whether a commit was applied",
                    fix="Read the state again before you repeat the request.",
                    reference=expected.key.name,
                    commit=updated.head,
                ) from error


async def is_in_chain(store: Store, head: ObjId, commit_id: ObjId, sequence: int) -> bool:
    """Whether `commit_id`, which has this sequence number, is `head` or one of its ancestors."""
    while True:
        if head == commit_id:
            return True
        record = (await State.load(store, head)).commit.record
        distance = record.sequence - sequence
        if distance <= 0:
            return False
        if distance <= len(record.parents):
            return record.parents[distance - 1] == commit_id
        head = record.parents[-1]
