"""Disaster reset: the pointer itself moves back to a recent head.

Only for a database that lost rows (an asynchronous replica after a failover). Everything committed
since that head is lost from the chain, so an operator decides, by hand, and only among the heads the
reference remembers. Any other wish to go back is a restore.

Must not break: the generation rises, so nothing prepared on the lost commits can be committed.
"""

from cynosure.common.errors import BadInput, Conflict, Damaged
from cynosure.persistence.history.check import check_commit
from cynosure.persistence.spi import Backend, ObjId, Reference
from cynosure.persistence.store import Store


async def reset_to_recent(backend: Backend, store: Store, ref: Reference, head: ObjId) -> Reference:
    """Move `ref` to `head`, one of its recent heads that is complete."""
    if head not in ref.recent:
        raise BadInput(
            "Not a recent head of this reference",
            field="head",
            fix="Take one from 'cynosure store status --heads'.",
            head=head,
        )
    problems = await check_commit(store, head, most=1)
    if problems:
        raise Damaged(
            "That head is not complete either",
            fix="Try an older one from 'cynosure store status --heads'.",
            head=head,
            first_problem=problems[0],
        )
    older = ref.recent[ref.recent.index(head) + 1 :]
    updated = ref._replace(head=head, generation=ref.generation + 1, recent=older)
    if not await backend.swap_ref(ref, updated):
        raise Conflict("The reference was moved meanwhile", fix="Look at it again before you reset it.")
    return updated
