"""Commits that are part of a larger operation.

Must not break: they do not carry the operation's idempotency key. A key is committed once per reference, and
it belongs to the commit that answers the caller.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import structs

from cynosure.auth.caller import Caller, commit_as
from cynosure.persistence.commit import Committer, Prepared, View

R = TypeVar("R")


async def commit_part(
    committer: Committer, caller: Caller, name: str, prepare: Callable[[View], Awaitable[Prepared[R]]]
) -> R:
    """Commit what is needed on the way to something that this caller was authorized for already.

    No further right is asked for, so what it does must follow from the stored state alone, never from names
    or values of the caller's that have not been authorized.
    """
    return (await commit_as(committer, structs.replace(caller, key_hash=""), name, prepare)).result
