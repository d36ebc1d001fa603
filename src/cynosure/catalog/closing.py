"""Closing a catalog, the first step of dropping it, and opening it again.

Dropping touches two references: the catalog's `main` and the realm's `catalogs`. Only one row is swapped at a
time, so the order is fixed:

1. *look* at the catalog's entry in `catalogs`;
2. *close* `main`: a commit that finds nothing there and puts `CLOSED`, which every later write asks for;
3. *unlist*: a commit to `catalogs` that removes the entry if it is still the one looked at;
4. the references are deleted by the repairer (`persistence.scopes`).

A crash after 2 leaves a closed catalog in the list: drop it again, or open it again. Opening again

1. *looks* at the closing mark in `main`;
2. *touches* the catalog's entry in `catalogs`, so that a drop on its way fails in its third step;
3. removes the mark if it is still the one looked at: a drop that began later has put another one.

So a catalog that accepts writes is never unlisted.

Must not break: both orders, and that every closing puts a mark of its own.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import CatalogNotEmpty
from cynosure.catalog.names import CLOSED
from cynosure.catalog.opened import Shared
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Committer, Prepared, Request, View
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import CatalogId
from cynosure.persistence.store import NewObject


class ClosingMark(Stored, frozen=True):
    """Who closed a catalog, and when."""

    principal: str
    closed_us: int


CLOSING_MARK = struct_type("closing-mark", ClosingMark)


def main_of(shared: Shared, caller: Caller, catalog: CatalogId) -> Committer:
    """The committer of a catalog's `main`; needs nothing of its storage."""
    return shared.persistence.committer(catalog_reference(caller.realm, catalog, "main"))


async def close(shared: Shared, caller: Caller, catalog: CatalogId, name: str) -> None:
    """Let nothing be written to an empty catalog any more; `CatalogNotEmpty` when it is not."""
    persistence = shared.persistence

    async def prepare(view: View) -> Prepared[None]:
        # Two entries: one may be the mark of an earlier closing. The scan is remembered by the view, so
        # whatever is created meanwhile makes it untrue.
        if any(key != CLOSED for key, _ in await view.scan("names", limit=2)):
            raise CatalogNotEmpty("The catalog is not empty", fix="Drop its namespaces first.", name=name)
        mark = ClosingMark(principal=caller.principal, closed_us=persistence.clock.now_us())
        new = NewObject(CLOSING_MARK, persistence.ids.next(), mark)
        return Prepared(None, {"names": {CLOSED: ObjRef(new.id, CLOSING_MARK.name).pack()}}, [new])

    request = Request(prepare, caller.principal, operation="close-catalog", request_id=caller.request_id)
    await main_of(shared, caller, catalog).commit(request)


async def find_mark(shared: Shared, caller: Caller, catalog: CatalogId) -> bytes | None:
    """What `reopen` must be given; `None` when the catalog is open."""
    state = (await main_of(shared, caller, catalog).read()).state
    return await state.find("names", CLOSED)


async def reopen(shared: Shared, caller: Caller, catalog: CatalogId, mark: bytes) -> None:
    """Remove this closing mark; `Conflict` when there is another one."""

    async def prepare(view: View) -> Prepared[None]:
        current = await view.find("names", CLOSED)
        if current is None:
            return Prepared(None)
        if current != mark:
            raise Conflict("The catalog is being dropped again", fix="Wait for the other drop to end.")
        return Prepared(None, {"names": {CLOSED: None}})

    request = Request(prepare, caller.principal, operation="reopen-catalog", request_id=caller.request_id)
    await main_of(shared, caller, catalog).commit(request)
