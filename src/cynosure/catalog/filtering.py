"""What a caller sees of a list that it may not list: where `auth.filter_lists` says so, only that.

A namespace is shown when the caller may list it, or anything that is in it: one must be able to go to what
one may see. Where a whole kind may be listed (`TABLE_LIST` on the catalog), every namespace leads to some.

Costs what the caller's roles have grants, for every page; nothing else grows with the estate.

Must not break: what is shown is decided on the state that is listed, and by rights as they are now.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from cynosure.auth.access.visible import find_visible, has_catalog_role
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.names import Namespace, is_namespace_key, namespace_key, path_of
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import CatalogId, ObjId

_KINDS: Final = (
    Privilege.NAMESPACE_LIST,
    Privilege.TABLE_LIST,
    Privilege.VIEW_LIST,
    Privilege.POLICY_LIST,
)
"""All that makes something visible."""


_BATCH: Final = 1_000


class _Places(NamedTuple):
    """Namespaces of which something is seen."""

    granted: frozenset[Namespace]
    """A right is held on the namespace itself, and so on all that is below it."""
    holding: frozenset[Namespace]
    """Something in it is seen, which says nothing about what is beside that."""

    def covers(self, namespace: Namespace) -> bool:
        """Whether a right is held on the namespace or on one above it."""
        return any(namespace[:depth] in self.granted for depth in range(1, len(namespace) + 1))

    def all(self) -> frozenset[Namespace]:
        """All of them."""
        return self.granted | self.holding


class Sight:
    """What of one catalog a caller sees, in one state."""

    __slots__ = ("_authorizer", "_caller", "_catalog", "_view")

    def __init__(self, authorizer: Authorizer, caller: Caller, catalog: CatalogId, view: View) -> None:
        self._authorizer = authorizer
        self._caller = caller
        self._catalog = catalog
        self._view = view

    async def find_names(self, prefix: bytes, privilege: Privilege) -> list[bytes]:
        """Keys of tables or views with `prefix` on which `privilege` is granted, in order."""
        visible = await find_visible(self._authorizer, self._caller, self._catalog, privilege)
        if visible is None:
            return []
        return sorted(key for key in await self._keys_of(visible.ids) if key.startswith(prefix))

    async def find_children(self, parent: Namespace) -> list[bytes] | None:
        """Keys of the namespaces right below `parent` that are seen, in order; `None`: all of them."""
        places = await self._load_places()
        if places is None or places.covers(parent):
            return None
        depth = len(parent)
        below = (path for path in places.all() if len(path) > depth and path[:depth] == parent)
        return sorted({namespace_key(path[: depth + 1]) for path in below})

    async def leads_somewhere(self, namespace: Namespace) -> bool:
        """Whether anything at, in or around a namespace is seen, so that it is no secret."""
        if not namespace:
            return await has_catalog_role(self._authorizer, self._caller, self._catalog)
        places = await self._load_places()
        if places is None or places.covers(namespace):
            return True
        return any(path[: len(namespace)] == namespace for path in places.all())

    async def _load_places(self) -> "_Places | None":
        """Where something is seen; `None` when that may be anywhere."""
        ids: set[ObjId] = set()
        for privilege in _KINDS:
            visible = await find_visible(self._authorizer, self._caller, self._catalog, privilege)
            if visible is None:
                return _Places(frozenset(), frozenset())
            if visible.is_everything:
                return None
            ids |= visible.ids
        keys = await self._keys_of(ids)
        return _Places(
            frozenset(path_of(key) for key in keys if is_namespace_key(key)),
            frozenset(path_of(key)[:-1] for key in keys if not is_namespace_key(key)),
        )

    async def _keys_of(self, ids: Iterable[ObjId]) -> list[bytes]:
        """Keys in `names`. What was dropped has none."""
        found: list[bytes] = []
        for at, each in enumerate(sorted(ids)):
            key = await self._view.find("ids", encode_id_key(each))
            if key is not None:
                found.append(key)
            if at % _BATCH == _BATCH - 1:
                await asyncio.sleep(0)  # Others want to be served meanwhile.
        return found
