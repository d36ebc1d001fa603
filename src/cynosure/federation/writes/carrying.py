"""A change of a federated catalog, from the caller to the remote and back.

    recalled? ── check ── read-only? ── look ── check ── judge ── ask the remote ── keep, with key and receipt

It is checked twice: on the mirror as it is, before the remote hears anything; and on what the remote has now,
because a table that was made anew has nobody's grants.

Must not break: behind the remote's success nothing is refused. What cannot be shown is told as done and not
shown; what cannot be kept because our store does not answer is unknown, never "nothing was applied". So is
what an earlier attempt has asked for, while the remote cannot be looked at.
"""

from dataclasses import replace
from typing import Final, TypeVar

from cynosure.auth.committing import commit_as, end_rehearsal, find_recalled, refusing
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.errors import LocationRefused
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.federation.errors import DoneUnseen, NotShown, RemoteMisbehaved
from cynosure.federation.handover import require_unmoved
from cynosure.federation.stages.switch import require_writable
from cynosure.federation.writes.asked import erasing_asked, find_asked
from cynosure.federation.writes.asking import ask, unknown_of
from cynosure.federation.writes.write import Before, Write
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.persistence.commit import Prepared, View

A = TypeVar("A")
R = TypeVar("R")
_UNSEEN: Final = (
    NotShown,
    RemoteMisbehaved,
    LocationRefused,
    BadInput,
    InvalidMetadata,
    NotFound,
    AlreadyExists,
    Conflict,
)
"""What is wrong with an answer, not with our store."""


async def carry_out(write: Write[A, R]) -> R:
    """Do it, at most once for each Idempotency-Key; what the caller is answered."""
    catalog, caller, committer = write.catalog, write.caller, write.catalog.committer
    recalled = await find_recalled(committer, caller, check=write.check, recall=write.recall)
    if recalled is not None:
        return recalled.result
    async with refusing(committer, caller, write.name):
        await write.check(await catalog.read())
        end_rehearsal(caller)
        require_writable(catalog, write.scene.federation.settings)
        try:
            await require_unmoved(await catalog.read(), catalog.entity.name)
            await write.look()
            judged, asked_s = await _judge(write), write.scene.federation.freshness.now_s()
            answer = await ask(write, judged)
        except Unavailable as error:
            await _require_unasked(write, error)
            raise
    result = await _keep(write, answer)
    write.note(asked_s)
    return result


async def _require_unasked(write: Write[A, R], error: Unavailable) -> None:
    """`OutcomeUnknown` when an earlier attempt has asked the remote: this one has not found out about it."""
    key = write.caller.key
    if key is not None and await find_asked(await write.catalog.read(), key) is not None:
        raise unknown_of(write) from error


async def _judge(write: Write[A, R]) -> Before | CynosureError:
    """What the remote has; or why it is refused, where an earlier attempt may be the reason."""
    state = await write.catalog.read()
    try:
        await write.check(state)
        return await write.judge(state)
    except (NotFound, AlreadyExists, Conflict, BadInput) as refusal:
        if write.caller.key is None or not write.caller.key.is_repeat:
            raise
        return refusal


async def _keep(write: Write[A, R], answer: A) -> R:
    catalog, key = write.catalog, write.caller.key

    async def prepare(view: View) -> Prepared[R]:
        await require_unmoved(view, catalog.entity.name)
        try:
            prepared = await write.keep(view, answer)
        except _UNSEEN as error:
            # What exactly is wrong is a detail of most of them, which their text leaves out.
            raise DoneUnseen(
                catalog.entity.name, problem=str(error.details.get("problem") or error)
            ) from error
        if key is None:
            return prepared
        changes: Changes = {name: dict(entries) for name, entries in prepared.changes.items()}
        merge(changes, await erasing_asked(view, key))
        return replace(prepared, changes=changes)

    try:
        committed = await commit_as(
            catalog.committer, write.caller, write.name, prepare, check=write.check, recall=write.recall
        )
    except Unavailable as error:
        raise OutcomeUnknown(
            "The remote catalog has done it, and it could not be noted here",
            fix="Load what was changed, and see.",
            catalog=catalog.entity.name,
        ) from error
    return committed.result
