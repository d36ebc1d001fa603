"""Targets that belong to a realm: the realm itself, principals, principal roles; and catalog roles.

The way to them is short: rights on them are held on the realm (or, for a catalog role, on its catalog).
"""

from collections.abc import AsyncIterator
from typing import ClassVar

from msgspec import Struct

from cynosure.persistence.commit import View
from cynosure.persistence.spi import CatalogId, ObjId


class NoSteps:
    """The way to what is not below anything that privileges are granted on."""

    def __aiter__(self) -> AsyncIterator[ObjId]:
        return self

    async def __anext__(self) -> ObjId:
        raise StopAsyncIteration


class Unwalked:
    """A target without a way to it: nothing is granted on it, or on anything between it and the catalog."""

    __slots__ = ()
    kind: ClassVar[str]
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing."""
        return NoSteps()

    def place(self, depth: int) -> tuple[str, str]:
        """Only itself."""
        return self.kind, self.name


class RealmTarget(Unwalked, Struct, frozen=True):
    """The realm as a whole."""

    kind: ClassVar[str] = "realm"
    catalog: ClassVar[None] = None
    name: str


class PrincipalTarget(Unwalked, Struct, frozen=True):
    """A principal."""

    kind: ClassVar[str] = "principal"
    catalog: ClassVar[None] = None
    name: str


class PrincipalRoleTarget(Unwalked, Struct, frozen=True):
    """A principal role."""

    kind: ClassVar[str] = "principal-role"
    catalog: ClassVar[None] = None
    name: str


class CatalogRoleTarget(Unwalked, Struct, frozen=True):
    """A catalog role. Rights on it are held on its catalog."""

    kind: ClassVar[str] = "catalog-role"
    catalog: CatalogId
    name: str
