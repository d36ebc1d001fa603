"""Names in a namespace: listed whole or in pages, and encoded as clients read them.

A list is asked for far more often than it changes, so whole lists are kept in their encoded form
(`recent_lists.py`).

Must not break: what is kept holds no page token (a token expires, and would come out of memory too old), and
is the whole list, never what one caller sees of it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.filtering import Sight
from cynosure.catalog.names import Namespace, last_name
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.recent_lists import ListKey, WholeList
from cynosure.catalog.resolve import require_namespace
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import State
from cynosure.persistence.index import after
from cynosure.persistence.listing import MAX_PAGE, Paging, list_page

__all__ = ["Listing", "Paging", "choose_size", "encode_list", "find_shown", "list_chosen", "list_encoded"]

_CHUNK: Final = 10_000
_CHOSEN_AT_ONCE: Final = 1_000
_WRITTEN_OTHERWISE: Final = re.compile(rb'[\x00-\x1f"\\]')
"""Bytes of index keys or names that do not stand for themselves in JSON."""


Choose = Callable[[State, Sequence[bytes]], Awaitable[list[bytes]]]
"""Which of some entries are listed, by their keys, on one state."""


class Listing(Struct, frozen=True):
    """What is listed: entries of the index `names` in one namespace."""

    operation: Operation
    namespace: Namespace
    """It must exist. Empty: the catalog's root, which always does."""
    prefix: bytes
    """Of the keys."""

    @property
    def is_of_namespaces(self) -> bool:
        """Written as arrays of their levels; all else as `{"namespace": […], "name": …}`."""
        return self.operation is ops.LIST_NAMESPACES


async def list_encoded(catalog: OpenCatalog, caller: Caller, listing: Listing, paging: Paging) -> bytes:
    """The answer as JSON; `NoSuchNamespace` when there is nothing to list in."""
    if paging.token:
        return await _list_page(catalog, caller, listing, paging)
    is_paged = paging.token is not None or paging.size is not None
    state = await catalog.read()
    shown = await find_shown(catalog, caller, listing, state)
    if shown is not None:
        if not is_paged:
            return encode_list(listing, shown, None)
        return await _list_page(catalog, caller, listing, paging)
    recent = catalog.shared.lists
    place = ListKey(catalog.realm, catalog.entity.id, listing.prefix)
    known = recent.get(place, state.commit_id)
    if known is None and not is_paged:
        keys = await _scan_all(state, listing)
        known = WholeList(state.commit_id, len(keys), encode_list(listing, keys, None))
        recent.remember(place, known)
    # A first page that holds everything is the whole list.
    if known is not None and (not is_paged or known.names <= choose_size(catalog, paging)):
        return known.body
    return await _list_page(catalog, caller, listing, paging)


async def find_shown(
    catalog: OpenCatalog, caller: Caller, listing: Listing, state: State
) -> list[bytes] | None:
    """Keys of what the caller sees of a list; `None`: all of it. Refused when that is not for the caller."""
    target = catalog.namespace(listing.namespace)
    try:
        await catalog.authorize(state, caller, listing.operation, target)
    except (AccessDenied, NoSuchNamespace) as refused:
        # With hidden existence the refusal is behind what is said instead.
        denied = refused if isinstance(refused, AccessDenied) else refused.__cause__
        shared = catalog.shared
        if denied is None or not shared.access.filter_lists:
            raise
        sight = Sight(shared.authorizer, caller, catalog.entity.id, state)
        if not await sight.leads_somewhere(listing.namespace):
            raise
        await _require_parent(state, listing)
        if listing.is_of_namespaces:
            return await sight.find_children(listing.namespace)
        return await sight.find_names(listing.prefix, listing.operation.needs[0][0])
    return None


async def _list_page(catalog: OpenCatalog, caller: Caller, listing: Listing, paging: Paging) -> bytes:
    is_whole = False

    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        # On the state of the page: its namespace may have gone since the first one.
        nonlocal is_whole
        shown = await find_shown(catalog, caller, listing, state)
        if shown is not None:
            return [(key, b"") for key in shown if key >= start][:limit]
        is_whole = True
        return await state.scan("names", prefix=listing.prefix, start=start, limit=limit)

    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="names",
        prefix=listing.prefix,
        size=choose_size(catalog, paging),
        token=paging.token or None,
        scan=scan,
    )
    if not page.entries:
        await _require_parent(page.state, listing)
    body = encode_list(listing, [key for key, _ in page.entries], page.next_token)
    if is_whole and not paging.token and page.next_token is None:
        place = ListKey(catalog.realm, catalog.entity.id, listing.prefix)
        whole = WholeList(page.state.commit_id, len(page.entries), body)
        catalog.shared.lists.remember(place, whole)
    return body


async def list_chosen(
    catalog: OpenCatalog, caller: Caller, listing: Listing, paging: Paging, choose: Choose
) -> bytes:
    """As `list_encoded`, with only those entries that are chosen. Nothing of it is kept."""
    if paging.token is None and paging.size is None:
        state = await catalog.read()
        shown = await find_shown(catalog, caller, listing, state)
        keys = await _scan_all(state, listing) if shown is None else shown
        return encode_list(listing, await choose(state, keys), None)

    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        shown = await find_shown(catalog, caller, listing, state)
        chosen: list[bytes] = []
        while len(chosen) < limit:
            if shown is None:
                found = await state.scan("names", prefix=listing.prefix, start=start, limit=_CHOSEN_AT_ONCE)
                keys = [key for key, _ in found]
            else:
                keys = [key for key in shown if key >= start][:_CHOSEN_AT_ONCE]
            if not keys:
                break
            chosen += await choose(state, keys)
            start = after(keys[-1])
        return [(key, b"") for key in chosen[:limit]]

    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="names",
        prefix=listing.prefix,
        size=choose_size(catalog, paging),
        token=paging.token or None,
        scan=scan,
    )
    if not page.entries:
        await _require_parent(page.state, listing)
    return encode_list(listing, [key for key, _ in page.entries], page.next_token)


async def _scan_all(state: State, listing: Listing) -> list[bytes]:
    keys: list[bytes] = []
    start = b""
    while True:
        entries = await state.scan("names", prefix=listing.prefix, start=start, limit=_CHUNK)
        keys += [key for key, _ in entries]
        if len(entries) < _CHUNK:
            break
        start = after(keys[-1])
        await asyncio.sleep(0)  # A list of a million must not hold up everyone else.
    if not keys:
        await _require_parent(state, listing)
    return keys


async def _require_parent(state: State, listing: Listing) -> None:
    # Only asked for empty lists: what has entries exists.
    if listing.namespace:
        await require_namespace(state, listing.namespace)


def encode_list(listing: Listing, keys: Sequence[bytes], next_token: str | None) -> bytes:
    """The answer out of the index keys of its entries."""
    field, before, behind = _frame(listing)
    skip = len(listing.prefix)
    names = [key[skip:] for key in keys]
    if _WRITTEN_OTHERWISE.search(b"".join(names)) is None:
        # The key's last element is the name in UTF-8, so it only needs quotes.
        joined = (b'"%s,%s"' % (behind, before)).join(names)
        entries = b'%s"%s"%s' % (before, joined, behind) if names else b""
    else:
        entries = b",".join([before + msgspec.json.encode(last_name(key)) + behind for key in keys])
    token = b',"next-page-token":"%s"' % next_token.encode() if next_token else b""
    return b'{"%s":[%s]%s}' % (field, entries, token)


def _frame(listing: Listing) -> tuple[bytes, bytes, bytes]:
    """The answer's field, and what is around the name of an entry."""
    if listing.is_of_namespaces:
        levels = b"".join([msgspec.json.encode(level) + b"," for level in listing.namespace])
        return b"namespaces", b"[" + levels, b"]"
    return b"identifiers", b'{"namespace":' + msgspec.json.encode(listing.namespace) + b',"name":', b"}"


def choose_size(catalog: OpenCatalog, paging: Paging) -> int:
    """Entries of a page: what the client wants, within what a page may hold."""
    wanted = catalog.shared.settings.page_size if paging.size is None else paging.size
    if wanted < 1:
        raise BadInput(
            "The page size is not positive", field="pageSize", fix="Choose 1 or more.", size=wanted
        )
    # The size is an upper bound for the client's sake; a shorter page than asked for is within it.
    return min(wanted, MAX_PAGE)
