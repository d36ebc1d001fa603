"""Whether something may be done, and if not, what the refusal may tell.

By default a thing that does not exist is 404 to everyone, and one that does is 403 to those who lack the
right. Where existence is hidden (`auth.hide_existence`), a caller who could not even list a thing is told
that it does not exist, in the very words; and as much is asked of the authorizer for what is missing as for
what is there (`targets.Veiled`), so that the work does not tell either. The refusal is kept as the error's
cause, for the audit.

What hiding cannot hide: whoever may create something learns that a name or location is taken, because it
cannot be given twice. That right includes listing its own kind in the same place (`rbac/privileges.py`), so
all that it tells beyond is that a view has the name of the table, or a table that of the view; a location
that is taken is refused without saying by whom.

Must not break: with hidden existence, missing and unseen things take the same way through `_permit_veiled`.
"""

from types import MappingProxyType
from typing import Final, TypeGuard

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer, Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import AccessDenied, require_allowed
from cynosure.auth.targets import CatalogRoleTarget
from cynosure.catalog.errors import NoSuchCatalogRole
from cynosure.catalog.filtering import Sight
from cynosure.catalog.guards import Guards
from cynosure.catalog.targets import CatalogTarget, InCatalog, NamespaceTarget, Veiled
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import View

_SEE: Final = MappingProxyType(
    {
        "namespace": ops.NAMESPACE_EXISTS,
        "table": ops.TABLE_EXISTS,
        "view": ops.VIEW_EXISTS,
        "policy": ops.POLICY_EXISTS,
    }
)
"""What one must be allowed to do to know of a thing."""


async def require_permitted(
    authorizer: Authorizer,
    caller: Caller,
    operation: Operation,
    targets: tuple[Target, ...],
    view: View,
    *,
    is_hiding: bool,
) -> Guards:
    """Nothing when it may be done, but the heads that rests on; else a refusal."""
    if is_hiding and not caller.is_operator:
        return await _permit_veiled(authorizer, caller, operation, targets, view)
    try:
        return await require_allowed(authorizer, caller, operation, targets, view)
    except AccessDenied:
        # An authorizer need not walk to what it refuses anyway.
        for target in targets:
            await require_existing(target, view)
        raise


async def find_permission(
    authorizer: Authorizer,
    caller: Caller,
    operation: Operation,
    targets: tuple[Target, ...],
    view: View,
    *,
    is_hiding: bool,
) -> Guards | None:
    """The heads that a permission rests on; `None` when there is no permission."""
    if caller.is_operator:
        return {}
    asked = tuple(_veil(each) for each in targets) if is_hiding else targets
    decision = await authorizer.decide(caller, operation, asked, view)
    return decision.guards if decision.is_allowed else None


async def require_existing(target: Target, view: View) -> None:
    """Raise the error of a target that does not exist."""
    if _can_be_missing(target):
        await target.locate(view)


async def _permit_veiled(
    authorizer: Authorizer, caller: Caller, operation: Operation, targets: tuple[Target, ...], view: View
) -> Guards:
    asked = tuple(_veil(each) for each in targets)
    decision = await authorizer.decide(caller, operation, asked, view)
    if decision.is_allowed:
        return decision.guards
    denied = AccessDenied(caller, operation, targets, decision)
    for target in targets:
        unseen = await _find_unseen(authorizer, caller, target, view)
        if unseen is not None:
            raise unseen from denied
    for target in targets:
        await require_existing(target, view)
    raise denied


async def _find_unseen(authorizer: Authorizer, caller: Caller, target: Target, view: View) -> NotFound | None:
    """The error for a target that the caller may not know of."""
    if _can_be_missing(target):
        see = await authorizer.decide(caller, _SEE[target.kind], (Veiled(target),), view)
        is_seen = see.is_allowed
        if isinstance(target, NamespaceTarget) and not is_seen:
            # It leads to something that is seen, and lists show it where they are filtered.
            is_seen = await Sight(authorizer, caller, target.catalog, view).leads_somewhere(target.path)
        return None if is_seen else target.no_such()
    if isinstance(target, CatalogRoleTarget):
        catalog = CatalogTarget(target.catalog, "")
        see = await authorizer.decide(caller, ops.LIST_CATALOG_ROLES, (catalog,), view)
        return None if see.is_allowed else NoSuchCatalogRole(target.name)
    return None


def _veil(target: Target) -> Target:
    return Veiled(target) if _can_be_missing(target) else target


def _can_be_missing(target: Target) -> TypeGuard[InCatalog]:
    """The root of a catalog is always there."""
    return isinstance(target, InCatalog) and not (isinstance(target, NamespaceTarget) and not target.path)
