"""What callers were found to be allowed, at the heads where that was found out.

Engines load and list the same few things again and again, mostly while nothing changes in between. What a
name stands for, and whether somebody may do something to it, follow from three heads: the catalog's own, its
grants, the realm's principals. While all three are the same, so is the answer.

Must not break: only what was allowed is kept, and it is used only at exactly the heads it was found at.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.guards import Guards
from cynosure.catalog.targets import InCatalog
from cynosure.persistence.spi import ObjId

_MOST_KEPT: Final = 4_096


class PermitHeads(NamedTuple):
    """What a permission rests on."""

    main: ObjId
    principals: ObjId
    grants: ObjId


class _Permit(NamedTuple):
    heads: PermitHeads
    operation: Operation
    guards: Guards
    asked: tuple[object, object]
    """Whom and what it is about. Held, so that nothing else gets their place in memory, which is the key."""


class RecentPermits:
    """Of one catalog. Bounded by number; an entry is small."""

    def __init__(self) -> None:
        self._found: dict[object, _Permit] = {}

    def get(self, caller: Caller, operation: Operation, target: Target, heads: PermitHeads) -> Guards | None:
        """What the permission rests on, if it was found at these heads."""
        found = self._found.get(_key(caller, operation, target))
        return found.guards if found is not None and found.heads == heads else None

    def put(
        self, caller: Caller, operation: Operation, target: Target, heads: PermitHeads, guards: Guards
    ) -> None:
        """Remember that this caller may do this."""
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
        permit = _Permit(heads, operation, guards, (caller.identity, operation))
        self._found[_key(caller, operation, target)] = permit

    def get_choice(
        self, caller: Caller, operations: Sequence[Operation], target: Target, heads: PermitHeads
    ) -> tuple[Operation, Guards] | None:
        """The first of these that the caller may do, if it was found at these heads."""
        found = self._found.get(_key(caller, operations, target))
        return (found.operation, found.guards) if found is not None and found.heads == heads else None

    def put_choice(
        self,
        caller: Caller,
        operations: Sequence[Operation],
        target: Target,
        heads: PermitHeads,
        chosen: tuple[Operation, Guards],
    ) -> None:
        """Remember what this caller may do of these. Known again by the very same sequence."""
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
        permit = _Permit(heads, *chosen, (caller.identity, operations))
        self._found[_key(caller, operations, target)] = permit


def _key(caller: Caller, asked: Operation | Sequence[Operation], target: Target) -> object:
    # By identity where that is enough: hashing who asks costs more than looking the answer up. Things by
    # path, not by name, because names may hold the dots that messages put between them.
    path = target.path if isinstance(target, InCatalog) else None
    return id(caller.identity), id(asked), path
