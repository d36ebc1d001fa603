"""Tables that a caller was allowed to load, at the heads where that was found out.

Engines load the same few tables again and again, mostly while nothing changes in between. A name, and whether
somebody may load what it stands for, follow from three heads: the catalog's own, its grants, the realm's
principals. While all three are the same, so is the answer.

Must not break: only what was allowed is kept, and it is used only at exactly the heads it was found at.
"""

from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_MOST_KEPT: Final = 4_096


class LoadHeads(NamedTuple):
    """What a permission to load rests on."""

    main: ObjId
    rights: tuple[ObjId, ObjId]


class RecentLoads:
    """Of one catalog. Bounded by number; an entry is small."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, Identifier], tuple[LoadHeads, ObjRef]] = {}

    def get(self, caller: Caller, table: Identifier, heads: LoadHeads) -> ObjRef | None:
        """Where the state of the table is that this caller may load, if that was found at these heads."""
        found = self._found.get((caller.identity, table))
        return found[1] if found is not None and found[0] == heads else None

    def put(self, caller: Caller, table: Identifier, heads: LoadHeads, ref: ObjRef) -> None:
        """Remember that this caller may load the table."""
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
        self._found[caller.identity, table] = heads, ref
