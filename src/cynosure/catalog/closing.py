"""Closing a catalog, the first step of dropping it, and opening it again.

Dropping touches three references: the catalog's `main` and `grants`, and the realm's `catalogs`. Only one
row is swapped at a time, so the order is fixed:

1. *look* at the catalog's entry in `catalogs`;
2. *close* `main`: a commit that finds nothing there and puts `CLOSED`, which every later write asks for;
   then `grants`, with the same mark;
3. *unlist*: a commit to `catalogs` that removes the entry if it is still the one looked at;
4. the references are deleted by the repairer (`persistence.scopes`).

A crash after 2 leaves a closed catalog in the list: drop it again, or open it again. Opening again

1. *looks* at the closing marks in `main` and `grants`;
2. *touches* the catalog's entry in `catalogs`, so that a drop on its way fails in its third step;
3. removes the marks if they are still those looked at: a drop that began later has put another one.

So a catalog that accepts writes is never unlisted.

Must not break: both orders, and that every closing puts a mark of its own.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.errors import CatalogNotEmpty
from cynosure.catalog.names import ADOPTING, BEING_MOVED, CLOSED, GRANTS_CLOSED
from cynosure.catalog.opened import Shared
from cynosure.catalog.purging.tombstone import IDS, PURGES, TOMBSTONE
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Committer, Prepared, View
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import CatalogId
from cynosure.persistence.store import NewObject

_NAMED = 10
"""Tables in the way that are named."""
_POLICY = b"p"
"""What the keys of policies, however deep, begin with in `names`, and no others (`catalog.names`)."""


class ClosingMark(Stored, frozen=True):
    """Who closed a catalog, and when."""

    principal: str
    closed_us: int


CLOSING_MARK = struct_type("closing-mark", ClosingMark)


def main_of(shared: Shared, caller: Caller, catalog: CatalogId) -> Committer:
    """The committer of a catalog's `main`; needs nothing of its storage."""
    return shared.persistence.committer(catalog_reference(caller.realm, catalog, "main"))


def grants_of(shared: Shared, caller: Caller, catalog: CatalogId) -> Committer:
    """The committer of a catalog's `grants`."""
    return shared.persistence.committer(catalog_reference(caller.realm, catalog, "grants"))


class Marks(NamedTuple):
    """The closing marks of a catalog."""

    in_main: bytes | None
    in_grants: bytes | None


async def close(
    shared: Shared, caller: Caller, catalog: CatalogId, name: str, *, is_federated: bool = False
) -> None:
    """Let nothing be written to an empty catalog any more; `CatalogNotEmpty` when it is not.

    Tables that are to be purged count: with the catalog nobody would know any more which files are to go.
    What was seen of a remote does not: it is the remote's, where it could only be dropped for good.

    Part of dropping it: who calls has seen that the caller may.
    """
    persistence = shared.persistence

    async def close_main(view: View) -> Prepared[bytes]:
        await require_not_adopting(view, name)
        # Two entries: one may be the mark of an earlier closing. The scan is remembered by the view, so
        # whatever is created meanwhile makes it untrue.
        if is_federated:
            await require_not_moving(view, name)
            if await view.scan("names", prefix=_POLICY, limit=1):
                raise CatalogNotEmpty("The catalog holds policies", fix="Drop them first.", name=name)
        elif any(key != CLOSED for key, _ in await view.scan("names", limit=2)):
            raise CatalogNotEmpty("The catalog is not empty", fix="Drop its namespaces first.", name=name)
        if waiting := await view.scan(PURGES, start=IDS, limit=_NAMED):
            tombstones = await view.load_many(TOMBSTONE, [ObjRef.unpack(value).id for _, value in waiting])
            raise CatalogNotEmpty(
                "Tables of the catalog are being purged",
                fix="Wait for their last files, or restore them; see 'cynosure tasks list'.",
                name=name,
                tables=", ".join(".".join(each.path) for each in tombstones),
            )
        mark = ClosingMark(principal=caller.principal, closed_us=persistence.clock.now_us())
        new = NewObject(CLOSING_MARK, persistence.ids.next(), mark)
        value = ObjRef(new.id, CLOSING_MARK.name).pack()
        return Prepared(value, {"names": {CLOSED: value}}, [new])

    mark = await commit_part(main_of(shared, caller, catalog), caller, "close-catalog", close_main)

    async def close_grants(view: View) -> Prepared[None]:
        return Prepared(None, {"ids": {GRANTS_CLOSED: mark}})

    await commit_part(grants_of(shared, caller, catalog), caller, "close-catalog", close_grants)


async def require_not_moving(view: View, name: str) -> None:
    """Refuse to drop a federated catalog whose tables its remote is giving up: they are nowhere else."""
    if await view.find("moving", BEING_MOVED) is not None:
        raise CatalogNotEmpty(
            "The catalog is being moved here from its remote",
            fix="Run 'cynosure migrate' to its end, or give it up with --cancel.",
            name=name,
        )


async def require_not_adopting(view: View, name: str) -> None:
    """Refuse to drop a catalog that is being given tables: they are nowhere else."""
    if await view.scan(ADOPTING, limit=1):
        raise CatalogNotEmpty(
            "Tables of another catalog are on their way into this one",
            fix="Run 'cynosure migrate' of the other one to its end, or give it up with --cancel.",
            name=name,
        )


async def find_marks(shared: Shared, caller: Caller, catalog: CatalogId) -> Marks | None:
    """What `reopen` must be given; `None` when the catalog is open."""
    main = (await main_of(shared, caller, catalog).read()).state
    grants = (await grants_of(shared, caller, catalog).read()).state
    marks = Marks(await main.find("names", CLOSED), await grants.find("ids", GRANTS_CLOSED))
    return None if marks == (None, None) else marks


async def reopen(shared: Shared, caller: Caller, catalog: CatalogId, marks: Marks) -> None:
    """Remove these closing marks; `Conflict` when there are others."""
    # Order: `main` last, because it is there that a drop begins.
    for committer, index, key, mark in (
        (grants_of(shared, caller, catalog), "ids", GRANTS_CLOSED, marks.in_grants),
        (main_of(shared, caller, catalog), "names", CLOSED, marks.in_main),
    ):
        await commit_part(committer, caller, "reopen-catalog", _removing(index, key, mark))


def _removing(index: str, key: bytes, mark: bytes | None) -> Callable[[View], Awaitable[Prepared[None]]]:
    async def prepare(view: View) -> Prepared[None]:
        current = await view.find(index, key)
        if current is None:
            return Prepared(None)
        if current != mark:
            raise Conflict("The catalog is being dropped again", fix="Wait for the other drop to end.")
        return Prepared(None, {index: {key: None}})

    return prepare
