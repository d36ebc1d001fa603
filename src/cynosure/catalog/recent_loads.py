"""Which version of a table callers were given, at the heads where that was found out.

Engines load the same few tables again and again. What a name stands for, whether somebody may load it, and
that nothing of it is hidden from them, all follow from three heads (`recent_permits.py`). While these are the
same, only the version has to be got from memory (by instructions, about a sixth of a load).

Must not break: kept is only what was allowed, of tables that are shown whole, and it is used only at exactly
the heads it was found at.
"""

from typing import Final, NamedTuple

from cynosure.auth.caller import Caller, Identity
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.names import Identifier
from cynosure.catalog.recent_permits import PermitHeads
from cynosure.persistence.spi import ObjId

_MOST_KEPT: Final = 4_096


class RecentLoad(NamedTuple):
    """A table as somebody may have it."""

    heads: PermitHeads
    state_id: ObjId
    """Of the version."""
    operation: Operation
    """What the caller may do."""
    identity: Identity | None
    """Whose it is. Held, so that nothing else gets its place in memory, which is the key."""


class RecentLoads:
    """Of one catalog. Bounded by number; an entry is small."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Identifier, bool], RecentLoad] = {}

    def get(
        self, caller: Caller, table: Identifier, heads: PermitHeads, *, is_for_data: bool
    ) -> RecentLoad | None:
        """What was found at these heads. Whoever wants the data asks for other rights than others."""
        found = self._found.get((id(caller.identity), table, is_for_data))
        return found if found is not None and found.heads == heads else None

    def put(
        self,
        caller: Caller,
        table: Identifier,
        heads: PermitHeads,
        found: tuple[ObjId, Operation],
        *,
        is_for_data: bool,
    ) -> None:
        """Remember the version and what the caller may do."""
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
        identity = caller.identity
        self._found[id(identity), table, is_for_data] = RecentLoad(heads, *found, identity)
