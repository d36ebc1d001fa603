"""Everything that is attached on the way to something: the catalog, its namespaces, itself.

Read for every table that is loaded, so a catalog without attachments costs one scan per state, and one with
attachments costs what is on the path, once per state.

Must not break: nothing that is attached is left out. A policy that cannot be found is an error and never
nothing, because what it would have restricted must not be given away.
"""

from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from cynosure.catalog.entities import POLICY, PolicyEntity
from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.catalog.policies.mappings import (
    THE_CATALOG,
    PolicyMapping,
    has_mappings,
    load_mappings,
    target_prefix,
)
from cynosure.catalog.targets import CatalogTarget, InCatalog
from cynosure.common.errors import MissingObject
from cynosure.persistence.commit import State, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_MOST_KNOWN: Final = 1_000
"""Targets that are remembered per state."""


class Attached(Struct, frozen=True):
    """One policy, where it is attached on the way to something."""

    policy: PolicyEntity
    namespace: Namespace
    """Of the policy."""
    name: str
    """Of the policy."""
    target_id: ObjId
    depth: int
    """0: the catalog; 1 and on: namespaces; last: what was asked about."""
    on_kind: str
    on: str
    """As messages name it; empty for the catalog."""
    mapping: PolicyMapping

    @property
    def path(self) -> Identifier:
        """The policy, by name."""
        return Identifier(self.namespace, self.name)


class _Known:
    """What was found out about one state."""

    __slots__ = ("attached", "has_any")

    def __init__(self, *, has_any: bool) -> None:
        self.has_any = has_any
        self.attached: dict[object, tuple[Attached, ...]] = {}


_known: WeakKeyDictionary[State, _Known] = WeakKeyDictionary()


async def load_attached(view: View, target: CatalogTarget | InCatalog) -> tuple[Attached, ...]:
    """All that is attached on the way to `target`, outermost first.

    Its error when it does not exist; where nothing is attached at all, that is not asked.
    """
    if not isinstance(view, State):
        # A view that is tracked must be asked, so that the answers are remembered with the request.
        return await _load_attached(view, target) if await has_mappings(view) else ()
    known = _known.get(view)
    if known is None:
        known = _known[view] = _Known(has_any=await has_mappings(view))
    if not known.has_any:
        return ()
    key = None if isinstance(target, CatalogTarget) else (target.kind, target.path)
    attached = known.attached.get(key)
    if attached is None:
        attached = await _load_attached(view, target)
        if len(known.attached) >= _MOST_KNOWN:
            known.attached.clear()
        known.attached[key] = attached
    return attached


async def load_attached_to(view: View, target_id: ObjId, place: tuple[str, str]) -> tuple[Attached, ...]:
    """What is attached to a thing itself, which may be dropped. `place`: its kind and name, for messages."""
    return tuple(await _load_at(view, target_id, 1, place)) if await has_mappings(view) else ()


async def _load_attached(view: View, target: CatalogTarget | InCatalog) -> tuple[Attached, ...]:
    found = await _load_at(view, THE_CATALOG, 0, ("catalog", ""))
    # All of the walk: left half way, a generator is closed by the collector, at some time.
    steps = [each async for each in target.walk(view)]
    for depth, securable in enumerate(steps):
        found += await _load_at(view, securable, depth + 1, target.place(depth))
    return tuple(found)


async def _load_at(view: View, target_id: ObjId, depth: int, place: tuple[str, str]) -> list[Attached]:
    mappings = await load_mappings(view, target_prefix(target_id))
    kind, name = place
    found: list[Attached] = []
    for mapping in mappings:
        path, policy = await load_policy_by_id(view, mapping.policy_id)
        found.append(
            Attached(
                policy=policy,
                namespace=path.namespace,
                name=path.name,
                target_id=target_id,
                depth=depth,
                on_kind=kind,
                on=name,
                mapping=mapping,
            )
        )
    return found


async def load_policy_by_id(view: View, policy_id: ObjId) -> tuple[Identifier, PolicyEntity]:
    """A policy that is attached to something, and what it is called."""
    key = await view.find("ids", encode_id_key(policy_id))
    value = None if key is None else await view.find("names", key)
    if key is None or value is None:
        raise MissingObject("A policy that is attached to something is gone", policy_id=policy_id)
    (policy,) = await view.load_many(POLICY, [ObjRef.unpack(value).id])
    *namespace, name = path_of(key)
    return Identifier(tuple(namespace), name), policy
