"""What a cascade would drop, and what is in the way: asked before anything is dropped.

Must not break: a caller who may not know that something exists is not told its name here either.
"""

from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import AccessDenied
from cynosure.catalog.cascading.contents import Kind, Thing, walk_contents
from cynosure.catalog.entities import POLICY
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import load_mappings, policy_prefix
from cynosure.catalog.policies.placing import find_target_by_id
from cynosure.catalog.policy_types import choose_operation
from cynosure.catalog.purging.tombstone import IDS, PURGES, TOMBSTONE, Tombstone
from cynosure.catalog.resolve import require_policy_ref
from cynosure.catalog.targets import CatalogTarget, NamespaceTarget, TableTarget
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import State
from cynosure.persistence.index import after
from cynosure.persistence.objects import ObjRef

_CHUNK: Final = 1_000
_MOST_NAMED: Final = 20
_EVERYTHING: Final = tuple(Kind)


class InTheWay(Struct, frozen=True):
    """Something that cannot be dropped, and why."""

    kind: str
    path: tuple[str, ...]
    """Empty for what the caller may not know of."""
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {'.'.join(self.path)}".rstrip() + f" ({self.reason})"


class CascadePlan(Struct, frozen=True, rename="kebab"):
    """What a cascade would drop."""

    namespaces: int = 0
    """Without the one that it begins with."""
    tables: int = 0
    generic_tables: int = 0
    views: int = 0
    policies: int = 0
    purges_under_way: int = 0
    """Tables that are gone already, whose files are still being deleted."""
    in_the_way: tuple[InTheWay, ...] = ()
    """The first of those that are."""


class Weighed(Struct, frozen=True):
    """A plan, and what it rests on."""

    plan: CascadePlan
    state: State
    """Where all of it was found."""
    denied: AccessDenied | None = None
    """The first thing that the caller may not do."""


async def weigh(catalog: OpenCatalog, caller: Caller, root: Namespace, *, is_purging: bool) -> Weighed:
    """Look at all that is below `root`, as it is now. That the caller may drop the root was seen before."""
    state = await catalog.read()
    counts = dict.fromkeys(Kind, 0)
    found: list[InTheWay] = []
    denied: AccessDenied | None = None
    async for thing in walk_contents(state, root, *_EVERYTHING):
        counts[thing.kind] += 1
        try:
            operation, target = await _single_drop(catalog, state, thing, is_purging=is_purging)
            await catalog.authorize(state, caller, operation, target)
        except AccessDenied as error:
            denied = denied or error
            missing = ", ".join(sorted({each.privilege for each in error.decision.missing}))
            _add(found, thing.kind, thing.path, f"lacks {missing}" if missing else error.message)
            continue
        except NotFound as error:
            # Where existence is hidden the refusal is behind this.
            if isinstance(error.__cause__, AccessDenied):
                denied = denied or error.__cause__
                _add(found, thing.kind, (), "may not be dropped by this caller")
            continue
        if thing.kind is Kind.POLICY and (outside := await _find_outside(catalog, state, thing, root)):
            _add(found, thing.kind, thing.path, f"attached to {outside}, which would stay")
    plan = CascadePlan(
        namespaces=counts[Kind.NAMESPACE],
        tables=counts[Kind.TABLE],
        generic_tables=counts[Kind.GENERIC_TABLE],
        views=counts[Kind.VIEW],
        policies=counts[Kind.POLICY],
        purges_under_way=len(await load_tombstones_below(state, root)),
        in_the_way=tuple(found),
    )
    return Weighed(plan, state, denied)


async def load_tombstones_below(state: State, root: Namespace) -> list[Tombstone]:
    """Of tables that were below `root` and whose files are to go."""
    found: list[Tombstone] = []
    start = IDS
    while True:
        entries = await state.scan(PURGES, start=start, limit=_CHUNK)
        loaded = await state.load_many(TOMBSTONE, [ObjRef.unpack(value).id for _, value in entries])
        found += [each for each in loaded if _is_below(each.path[:-1], root) and not each.is_given_up]
        if len(entries) < _CHUNK:
            return found
        start = after(entries[-1][0])


def _is_below(namespace: Namespace, root: Namespace) -> bool:
    return namespace[: len(root)] == root


def _add(found: list[InTheWay], kind: Kind, path: tuple[str, ...], reason: str) -> None:
    if len(found) < _MOST_NAMED:
        found.append(InTheWay(kind.value, path, reason))


async def _single_drop(
    catalog: OpenCatalog, state: State, thing: Thing, *, is_purging: bool
) -> tuple[Operation, Target]:
    """What dropping this alone is, for the authorizer."""
    match thing.kind:
        case Kind.TABLE:
            return ops.PURGE_TABLE if is_purging else ops.DROP_TABLE, catalog.table(thing.name)
        case Kind.GENERIC_TABLE:
            return ops.DROP_GENERIC_TABLE, catalog.generic_table(thing.name)
        case Kind.VIEW:
            return ops.DROP_VIEW, catalog.view(thing.name)
        case Kind.POLICY:
            chosen = await choose_operation(state, thing.name, ops.DROP_POLICY, ops.DROP_RESTRICTION)
            return chosen, catalog.policy(thing.name)
        case Kind.NAMESPACE:
            return ops.DROP_NAMESPACE, catalog.namespace(thing.path)


async def _find_outside(catalog: OpenCatalog, state: State, policy: Thing, root: Namespace) -> str:
    """Something that a policy is attached to and that stays; empty when there is nothing."""
    if not root:
        return ""
    ref = await require_policy_ref(state, policy.name)
    (entity,) = await state.load_many(POLICY, [ref.id])
    for mapping in await load_mappings(state, policy_prefix(entity.id)):
        match await find_target_by_id(state, catalog.target(), mapping):
            case CatalogTarget():
                return "the catalog"
            case NamespaceTarget() as target if not _is_below(target.path, root):
                return f"namespace {target.name}"
            case TableTarget() as target if not _is_below(target.path.namespace, root):
                return f"table {target.name}"
            case _:
                # Below the root, or dropped already.
                continue
    return ""
