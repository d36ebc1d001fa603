"""Give up restrictions that wait for tables which the remote does not have any more.

A table that is made anew every night leaves an entry every night, for the one that was before: it may be
there under another name (`mirror.waiting`). Nothing here can tell a table that was dropped from one that was
renamed, but the remote can: it is asked for all that it has.

Must not break: an entry goes only when the remote has told the uuid of *every* table it has, this one was not
among them, and a second look found the same uuids under the same names: else a table that is renamed
meanwhile, or changes places with another one, is missed. What cannot be read, or is too much, gives up
nothing. What waits for a name is never given up: the next table of it may come at any time. Only entries
whose policies were all dropped go without a question.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.names import Identifier, Namespace, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import Conflict, CynosureError, Unavailable
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.handover import require_unmoved
from cynosure.federation.lists import Remotes, is_fitting, told_of
from cynosure.federation.mirror import find_seen
from cynosure.federation.mirror.changing import commit_mirror
from cynosure.federation.mirror.seen import INDEX
from cynosure.federation.mirror.waiting import Left, find_policies, read_left, scan_left
from cynosure.federation.reconcile import require_federated
from cynosure.federation.remote import NamesPage, RemoteCatalog, Unchanged
from cynosure.federation.turning import Turning
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import after
from cynosure.persistence.listing import MAX_PAGE

MOST_TABLES: Final = 20_000
"""Of the remote, besides namespaces: all of them are loaded for one answer."""
_AT_ONCE: Final = 8
_BATCH: Final = 500


class Forgotten(Struct, frozen=True):
    """What came of it."""

    asked: int
    """Tables that the remote has."""
    forgotten: int
    kept: int
    """Entries that wait for a name, or for a table that the remote has."""


async def forget_waiting(remotes: Remotes, catalog: OpenCatalog, caller: Caller) -> Forgotten:
    """Give up all that waits for nothing. `Conflict` when the remote does not say enough to be sure.

    For who may reconcile the catalog, which is to manage access to all of it.
    """
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.RECONCILE_CATALOG, catalog.target())
    require_federated(catalog)
    await require_unmoved(state, catalog.entity.name)
    left = await _load_left(state)
    there: dict[Identifier, str] = {}
    if any(each.uuid for each in left):
        remote = remotes.get(catalog)
        there = await _load_uuids(remote, catalog, state)
        if await _load_uuids(remote, catalog, state) != there:
            raise _changed(catalog)
    uuids, going = {*there.values()}, list[Left]()
    for each in left:
        if (each.uuid and each.uuid not in uuids) or not await find_policies(state, each):
            going.append(each)
    forgotten = 0
    for at in range(0, len(going), _BATCH):
        forgotten += await _forget(catalog, caller, going[at : at + _BATCH])
    return Forgotten(len(there), forgotten, len(left) - forgotten)


async def _load_left(state: State) -> list[Left]:
    found: list[Left] = []
    start = b""
    while page := await scan_left(state, start, _BATCH):
        found += [read_left(key, value) for key, value in page]
        start = after(page[-1][0])
    return found


async def _forget(catalog: OpenCatalog, caller: Caller, batch: list[Left]) -> int:
    async def prepare(view: View) -> Prepared[int]:
        # What was left since the remote was asked has another value, or was not there.
        same = [each.key for each in batch if await view.find(INDEX, each.key) == each.value]
        return Prepared(len(same), {INDEX: dict.fromkeys(same)} if same else {})

    return await commit_mirror(catalog, caller, "mirror-forget-waiting", prepare)


async def _list_all(remote: RemoteCatalog, catalog: OpenCatalog) -> set[Identifier]:
    """The names of all tables of the remote, in namespaces of any depth."""
    found: set[Identifier] = set()
    parents: list[Namespace] = [()]
    try:
        for parent in parents:
            if not parent or remote.abilities.has_nested_namespaces:
                below = await _read_all(catalog, remote.list_namespaces, parent)
                parents += [(*parent, name) for name in below]
            if parent:
                names = await _read_all(catalog, remote.list_tables, parent)
                found |= {Identifier(parent, name) for name in names}
            if len(found) > MOST_TABLES or len(parents) > MOST_TABLES:
                raise Conflict(
                    "The remote has more tables than can be looked at",
                    fix="Drop policies that nobody needs any more: nothing waits for those.",
                    catalog=catalog.entity.name,
                    most=MOST_TABLES,
                )
    except NoSuchNamespace as error:
        raise _changed(catalog) from error
    return found


async def _read_all(
    catalog: OpenCatalog, ask: Callable[..., Awaitable[NamesPage]], namespace: Namespace
) -> set[str]:
    names: set[str] = set()
    token, turning = None, Turning()
    while True:
        page = await ask(namespace, token=token, size=MAX_PAGE)
        if unfit := [name for name in page.names if not is_fitting(name)]:
            # What it stands for cannot be asked for: some names lead elsewhere in a path.
            raise Conflict(
                "A name at the remote cannot be one here, and may be of what something waits for",
                fix="Rename it at the remote.",
                catalog=catalog.entity.name,
                name=told_of(unfit[0]),
            )
        names |= {*page.names}
        token = page.next_token
        if not token or len(names) > MOST_TABLES:
            return names
        following = turning.follow(token)
        if following is None:
            raise RemoteMisbehaved(catalog.entity.name, problem="its page tokens go round in circles")
        turning = following


async def _load_uuids(remote: RemoteCatalog, catalog: OpenCatalog, state: State) -> dict[Identifier, str]:
    """The uuids of all tables of the remote; `Conflict` when one of them cannot be read."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def load(name: Identifier) -> tuple[Identifier, str]:
        async with turns:
            return name, await _load_uuid(remote, catalog, state, name)

    tasks = [asyncio.ensure_future(load(name)) for name in await _list_all(remote, catalog)]
    try:
        return dict(await asyncio.gather(*tasks))
    finally:
        # After a failure nobody needs the rest, and the remote is not asked for it.
        for each in tasks:
            each.cancel()


async def _load_uuid(remote: RemoteCatalog, catalog: OpenCatalog, state: State, name: Identifier) -> str:
    seen = await find_seen(state, table_key(name))
    try:
        found = await remote.load_table(name, None if seen is None else seen.tag)
    except Unavailable:
        raise
    except CynosureError as error:
        # Also when it is listed, and is said not to be there: it may be hidden from us for now.
        raise Conflict(
            "A table of the remote cannot be read, and may be one that something waits for",
            fix="Run it again, or have it mended or dropped at the remote.",
            catalog=catalog.entity.name,
            name=str(name),
        ) from error
    if isinstance(found, Unchanged):
        return "" if seen is None else seen.uuid
    return found.uuid


def _changed(catalog: OpenCatalog) -> Conflict:
    return Conflict(
        "What the remote has changed meanwhile",
        fix="Run it again when nobody renames or creates tables there.",
        catalog=catalog.entity.name,
    )
