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


class RealmTarget(Struct, frozen=True):
    """The realm as a whole."""

    kind: ClassVar[str] = "realm"
    catalog: ClassVar[None] = None
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: it is where every way begins."""
        return NoSteps()


class PrincipalTarget(Struct, frozen=True):
    """A principal."""

    kind: ClassVar[str] = "principal"
    catalog: ClassVar[None] = None
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: nothing is granted on it."""
        return NoSteps()


class PrincipalRoleTarget(Struct, frozen=True):
    """A principal role."""

    kind: ClassVar[str] = "principal-role"
    catalog: ClassVar[None] = None
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: nothing is granted on it."""
        return NoSteps()


class CatalogRoleTarget(Struct, frozen=True):
    """A catalog role."""

    kind: ClassVar[str] = "catalog-role"
    catalog: CatalogId
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: rights on it are held on its catalog."""
        return NoSteps()
