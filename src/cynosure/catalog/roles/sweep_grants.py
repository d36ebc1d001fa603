"""Remove grants and assignments that name something that is gone.

That are grants on things that neither are there nor can be restored, grants to catalog roles that are
gone, and catalog roles of principal roles that are gone. None of it grants anything, because ids are never
used again; it only takes space. So it is removed at leisure: a run looks at a bounded number of entries and
goes on where the last one ended.

Must not break: whether a thing is gone is asked of a state that was read *after* its entry was seen, and of
one state, so that what is dropped or restored meanwhile is found in one place or the other.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.auth.principals import read_principals
from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    THE_CATALOG,
    assignee_key,
    by_role_key,
    second_id,
    securable_key,
    usage_key,
)
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import after, decode_id_key, encode_id_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_BATCH: Final = 1_000
MOST_LOOKED_AT: Final = 100_000
"""Entries of each index that one run looks at, per catalog."""
_ID_BYTES: Final = 9


class SweepPlaces:
    """Where the last runs of this process ended, per catalog and index."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], bytes] = {}

    def get(self, catalog: OpenCatalog, index: str) -> bytes:
        """Where to go on; from the beginning when nothing is known."""
        return self._places.get((catalog.realm, catalog.entity.id, index), b"")

    def remember(self, catalog: OpenCatalog, index: str, start: bytes) -> None:
        """Go on here next time; empty: from the beginning."""
        key = (catalog.realm, catalog.entity.id, index)
        if start:
            self._places[key] = start
        else:
            self._places.pop(key, None)


async def sweep_grants(catalog: OpenCatalog, caller: Caller, places: SweepPlaces) -> int:
    """Remove what is left over, as far as this run looks; how many. Done by the server itself."""
    grants = (await catalog.grants.read()).state
    # Order: read after what is granted.
    main = _There(await catalog.read())
    principals = (await read_principals(catalog.shared.persistence, catalog.realm)).state
    removed = 0
    async for pairs in _look_at(catalog, grants, GRANTS, b"s", places):
        keys: list[bytes] = []
        for securable, role in pairs:
            if not (await _has_id(grants, role) and await main.has(securable)):
                keys += (securable_key(securable, role), by_role_key(role, securable))
        removed += await _remove(catalog, caller, GRANTS, keys)
    async for pairs in _look_at(catalog, grants, ASSIGNMENTS, b"a", places):
        keys = []
        for role, user in pairs:
            if not (await _has_id(grants, role) and await _has_id(principals, user)):
                keys += (assignee_key(role, user), usage_key(user, role))
        removed += await _remove(catalog, caller, ASSIGNMENTS, keys)
    return removed


class _There:
    """What is in a catalog, or can be restored to it."""

    def __init__(self, main: State) -> None:
        self._main = main
        self._restorable: set[ObjId] | None = None

    async def has(self, securable: ObjId) -> bool:
        if securable == THE_CATALOG or await _has_id(self._main, securable):
            return True
        if self._restorable is None:
            entries = await scan_all(self._main, "dropped", b"")
            ids = [ObjRef.unpack(value).id for _, value in entries]
            self._restorable = set()
            for at in range(0, len(ids), _BATCH):
                dropped = await self._main.load_many(DROPPED, ids[at : at + _BATCH])
                self._restorable |= {each.entity_id for each in dropped}
        return securable in self._restorable


async def _look_at(
    catalog: OpenCatalog, grants: State, index: str, prefix: bytes, places: SweepPlaces
) -> AsyncIterator[list[tuple[ObjId, ObjId]]]:
    start = places.get(catalog, index)
    for _ in range(-(-MOST_LOOKED_AT // _BATCH)):
        entries = await grants.scan(index, prefix=prefix, start=start, limit=min(_BATCH, MOST_LOOKED_AT))
        start = after(entries[-1][0]) if entries else b""
        # Remembered before it is done: what a run fails over does not stop all later ones.
        places.remember(catalog, index, start)
        if not entries:
            return
        yield [(_first_id(key), second_id(key)) for key, _ in entries]
        await asyncio.sleep(0)  # Others want to be served meanwhile.


def _first_id(key: bytes) -> ObjId:
    return ObjId(decode_id_key(key[1 : 1 + _ID_BYTES]))


async def _has_id(view: View, entity: ObjId) -> bool:
    return await view.find("ids", encode_id_key(entity)) is not None


async def _remove(catalog: OpenCatalog, caller: Caller, index: str, keys: list[bytes]) -> int:
    async def prepare(view: View) -> Prepared[None]:
        present = [key for key in keys if await view.find(index, key) is not None]
        return Prepared(None, {index: dict.fromkeys(present)})

    if keys:
        await commit_part(catalog.grants, caller, "sweep-grants", prepare)
    return len(keys) // 2
