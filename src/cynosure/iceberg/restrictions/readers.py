"""Who reads, and for whom a restriction is meant.

A maintainer must not break: giving up a role never shows more. What restricts counts for every role that a
principal has, active or not; what exempts counts only for roles that are active.
"""

from msgspec import Struct


class Reader(Struct, frozen=True):
    """A principal, as restrictions see it."""

    name: str
    assigned: frozenset[str] = frozenset()
    """Names of all the principal roles it has."""
    active: frozenset[str] = frozenset()
    """Those of them that this request acts with."""
    missing: frozenset[str] = frozenset()
    """Roles that restrictions name and that do not exist (any more): who would have had them is not known."""


class Audience(Struct, frozen=True):
    """Whom a restriction is for."""

    roles: tuple[str, ...] | None = None
    """Those who have one of these principal roles; `None`: everyone."""
    except_roles: tuple[str, ...] = ()
    """But not those who act with one of these."""

    def includes(self, reader: Reader) -> bool:
        """Whether a reader is restricted."""
        if not reader.active.isdisjoint(self.except_roles):
            return False
        if self.roles is None or not reader.assigned.isdisjoint(self.roles):
            return True
        # Whoever deletes a role must not lift what it restricted.
        return not reader.missing.isdisjoint(self.roles)
