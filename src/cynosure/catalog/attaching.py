"""What attaching a policy and detaching it have in common: who may, what it is about, what the feed says.

And who may have a filter ask a mapping table.

Must not break: who lacks the right is refused as that; what is missing, or cannot have a policy, is said only
to those who may know of it.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.require import AccessDenied
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.errors import NoSuchNamespace, NoSuchTable, NoSuchTarget, NotAttachable
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Identifier, generic_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import MAPPINGS, target_key
from cynosure.catalog.policies.placing import load_target_id
from cynosure.catalog.policies.types import Attachable, Surroundings
from cynosure.catalog.policy_types import choose_operation
from cynosure.catalog.resolve import require_policy_ref
from cynosure.catalog.restrictions.types import find_asked
from cynosure.catalog.targets import GenericTableTarget, TableTarget, ViewTarget
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import Change, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.spi import ObjId


async def authorize_mapping(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    operations: tuple[Operation, Operation],
    path: Identifier,
    target: Attachable,
) -> Guards:
    """What the permission rests on to do the first, or to a restriction the second, of two operations."""
    operation = await choose_operation(view, path, *operations)
    try:
        guards = await catalog.authorize(view, caller, operation, catalog.policy(path), target)
        # An authorizer that has seen enough need not walk to the end; what is missing is said here.
        await require_policy_ref(view, path)
        await load_target_id(view, target)
    except (NoSuchTable, NoSuchNamespace) as error:
        # The cause is the refusal that is hidden behind it, for the audit.
        raise await _refusal_of(catalog, caller, view, target) from error.__cause__
    return guards


async def authorize_asking(catalog: OpenCatalog, caller: Caller, view: View, parsed: object) -> Guards:
    """Refuse content that asks a mapping table to who may not grant on that.

    The gateway reads it with its own rights, and which rows a filter leaves tells what is in it: who manages
    access to another namespace only would be told what nobody granted them.
    """
    mapped = find_asked(parsed)
    if mapped is None:
        return {}
    *namespace, name = mapped.table
    table = catalog.table(Identifier(tuple(namespace), name))
    return await catalog.authorize(view, caller, OPERATIONS["grant-on-table"], table)


async def _refusal_of(
    catalog: OpenCatalog, caller: Caller, view: View, target: Attachable
) -> NotFound | NotAttachable:
    """The error for a target that is not there, or is something that no policy can be attached to."""
    if isinstance(target, TableTarget):
        others: tuple[tuple[bytes, ViewTarget | GenericTableTarget, str], ...] = (
            (view_key(target.path), catalog.view(target.path), "view"),
            (generic_key(target.path), catalog.generic_table(target.path), "generic table"),
        )
        for key, other, kind in others:
            if await view.find("names", key) is not None and await _is_seen(catalog, caller, view, other):
                return NotAttachable(
                    "A policy cannot be attached to such a thing",
                    field="target",
                    fix="Attach it to a catalog, a namespace or an Iceberg table.",
                    kind=kind,
                    target=target.name,
                )
    return NoSuchTarget(f"{target.kind} {target.name}")


async def _is_seen(
    catalog: OpenCatalog, caller: Caller, view: View, target: ViewTarget | GenericTableTarget
) -> bool:
    operation = ops.VIEW_EXISTS if isinstance(target, ViewTarget) else ops.TABLE_EXISTS
    try:
        await catalog.authorize(view, caller, operation, target)
    except (NotFound, AccessDenied):
        return False
    return True


def mapping_change(
    kind: str,
    path: Identifier,
    policy: PolicyEntity,
    target: Attachable | None,
    target_id: ObjId,
    *,
    before: bytes | None = None,
    after: bytes | None = None,
) -> Change:
    """A line of the feed about a policy and its target, which is `None` when that is dropped."""
    detail = {
        "id": policy.id,
        "path": (*path.namespace, path.name),
        "policy_type": policy.type,
        "on_kind": "" if target is None else target.kind,
        "on": str(target_id) if target is None else target.name,
    }
    key = target_key(target_id, policy.id)
    return Change(kind=kind, index=MAPPINGS, key=key, before=before, after=after, detail=raw_detail(detail))


def surroundings_of(catalog: OpenCatalog) -> Surroundings:
    """What types of policies may look at."""
    shared = catalog.shared
    return Surroundings(catalog.realm, shared.persistence, shared.tables)
