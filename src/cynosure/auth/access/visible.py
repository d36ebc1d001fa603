"""What a caller may see in a catalog, from the side of its grants: for lists that are filtered.

A list cannot ask for every entry whether the caller may see it: that costs what the estate is large. It asks
once what the caller's roles have, which costs what they have, and shows what is there, below it, or above it.

Must not break: who may see nothing gets the empty set, never `EVERYTHING`.
"""

from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer
from cynosure.auth.rbac.privileges import Privilege
from cynosure.persistence.spi import CatalogId, ObjId


class Visible(Struct, frozen=True):
    """Where in a catalog a privilege is held."""

    is_everything: bool
    """It is held on the catalog or the realm, hence everywhere."""
    ids: frozenset[ObjId] = frozenset()
    """Else the stable ids of the namespaces, tables, views and policies on which it, or one that includes it,
    is granted. It is held on everything below them too. They may be gone."""


EVERYTHING: Final = Visible(is_everything=True)
NOTHING: Final = Visible(is_everything=False)


@runtime_checkable
class Seeing(Protocol):
    """An authorizer that can also say where something is held, not only whether."""

    async def visible(self, caller: Caller, catalog: CatalogId, privilege: Privilege) -> Visible:
        """Where `privilege` is held by the caller's active roles."""
        ...

    async def has_catalog_role(self, caller: Caller, catalog: CatalogId) -> bool:
        """Whether any active role of the caller has a role in the catalog."""
        ...


async def find_visible(
    authorizer: Authorizer, caller: Caller, catalog: CatalogId, privilege: Privilege
) -> Visible | None:
    """Where the caller holds `privilege` in a catalog; `None` when this authorizer cannot tell."""
    if isinstance(authorizer, Seeing):
        return await authorizer.visible(caller, catalog, privilege)
    return None


async def has_catalog_role(authorizer: Authorizer, caller: Caller, catalog: CatalogId) -> bool:
    """Whether the caller has a role in the catalog. `False` when this authorizer cannot tell."""
    return isinstance(authorizer, Seeing) and await authorizer.has_catalog_role(caller, catalog)
