"""Lists of what a remote has: its pages passed on, each behind a token of ours.

Whoever may list something is given the remote's names, page by page, and nothing of them is kept. Who may see
only some of them is given those out of the mirror, where the grants are; the remote is not asked.

While the remote does not answer there is no list, also where tables that were seen are shown: the mirror has
what somebody asked for, and whoever is given a part of a list believes that the rest is gone.

A maintainer must not break: rights come before the remote, so that nobody learns a name, a number or an error
of it who may not; and a remote cannot keep us busy: it is asked for one page per page, and tokens that go
round in circles are found (`turning.py`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import InvalidName, NoSuchNamespace
from cynosure.catalog.listing import Listing, Paging, choose_size, encode_list, find_shown, list_encoded
from cynosure.catalog.names import (
    MAX_CHARS,
    MAX_LEVELS,
    Identifier,
    Namespace,
    check_name,
    children_prefix,
    namespace_key,
    namespace_text,
    table_key,
    tables_prefix,
    view_key,
    views_prefix,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import TooLarge
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.guard.metrics import LEFT_OUT
from cynosure.federation.handover import drop_aside, find_moving
from cynosure.federation.remote import NamesPage, RemoteCatalog
from cynosure.federation.remotes.opening import require_connection
from cynosure.federation.stages.names import can_have_namespace
from cynosure.federation.turning import Turning
from cynosure.persistence.commit import State
from cynosure.persistence.listing import MAX_PAGE

_MOST_BYTES: Final = 16 * 2**20
"""Of all names of a list that is to be given at once."""
_MOST_EMPTY: Final = 100
"""Pages without a name that can be one here, one after the other."""


class Remotes(Protocol):
    """Who has the clients of remotes: `federation.clients.Clients`."""

    def get(self, catalog: OpenCatalog) -> RemoteCatalog:
        """The client of a catalog's remote."""
        ...


class _Place(Struct, frozen=True, array_like=True):
    """Where a list goes on."""

    token: str | None
    """The remote's."""
    skip: int
    """Names of that page that were given already: a remote may send more than it was asked for."""
    turning: Turning


class _Kind(Struct, frozen=True):
    """What is listed, and how the remote is asked for it."""

    listing: Listing
    ask: Callable[[RemoteCatalog, str | None, int], Awaitable[NamesPage]]
    key: Callable[[str], bytes]


async def list_namespaces(
    remotes: Remotes, catalog: OpenCatalog, caller: Caller, parent: Namespace, paging: Paging
) -> bytes:
    """JSON of the namespaces right below another, or at the top; `NoSuchNamespace`."""

    def ask(remote: RemoteCatalog, token: str | None, size: int) -> Awaitable[NamesPage]:
        return remote.list_namespaces(parent, token=token, size=size)

    listing = Listing(ops.LIST_NAMESPACES, parent, children_prefix(parent))
    kind = _Kind(listing, ask, lambda name: namespace_key((*parent, name)))
    return await _list(remotes, catalog, caller, kind, paging)


async def list_tables(
    remotes: Remotes, catalog: OpenCatalog, caller: Caller, namespace: Namespace, paging: Paging
) -> bytes:
    """JSON of the names of a namespace's tables; `NoSuchNamespace`."""

    def ask(remote: RemoteCatalog, token: str | None, size: int) -> Awaitable[NamesPage]:
        return remote.list_tables(namespace, token=token, size=size)

    listing = Listing(ops.LIST_TABLES, namespace, tables_prefix(namespace))
    kind = _Kind(listing, ask, lambda name: table_key(Identifier(namespace, name)))
    return await _list(remotes, catalog, caller, kind, paging)


async def list_views(
    remotes: Remotes, catalog: OpenCatalog, caller: Caller, namespace: Namespace, paging: Paging
) -> bytes:
    """JSON of the names of a namespace's views; `NoSuchNamespace`. None where the remote has no views."""

    async def ask(remote: RemoteCatalog, token: str | None, size: int) -> NamesPage:
        if remote.abilities.has_views:
            return await remote.list_views(namespace, token=token, size=size)
        await remote.load_namespace(namespace)
        return NamesPage(())

    listing = Listing(ops.LIST_VIEWS, namespace, views_prefix(namespace))
    kind = _Kind(listing, ask, lambda name: view_key(Identifier(namespace, name)))
    return await _list(remotes, catalog, caller, kind, paging)


async def _list(remotes: Remotes, catalog: OpenCatalog, caller: Caller, kind: _Kind, paging: Paging) -> bytes:
    size = choose_size(catalog, paging)
    state = await catalog.read()
    is_partial = await find_shown(catalog, caller, kind.listing, state) is not None
    if is_partial or await find_moving(state) is not None:
        return await list_encoded(catalog, caller, kind.listing, paging)
    remote = remotes.get(catalog)
    if not can_have_namespace(remote.abilities, kind.listing.namespace):
        raise NoSuchNamespace(namespace_text(kind.listing.namespace))
    if paging.token is None and paging.size is None:
        return await _list_whole(remote, catalog, state, kind)
    scope, tokens = _scope_of(catalog, kind.listing), catalog.shared.persistence.page_tokens
    place = _Place(None, 0, Turning())
    if paging.token:
        place = msgspec.msgpack.decode(tokens.open(scope, paging.token), type=_Place)
    page = await kind.ask(remote, place.token, size)
    names = page.names[place.skip : place.skip + size]
    following = _follow(catalog, page, place, size)
    token = None if following is None else tokens.seal(scope, msgspec.msgpack.encode(following))
    return encode_list(kind.listing, await _keys_of(kind, state, names), token)


def _follow(catalog: OpenCatalog, page: NamesPage, place: _Place, size: int) -> _Place | None:
    if len(page.names) > place.skip + size:
        return _Place(place.token, place.skip + size, place.turning)
    if not page.next_token:
        return None
    return _Place(page.next_token, 0, _turn(catalog, place.turning, page.next_token))


async def _list_whole(remote: RemoteCatalog, catalog: OpenCatalog, state: State, kind: _Kind) -> bytes:
    keys: list[bytes] = []
    token: str | None = None
    turning, n_bytes, n_empty = Turning(), 0, 0
    while True:
        page = await kind.ask(remote, token, MAX_PAGE)
        found = await _keys_of(kind, state, page.names)
        keys += found
        n_bytes += sum(map(len, found))
        n_empty = 0 if any(map(is_fitting, page.names)) else n_empty + 1
        token = page.next_token
        if not token:
            return encode_list(kind.listing, keys, None)
        if n_empty >= _MOST_EMPTY:
            raise RemoteMisbehaved(catalog.entity.name, problem="its list does not end")
        if n_bytes > _MOST_BYTES:
            raise TooLarge(
                "The remote catalog has more names than one answer can hold",
                field="pageSize",
                fix="Ask for pages: pass pageToken, empty for the first one.",
            )
        turning = _turn(catalog, turning, token)


def _turn(catalog: OpenCatalog, turning: Turning, token: str) -> Turning:
    following = turning.follow(token)
    if following is None:
        raise RemoteMisbehaved(catalog.entity.name, problem="its page tokens go round in circles")
    return following


async def _keys_of(kind: _Kind, state: State, names: Sequence[str]) -> list[bytes]:
    """Keys of the names that can be names here; others are left out, as nobody could ask for them.

    So are those that a migration gave to what is another catalog's now.
    """
    names = await drop_aside(state, kind.listing.namespace, names)
    is_too_deep = kind.listing.is_of_namespaces and len(kind.listing.namespace) >= MAX_LEVELS
    fitting = [] if is_too_deep else [name for name in dict.fromkeys(names) if is_fitting(name)]
    if len(fitting) < len(names):
        LEFT_OUT.inc(len(names) - len(fitting))
    return [kind.key(name) for name in fitting]


def is_fitting(name: str) -> bool:
    """Whether a remote's name can be one here."""
    try:
        check_name(name, field="name")
        name.encode()
    except (InvalidName, UnicodeEncodeError):
        return False
    return True


def told_of(name: str) -> str:
    """A name that cannot be one here, as it is told: its beginning, and what is not ASCII spelled out."""
    return name[:MAX_CHARS].encode("ascii", "backslashreplace").decode()


def _scope_of(catalog: OpenCatalog, listing: Listing) -> str:
    """Tokens are of one list of one remote: of another one, they would mean something else there."""
    connection = require_connection(catalog)
    remote = (connection.type, connection.uri, connection.remote_name or "")
    return "\x00".join(("federation", *catalog.committer.key, *remote, listing.prefix.hex()))
