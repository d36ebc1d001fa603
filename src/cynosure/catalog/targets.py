"""What operations are about, as the authorizer walks to it: by name, through stable ids, in one state.

Must not break: `walk` finds everything through the view it is given. Inside `prepare` that view is tracked,
so a commit whose path was renamed or made anew meanwhile is prepared, and authorized, again.
"""

from collections.abc import AsyncIterator
from typing import ClassVar, Final, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct

from cynosure.auth.targets import NoSteps
from cynosure.catalog.entities import GENERIC_TABLE, NAMESPACE, POLICY, TABLE_FACADE
from cynosure.catalog.errors import (
    NoSuchGenericTable,
    NoSuchNamespace,
    NoSuchPolicy,
    NoSuchTable,
    NoSuchView,
)
from cynosure.catalog.managed.identity import load_identity, load_view_id
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.catalog.resolve import (
    find_namespace,
    load_generic,
    require_any_table_ref,
    require_generic_ref,
    require_namespace_ref,
    require_policy_ref,
    require_table_ref,
    require_view_ref,
)
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import State, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import CatalogId, ObjId


class CatalogTarget(Struct, frozen=True):
    """A catalog."""

    kind: ClassVar[str] = "catalog"
    catalog: CatalogId
    name: str

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Nothing: the way ends at the catalog."""
        return NoSteps()

    def place(self, depth: int) -> tuple[str, str]:
        """See `Target.place`."""
        return "catalog", self.name


class NamespaceTarget(Struct, frozen=True):
    """A namespace; without levels, the root of the catalog."""

    kind: ClassVar[str] = "namespace"
    catalog: CatalogId
    path: Namespace

    @property
    def name(self) -> str:
        """As messages name it."""
        return namespace_text(self.path)

    @property
    def parent(self) -> Namespace:
        """The namespace it is in."""
        return self.path[:-1]

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchNamespace(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return await require_namespace_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        return (await view.load_many(NAMESPACE, [ref.id]))[0].id

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Its levels; none for the root."""
        return _walk(self, view) if self.path else NoSteps()

    def place(self, depth: int) -> tuple[str, str]:
        """See `Target.place`."""
        return _place(self, depth)


class _Located(Protocol):
    """What a walk needs of its target."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def parent(self) -> Namespace: ...
    async def locate(self, view: View) -> ObjRef: ...
    async def load_id(self, view: View, ref: ObjRef) -> ObjId: ...


class _Leaf(Struct, frozen=True):
    """Something in a namespace that has a name there."""

    catalog: CatalogId
    path: Identifier

    @property
    def name(self) -> str:
        """As messages name it."""
        return str(self.path)

    @property
    def parent(self) -> Namespace:
        """The namespace it is in."""
        return self.path.namespace

    def walk(self: _Located, view: View) -> AsyncIterator[ObjId]:
        """The levels of its namespace, then its own id."""
        return _walk(self, view)

    def place(self: _Located, depth: int) -> tuple[str, str]:
        """See `Target.place`."""
        return _place(self, depth)


class TableTarget(_Leaf, frozen=True):
    """A table."""

    kind: ClassVar[str] = "table"
    ref: ObjRef | None = None
    """Where its state is, when it was looked up in the same state before: its name is not looked up again."""
    id: ObjId | None = None
    """Its stable id, when that is known as well."""

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchTable(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return self.ref or await require_table_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        return self.id or (await load_identity(view, ref))[0]


class ViewTarget(_Leaf, frozen=True):
    """A view."""

    kind: ClassVar[str] = "view"

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchView(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return await require_view_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        return await load_view_id(view, ref)


class PolicyTarget(_Leaf, frozen=True):
    """A policy."""

    kind: ClassVar[str] = "policy"

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchPolicy(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return await require_policy_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        return (await view.load_many(POLICY, [ref.id]))[0].id


class GenericTableTarget(_Leaf, frozen=True):
    """A generic table. Privileges on it are those of tables."""

    kind: ClassVar[str] = "table"

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchGenericTable(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return await require_generic_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        return (await load_generic(view, ref)).id


class AnyTableTarget(_Leaf, frozen=True):
    """A table, generic table or facade, whichever has the name: what privileges of tables are granted on."""

    kind: ClassVar[str] = "table"

    def no_such(self) -> NotFound:
        """The error when there is none."""
        return NoSuchTable(self.name)

    async def locate(self, view: View) -> ObjRef:
        """Where its state is."""
        return await require_any_table_ref(view, self.path)

    async def load_id(self, view: View, ref: ObjRef) -> ObjId:
        """Its stable id."""
        if ref.type == GENERIC_TABLE.name:
            return (await load_generic(view, ref)).id
        if ref.type == TABLE_FACADE.name:
            return (await view.load_many(TABLE_FACADE, [ref.id]))[0].id
        return (await load_identity(view, ref))[0]


InCatalog = NamespaceTarget | TableTarget | ViewTarget | GenericTableTarget | AnyTableTarget | PolicyTarget
"""What is inside a catalog: each can be located, has a stable id, and an error for when there is none."""


async def _walk(target: _Located, view: View) -> AsyncIterator[ObjId]:
    # Order: its own first, so that what is missing is missing whatever the caller may see above it.
    ref = await target.locate(view)
    # No generator inside: a walk may be left half way, and that one would be left to the collector.
    for each in await _load_levels(view, target.parent):
        yield each
    yield await target.load_id(view, ref)


def _place(target: _Located, depth: int) -> tuple[str, str]:
    parent = target.parent
    if depth < len(parent):
        return "namespace", namespace_text(parent[: depth + 1])
    return target.kind, target.name


class Veiled:
    """A target inside a catalog that is walked to as if it existed, whether it does or not."""

    __slots__ = ("_target", "catalog", "kind", "name")

    def __init__(self, target: InCatalog) -> None:
        self._target = target
        self.kind = target.kind
        self.name = target.name
        self.catalog: CatalogId | None = target.catalog

    async def walk(self, view: View) -> AsyncIterator[ObjId]:
        """As the target's own walk. In the place of what is missing stands an id that nothing has."""
        target = self._target
        try:
            ref: ObjRef | None = await target.locate(view)
        except NotFound:
            ref = None
        levels = await _load_levels(view, target.parent)
        for each in levels:
            yield each
        # As many steps as there would be.
        for _ in range(len(target.parent) - len(levels)):
            yield _NOTHING
        yield _NOTHING if ref is None else await target.load_id(view, ref)

    def place(self, depth: int) -> tuple[str, str]:
        """See `Target.place`."""
        return self._target.place(depth)


_NOTHING: Final = ObjId(1)
"""Ids begin later than this, and 0 is the catalog itself where privileges are granted."""

_known_levels: WeakKeyDictionary[State, dict[Namespace, tuple[ObjId, ...]]] = WeakKeyDictionary()
"""By state: what is asked of one again and again, for as long as anyone has it. A state never changes."""
_MOST_LEVELS: Final = 1_000
"""Namespaces that are remembered per state."""


async def _load_levels(view: View, namespace: Namespace) -> tuple[ObjId, ...]:
    """The levels of a namespace that exist, outermost first."""
    if not isinstance(view, State):
        # A view that is tracked must be asked, so that the answers are remembered with the request.
        return await _find_levels(view, namespace)
    known = _known_levels.get(view)
    if known is None or len(known) >= _MOST_LEVELS:
        known = _known_levels[view] = {}
    levels = known.get(namespace)
    if levels is None:
        levels = known[namespace] = await _find_levels(view, namespace)
    return levels


async def _find_levels(view: View, namespace: Namespace) -> tuple[ObjId, ...]:
    found = [await find_namespace(view, namespace[:depth]) for depth in range(1, len(namespace) + 1)]
    return tuple([level.id for level in found if level is not None])
