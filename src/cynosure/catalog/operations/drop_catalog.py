"""Drop an empty catalog, or open one again that was only half dropped.

What was dropped inside the catalog before cannot be restored afterwards. Order of the steps, and what a crash
between them leaves: `catalog.closing`.

Must not break: a drop that is asked for again under its Idempotency-Key looks for its own success before it
looks for the catalog, which is gone then, or is another one.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from cynosure.auth.caller import Caller
from cynosure.auth.committing import Check, end_rehearsal, find_recalled, refusing, without_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.auth.request_key import Refused
from cynosure.catalog.ceding import is_ceded
from cynosure.catalog.closing import close, find_marks, reopen
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.guards import Guards
from cynosure.catalog.listed import Listed, location_keys
from cynosure.catalog.operations.update_catalog import touch_catalog
from cynosure.common.errors import Conflict, NotFound
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key


async def drop_catalog(directory: Directory, caller: Caller, name: str) -> None:
    """Drop it. `NoSuchCatalog` when there is none, `CatalogNotEmpty` when it holds namespaces.

    A federated one is dropped with what was seen of its remote, which keeps all of it.
    """
    committer, check = directory.committer(caller.realm), checking_drop(directory, caller, name)
    if await find_recalled(committer, caller, check=check, recall=NOTHING) is not None:
        return
    async with refusing(committer, caller, ops.DROP_CATALOG.name):
        view = await directory.read(caller.realm)
        seen, _ = await directory.authorize_on(view, caller, ops.DROP_CATALOG, name)
        end_rehearsal(caller)
        is_federated = seen.entity.connection is not None
        await close(directory.shared, caller, seen.entity.id, name, is_federated=is_federated)
    # Order: unlisted only after nothing can be written to it any more.
    try:
        await directory.commit_authorizing(
            caller, ops.DROP_CATALOG.name, _unlist(directory, caller, seen), check=check, recall=NOTHING
        )
    except Refused:
        # Another attempt at this drop has been refused meanwhile, and the client knows: it may be used.
        with suppress(Conflict, NotFound):
            await _reopen(directory, without_key(caller), seen.entity)
        raise


async def reopen_catalog(directory: Directory, caller: Caller, name: str) -> None:
    """Let a catalog that a drop closed and did not unlist be written to again. For who may drop it."""
    view = await directory.read(caller.realm)
    listed, _ = await directory.authorize_on(view, caller, ops.DROP_CATALOG, name)
    await _reopen(directory, caller, listed.entity)


async def _reopen(directory: Directory, caller: Caller, entity: CatalogEntity) -> None:
    # Order: look at the marks, stop the drop that put them, and only then remove them.
    marks = await find_marks(directory.shared, caller, entity.id)
    if marks is None:
        return
    await touch_catalog(directory, caller, entity.name, entity.id)
    await reopen(directory.shared, caller, entity.id, marks)


def checking_drop(directory: Directory, caller: Caller, name: str) -> Check:
    """Whether the caller may drop it, asked of a state of the list."""

    async def check(view: View) -> Guards:
        return (await directory.authorize_on(view, caller, ops.DROP_CATALOG, name))[1]

    return check


def _unlist(
    directory: Directory, caller: Caller, seen: Listed
) -> Callable[[View], Awaitable[Prepared[None]]]:
    entity = seen.entity
    key = encode_key(entity.name)

    async def prepare(view: View) -> Prepared[None]:
        current, guards = await directory.authorize_on(view, caller, ops.DROP_CATALOG, entity.name)
        if current.ref != seen.ref:
            raise Conflict("The catalog was changed while it was being dropped", fix="Drop it again.")
        change = Change(
            kind="catalog-dropped",
            index="names",
            key=key,
            before=seen.ref.pack(),
            detail=raw_detail({"id": entity.id, "name": entity.name}),
        )
        changes: Mapping[str, Mapping[bytes, None]] = {
            "names": {key: None},
            "ids": {encode_key(entity.id): None},
            "locations": dict.fromkeys(location_keys(entity)),
            # Of what was given to it. What it gave stays the taker's: whoever comes there next is another.
            "ceded": {each: None for each in location_keys(entity) if await is_ceded(view, each)},
        }
        return Prepared(None, changes, feed=[change], guards=guards)

    return prepare
