"""What can be wrong with an entry of the mirror."""

from typing import Literal

from msgspec import Struct

from cynosure.catalog.names import Identifier, Namespace

Kind = Literal["namespace", "table", "view"]
Difference = Literal[
    "gone", "re-created", "moved", "changed", "unreachable", "unusable", "not-shown", "name-not-allowed"
]
"""The remote has it no more; another one under the same name (another uuid); the same under another name;
another version; did not say; said what cannot be used; has it, and it may not be shown here; has a name that
cannot be one here."""


class HangingGrant(Struct, frozen=True):
    """What a catalog role holds on something."""

    role: str
    privileges: tuple[str, ...]


class Drift(Struct, frozen=True, kw_only=True):
    """One entry of the mirror, and what is wrong with it."""

    kind: Kind
    path: tuple[str, ...]
    difference: Difference
    moved_to: tuple[str, ...] = ()
    grants: tuple[HangingGrant, ...] = ()
    """On what is gone, or was made anew: they end with it."""
    policies: tuple[str, ...] = ()
    """Attached to it, by name. Row filters and masks wait for what has the name next (`mirror.waiting`)."""
    is_mended: bool = False

    @property
    def name(self) -> Identifier:
        """Of a table or view."""
        return Identifier(self.path[:-1], self.path[-1])

    @property
    def target(self) -> Identifier:
        """Where it is now."""
        return Identifier(self.moved_to[:-1], self.moved_to[-1])

    @property
    def namespace(self) -> Namespace:
        """Of a namespace: itself."""
        return self.path
