"""Compare the mirror of a federated catalog with its remote, page by page, and mend it if wanted.

Loads see what they are about by themselves; this is for what nobody loads: grants and policies on tables that
are gone, names that were given to other tables, entries that only take space.

A maintainer must not break: it is bounded. A page asks the remote once for each of its entries, and for a
bounded number of others; all pages are of one state, so it ends whatever happens meanwhile.
"""

from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.names import MAX_LEVELS
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.federation.handover import require_unmoved
from cynosure.federation.lists import Remotes
from cynosure.federation.reconciling.drift import Drift
from cynosure.federation.reconciling.hanging import Hanging, find_hanging
from cynosure.federation.reconciling.looking import Look, key_of, load_entry, look_at_all
from cynosure.federation.reconciling.mending import mend
from cynosure.federation.reconciling.moves import Moved, find_moves
from cynosure.federation.reconciling.names import find_unfit
from cynosure.persistence.commit import State
from cynosure.persistence.listing import Page, list_page

MOST_ENTRIES: Final = 200
"""Of the mirror, in one page."""
_ORDER: Final = (b"t", b"v", b"n")
"""Kinds of keys of `names`. Namespaces last: what was in them is told before it goes with them."""


_INSIDE: Final = MAX_LEVELS + 1
"""Tables and views: deeper than any namespace."""


class Reconciled(Struct, frozen=True):
    """What a page found."""

    checked: int
    drifts: tuple[Drift, ...]
    next_token: str | None = None


async def reconcile(
    remotes: Remotes,
    catalog: OpenCatalog,
    caller: Caller,
    *,
    is_mending: bool,
    token: str | None = None,
    size: int = 100,
) -> Reconciled:
    """Compare some entries of the mirror with the remote; the rest with the token of the answer."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.RECONCILE_CATALOG, catalog.target())
    require_federated(catalog)
    await require_unmoved(state, catalog.entity.name)
    page = await _list_entries(catalog, token, min(size, MOST_ENTRIES))
    remote = remotes.get(catalog)
    # On the state as it is now: who mends, or loads, has changed some of it since the first page.
    found = [await load_entry(state, key) for key, _ in page.entries]
    entries = [each for each in found if each is not None]
    looks = await look_at_all(remote, catalog, state, entries)
    moves = await find_moves(remote, state, [each for each in looks if each.difference == "gone"])
    drifts: list[Drift] = []
    for look in looks:
        if look.entry.kind == "namespace" and look.difference in (None, "changed"):
            drifts += await find_unfit(remote, look.entry.path)
    wrong = [each for each in looks if each.difference is not None]
    # Found before anything goes, and what is inside goes before what it is in.
    hanging = [(each, await _find_hanging(catalog, state, each, moves)) for each in wrong]
    hanging.sort(key=lambda pair: len(pair[0].entry.path) if pair[0].entry.kind == "namespace" else _INSIDE)
    for look, hangs in reversed(hanging):
        moved = moves.get(key_of(look.entry.kind, look.entry.path))
        drifts.append(await _tell(catalog, caller, look, moved, hangs, is_mending=is_mending))
    drifts.sort(key=lambda each: (each.path, each.kind))
    return Reconciled(len(entries), tuple(drifts), page.next_token)


def require_federated(catalog: OpenCatalog) -> None:
    """Refuse what makes sense only where there is a remote."""
    if not catalog.is_federated:
        raise BadInput(
            "The catalog has no remote",
            field="catalogName",
            fix="Name a catalog of type EXTERNAL that has a connection.",
            catalog=catalog.entity.name,
        )


async def _list_entries(catalog: OpenCatalog, token: str | None, size: int) -> Page:
    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        first = _ORDER.index(start[:1]) if start[:1] in _ORDER else 0
        for prefix in _ORDER[first:]:
            after = start if start.startswith(prefix) else b""
            found += await state.scan("names", prefix=prefix, start=after, limit=limit - len(found))
            if len(found) >= limit:
                break
        return found

    tokens = catalog.shared.persistence.page_tokens
    return await list_page(
        catalog.committer, tokens, index="names", prefix=b"", size=size, token=token, scan=scan
    )


async def _find_hanging(catalog: OpenCatalog, state: State, look: Look, moves: dict[bytes, Moved]) -> Hanging:
    seen = look.entry.seen
    # What is granted by name is for whatever has it next.
    is_ending = look.difference in ("gone", "re-created") and not (seen is not None and seen.is_by_name)
    if not is_ending or key_of(look.entry.kind, look.entry.path) in moves:
        return Hanging()
    return await find_hanging(catalog, state, look.entry.id)


async def _tell(
    catalog: OpenCatalog, caller: Caller, look: Look, moved: Moved | None, hangs: Hanging, *, is_mending: bool
) -> Drift:
    difference, is_mended = look.difference, False
    if is_mending:
        difference, is_mended = await mend(catalog, caller, look, moved)
    return Drift(
        kind=look.entry.kind,
        path=look.entry.path,
        difference="moved" if moved is not None else difference or "changed",
        moved_to=() if moved is None else moved.path,
        grants=hangs.grants,
        policies=hangs.policies,
        is_mended=is_mended,
    )
