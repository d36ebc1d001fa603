"""Names of which a remote takes two spellings for one: `NS` for `ns`, where it does not mind upper case.

Both would be namespaces here, each with grants and policies of its own, and whoever is restricted in one
would go through the other; and a table that somebody misspelled would keep its right name from all others.
So where two are alike but for case, the remote's own list says which of them there are. What comes for the
first time is looked at by `spelling.py`; this is about what is already here.

Must not break: what is in doubt is not shown, and what hides rows or columns of a spelling that is given up
hides them of the one that stays.
"""

import unicodedata
from collections.abc import Iterable
from typing import Final, Protocol

from cynosure.auth.caller import Caller
from cynosure.catalog.names import (
    Identifier,
    Namespace,
    children_prefix,
    namespace_key,
    path_of,
    tables_prefix,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.mirror import (
    find_awaited_namespaces,
    find_awaited_tables,
    find_seen,
    forget_namespace,
    forget_table,
    respell_namespace,
    respell_table,
)
from cynosure.federation.remote import NamesPage, RemoteCatalog
from cynosure.persistence.commit import State
from cynosure.persistence.listing import MAX_PAGE, scan_all

_MOST_PAGES: Final = 1_000


class ListNames(Protocol):
    """One of the lists of a `RemoteCatalog`."""

    async def __call__(self, namespace: Namespace, /, *, token: str | None, size: int) -> NamesPage:
        """A page of it."""
        ...


async def is_spelled_so(
    catalog: OpenCatalog, caller: Caller, remote: RemoteCatalog, namespace: Namespace
) -> bool:
    """Whether the remote has a namespace of this very spelling, where that is in doubt.

    If so, other spellings that are here and that the remote does not have are given up for it.
    """
    state = await catalog.read()
    for depth in range(1, len(namespace) + 1):
        path = namespace[:depth]
        if await state.find("names", namespace_key(path)) is None:
            return await _settle(catalog, caller, remote, path, await _find_alike(state, path))
    return True


async def is_misspelled(
    catalog: OpenCatalog,
    list_names: ListNames,
    known: Identifier,
    other: Identifier,
) -> bool:
    """Whether a name that is known here is only another spelling of one that the remote lists."""
    if known.namespace != other.namespace or _fold(known.name) != _fold(other.name):
        return False
    listed = await find_listed(catalog, list_names, known.namespace, frozenset({known.name, other.name}), 1)
    return listed == {other.name}


async def _settle(
    catalog: OpenCatalog, caller: Caller, remote: RemoteCatalog, path: Namespace, alike: frozenset[str]
) -> bool:
    if not alike:
        return True
    parent, name = path[:-1], path[-1]
    wanted = alike | {name}
    listed = await find_listed(catalog, remote.list_namespaces, parent, wanted, len(wanted))
    if name not in listed:
        return False
    for other in sorted(alike - listed):
        await respell_namespace(catalog, caller, (*parent, other), path)
        await forget_namespace(catalog, caller, (*parent, other))
    return True


async def give_up_alike(catalog: OpenCatalog, caller: Caller, table: Identifier, uuid: str) -> None:
    """Give up what is here under other spellings of a table, of which the remote has this one only.

    Not what has its uuid: that is the table itself, which is moved.
    """
    state, namespace = await catalog.read(), table.namespace
    keys = [key for key, _ in await scan_all(state, "names", tables_prefix(namespace))]
    here = {path_of(key)[-1]: key for key in keys}
    awaited = {
        each.name for each in await find_awaited_tables(state, namespace) if each.namespace == namespace
    }
    for name in sorted(_choose_alike(table.name, here.keys() | awaited)):
        seen = await find_seen(state, here[name]) if name in here else None
        if seen is None or seen.uuid != uuid:
            other = Identifier(namespace, name)
            await respell_table(catalog, caller, other, table)
            await forget_table(catalog, caller, other)


async def _find_alike(state: State, path: Namespace) -> frozenset[str]:
    """Last names of what is, or is waited for, beside a namespace and like it, but for case."""
    parent = path[:-1]
    beside = {path_of(key)[-1] for key, _ in await scan_all(state, "names", children_prefix(parent))}
    awaited = {each[-1] for each in await find_awaited_namespaces(state, parent) if each[:-1] == parent}
    return _choose_alike(path[-1], beside | awaited)


def _choose_alike(wanted: str, names: Iterable[str]) -> frozenset[str]:
    folded = _fold(wanted)
    return frozenset(name for name in names if name != wanted and _fold(name) == folded)


async def find_listed(
    catalog: OpenCatalog, list_names: ListNames, parent: Namespace, wanted: frozenset[str], most: int
) -> frozenset[str]:
    """Which of these names the remote lists. Not looked for any further when so many are found."""
    found: set[str] = set()
    token: str | None = None
    for _ in range(_MOST_PAGES):
        page = await list_names(parent, token=token, size=MAX_PAGE)
        found |= wanted.intersection(page.names)
        token = page.next_token
        if not token or len(found) >= most:
            return frozenset(found)
    raise RemoteMisbehaved(catalog.entity.name, problem="its list does not end")


def _fold(name: str) -> str:
    return make_plain(name).casefold()


def make_plain(name: str) -> str:
    """Without accents, wide letters, and spaces around it: what some databases do not look at."""
    spread = unicodedata.normalize("NFKD", name)
    return "".join(each for each in spread if not unicodedata.combining(each)).strip()
