"""What operations are about, as the authorizer walks to it: by name, through stable ids, in one state.

Must not break: `walk` finds everything through the view it is given. Inside `prepare` that view is tracked, so
a commit whose path was renamed or made anew meanwhile is prepared, and authorized, again.
"""

from collections.abc import AsyncIterator
from typing import ClassVar

from msgspec import Struct

from cynosure.auth.targets import NoSteps
from cynosure.catalog.managed.identity import load_identity, load_view_id
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.catalog.resolve import find_namespace, load_namespace, require_table_ref, require_view_ref
from cynosure.persistence.commit import View
from cynosure.persistence.spi import CatalogId, ObjId


class CatalogTarget(Struct, frozen=True):
    """A catalog."""

    kind: ClassVar[str] = "catalog"
    catalog: CatalogId
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: the way ends at the catalog."""
        return NoSteps()


class NamespaceTarget(Struct, frozen=True):
    """A namespace; without levels, the root of the catalog."""

    kind: ClassVar[str] = "namespace"
    catalog: CatalogId
    path: Namespace

    @property
    def name(self) -> str:
        """As messages name it."""
        return namespace_text(self.path)

    async def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Its levels; `NoSuchNamespace` when there is none."""
        if not self.path:
            return
        # Order: its own first, so that what is missing is missing whatever the caller may see above it.
        own = await load_namespace(view, self.path)
        async for each in _outer(view, self.path[:-1]):
            yield each
        yield own.id


class TableTarget(Struct, frozen=True):
    """A table."""

    kind: ClassVar[str] = "table"
    catalog: CatalogId
    path: Identifier

    @property
    def name(self) -> str:
        """As messages name it."""
        return str(self.path)

    async def walk(self, view: View) -> AsyncIterator[ObjId]:
        """The levels of its namespace, then its own id; `NoSuchTable` when there is none."""
        ref = await require_table_ref(view, self.path)
        async for each in _outer(view, self.path.namespace):
            yield each
        yield (await load_identity(view, ref))[0]


class ViewTarget(Struct, frozen=True):
    """A view."""

    kind: ClassVar[str] = "view"
    catalog: CatalogId
    path: Identifier

    @property
    def name(self) -> str:
        """As messages name it."""
        return str(self.path)

    async def walk(self, view: View) -> AsyncIterator[ObjId]:
        """The levels of its namespace, then its own id; `NoSuchView` when there is none."""
        ref = await require_view_ref(view, self.path)
        async for each in _outer(view, self.path.namespace):
            yield each
        yield await load_view_id(view, ref)


async def _outer(view: View, namespace: Namespace) -> AsyncIterator[ObjId]:
    """The levels of a namespace, outermost first. What is inside exists, so they do."""
    for depth in range(1, len(namespace) + 1):
        level = await find_namespace(view, namespace[:depth])
        if level is not None:
            yield level.id
