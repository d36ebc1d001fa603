"""How the mirror is changed: several changes put together into one commit, as part of somebody's request.

Must not break: these commits carry no Idempotency-Key, and do not end a rehearsal: whether the caller may do
what it asked for is decided afterwards, by the operation itself.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.handover import require_unmoved
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.store import NewObject

R = TypeVar("R")


class Collected:
    """Changes of several kinds that are to become one commit."""

    __slots__ = ("changes", "feed", "objects")

    def __init__(self) -> None:
        self.changes: Changes = {}
        self.objects: list[NewObject] = []
        self.feed: list[Change] = []

    def add(self, more: "Collected | Prepared[R]") -> None:
        """Put further changes on top."""
        merge(self.changes, {index: dict(entries) for index, entries in more.changes.items()})
        self.objects += more.objects
        self.feed += more.feed

    def prepared(self, result: R) -> Prepared[R]:
        """All of them, as one change."""
        return Prepared(result, self.changes, self.objects, self.feed)


async def commit_mirror(
    catalog: OpenCatalog, caller: Caller, name: str, prepare: Callable[[View], Awaitable[Prepared[R]]]
) -> R:
    """Commit what a remote said, on the way to what this caller asked for.

    `BeingMoved` when what the remote says does not count any more.
    """

    async def unmoved(view: View) -> Prepared[R]:
        await require_unmoved(view, catalog.entity.name)
        return await prepare(view)

    return await commit_part(catalog.committer, structs.replace(caller, key=None), name, unmoved)
