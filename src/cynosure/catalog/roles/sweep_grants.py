"""Remove what names something that is gone: grants on things that neither are there nor can be restored, grants
to roles that are gone, and catalog roles of principal roles that are gone.

None of it grants anything, because ids are never used again; it only takes space. So it may be removed at
leisure: a run looks at a bounded number of entries and goes on where the last one ended.

Must not break: an entry is removed only when what it names is missing in a state that was read *after* the
entry was seen. What is created later has another id, and what was dropped and can be restored keeps its grants.
"""

from collections.abc import Iterable
from typing import Final

from cynosure.auth.caller import Caller, commit_as
from cynosure.auth.principals import read_principals
from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    THE_CATALOG,
    assignee_key,
    by_role_key,
    first_id,
    second_id,
    securable_key,
)
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import after, encode_id_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_BATCH: Final = 1_000
MOST_LOOKED_AT: Final = 100_000
"""Entries of each index that one run looks at, per catalog."""


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
    """Remove what is left over, as far as this run looks; how many entries. Done by the server itself."""
    return await _sweep_grants(catalog, caller, places) + await _sweep_assignments(catalog, caller, places)


async def _sweep_grants(catalog: OpenCatalog, caller: Caller, places: SweepPlaces) -> int:
    removed = 0
    start = places.get(catalog, GRANTS)
    restorable: set[ObjId] | None = None
    for _ in range(MOST_LOOKED_AT // _BATCH):
        grants = (await catalog.grants.read()).state
        entries = await grants.scan(GRANTS, prefix=b"s", start=start, limit=_BATCH)
        if not entries:
            places.remember(catalog, GRANTS, b"")
            return removed
        start = after(entries[-1][0])
        # Order: what is there is read after what is granted, and what is dropped after what is there; a
        # thing that is dropped or restored meanwhile is in one of them.
        main = await catalog.read()
        gone = [key for key, _ in entries if not await _is_there(main, grants, key)]
        if gone:
            if restorable is None or any(first_id(key) not in restorable for key in gone):
                restorable = await _load_restorable(await catalog.read())
            doomed = [
                key
                for key in gone
                if first_id(key) not in restorable or not await _has_role(grants, second_id(key))
            ]
            removed += await _remove_grants(catalog, caller, doomed)
    places.remember(catalog, GRANTS, start)
    return removed
