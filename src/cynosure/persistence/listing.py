"""Listings in pages, all on one state.

The first page reads the current state; its token names that commit, so later pages continue on the very
same one, whatever is committed meanwhile and whichever server answers.

Must not break: tokens are bound to the reference, index and prefix they were issued for.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput, Expired
from cynosure.common.paging import PageTokens
from cynosure.persistence.commit import COMMIT, Committer, State, View
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.index import after
from cynosure.persistence.spi import ObjId, RefKey

MAX_PAGE = 1_000
_CHUNK = 10_000


class Paging(Struct, frozen=True):
    """How much of a list is wanted. Neither field: all of it in one answer."""

    token: str | None = None
    """Of the page before; empty for the first page."""
    size: int | None = None


class Page(Struct, frozen=True):
    """One page of an index."""

    entries: Sequence[tuple[bytes, bytes]]
    next_token: str | None
    """`None` on the last page."""
    state: State
    """Where the entries' objects are to be read."""


Scan = Callable[[State, bytes, int], Awaitable[list[tuple[bytes, bytes]]]]
"""Some of the entries: on a state, from a key on, up to a number of them, in key order."""


class _Place(Struct, frozen=True, array_like=True):
    commit: ObjId
    start: bytes


async def list_page(
    committer: Committer,
    tokens: PageTokens,
    *,
    index: str,
    prefix: bytes,
    size: int,
    token: str | None = None,
    scan: Scan | None = None,
) -> Page:
    """Entries with `prefix`, up to `size` of them, from where `token` left off.

    `scan` chooses among them: for lists that show only some.
    """
    if not 1 <= size <= MAX_PAGE:
        raise BadInput(
            "The page size is out of range", field="pageSize", fix=f"Choose 1 to {MAX_PAGE}.", size=size
        )
    scope = _scope_of(committer.key, index, prefix)
    if token is None:
        state, start = (await committer.read()).state, b""
    else:
        place = msgspec.msgpack.decode(tokens.open(scope, token), type=_Place)
        state, start = await _state_of(committer, place.commit), place.start
    if scan is None:
        entries = await state.scan(index, prefix=prefix, start=start, limit=size + 1)
    else:
        entries = await scan(state, start, size + 1)
    next_token = None
    if len(entries) > size:
        entries = entries[:size]
        place = _Place(state.commit_id, after(entries[-1][0]))
        next_token = tokens.seal(scope, msgspec.msgpack.encode(place))
    return Page(entries, next_token, state)


async def list_paged(
    committer: Committer, tokens: PageTokens, *, index: str, prefix: bytes, paging: Paging
) -> Page:
    """Entries with `prefix`: one page when one was asked for, else all of them."""
    if paging.token is not None or paging.size is not None:
        size = MAX_PAGE if paging.size is None else min(paging.size, MAX_PAGE)
        return await list_page(
            committer, tokens, index=index, prefix=prefix, size=size, token=paging.token or None
        )
    state = (await committer.read()).state
    return Page(await scan_all(state, index, prefix), None, state)


async def scan_all(view: View, index: str, prefix: bytes) -> list[tuple[bytes, bytes]]:
    """All entries with `prefix`, in key order."""
    found: list[tuple[bytes, bytes]] = []
    start = b""
    while True:
        entries = await view.scan(index, prefix=prefix, start=start, limit=_CHUNK)
        found += entries
        if len(entries) < _CHUNK:
            return found
        start = after(entries[-1][0])


async def _state_of(committer: Committer, commit_id: ObjId) -> State:
    if commit_id == NO_COMMIT:
        return await State.load(committer.store, commit_id)
    commit = await committer.store.find(COMMIT, commit_id)
    if commit is None:
        raise Expired("The listed state has been collected", fix="List again without a page token.")
    return State(committer.store, commit_id, commit)


def _scope_of(key: RefKey, index: str, prefix: bytes) -> str:
    return "\x00".join([*key, index, prefix.hex()])
