"""Why a principal may or may not do something: names made into what the authorizer is asked about.

Must not break: an explanation tells no more than the asker may know. Other principals are explained only to
those who may manage them, and where existence is hidden, what the asker cannot see does not exist here.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, structs

from cynosure.auth.access.explain import (
    Explanation,
    Restriction,
    explain_access,
    get_operation,
    load_subject,
)
from cynosure.auth.caller import Caller
from cynosure.auth.errors import NoSuchPrincipal
from cynosure.auth.identities import Identities
from cynosure.auth.ports import Target
from cynosure.auth.principals import find_principal
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation, commit_table_operation
from cynosure.auth.targets import CatalogRoleTarget, PrincipalRoleTarget, PrincipalTarget, RealmTarget
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.names import Identifier, Namespace, check_name, check_namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.restrictions.describing import describe_restrictions
from cynosure.catalog.restrictions.rule import Asked
from cynosure.catalog.seeing import find_permission, require_existing
from cynosure.catalog.targets import (
    AnyTableTarget,
    GenericTableTarget,
    InCatalog,
    NamespaceTarget,
    PolicyTarget,
    TableTarget,
    ViewTarget,
)
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.spi import RealmId

_SEE: Final[Mapping[type[Target], Operation]] = MappingProxyType(
    {
        NamespaceTarget: ops.NAMESPACE_EXISTS,
        TableTarget: ops.TABLE_EXISTS,
        GenericTableTarget: ops.TABLE_EXISTS,
        AnyTableTarget: ops.TABLE_EXISTS,
        ViewTarget: ops.VIEW_EXISTS,
        PolicyTarget: ops.POLICY_EXISTS,
    }
)
_ON_ANY_TABLE: Final = frozenset({"grant-on-table", "revoke-on-table"})
"""What can be done to generic tables as well as to tables."""
_ANSWERED: Final = (ops.LOAD_TABLE, ops.PLAN_SCAN)
"""What is answered with restrictions, unless they hide the table."""
_OF_REALM: Final = frozenset({"realm", "principal", "principal-role"})


class Place(Struct, frozen=True, kw_only=True):
    """What an operation is about, by name; only what the operation needs is looked at."""

    catalog: str = ""
    namespace: Namespace = ()
    table: str = ""
    view: str = ""
    policy: str = ""
    principal: str = ""
    principal_role: str = ""
    catalog_role: str = ""


class Question(Struct, frozen=True, kw_only=True):
    """May somebody do something?"""

    operation: str
    """As in the log: `load-table`, `grant-on-catalog` …"""
    target: Place = Place()
    secondary: Place | None = None
    """Of operations with two targets, the second one; left out, its names are taken from the first."""
    principal: str | None = None
    """Left out: who asks, with the roles that are active."""
    updates: tuple[str, ...] = ()
    """Of `commit-table`, the actions of its updates."""


async def explain(
    directory: Directory, identities: Identities, caller: Caller, question: Question
) -> Explanation:
    """The decision, and what it rests on or what is missing."""
    operation = get_operation(question.operation)
    if question.updates:
        if operation is not ops.COMMIT_TABLE:
            raise BadInput("Only commits of tables have updates", field="updates", fix="Leave them out.")
        operation = commit_table_operation(question.updates)
    subject = await _load_subject(identities, caller, question.principal)
    places = (question.target, question.secondary or question.target)
    catalog: OpenCatalog | None = None
    view: View | None = None
    if not _OF_REALM.issuperset(operation.kinds):
        name = places[0].catalog or places[1].catalog
        if not name or places[1].catalog not in ("", name):
            raise BadInput("An operation is about one catalog", field="target.catalog", fix="Name it.")
        catalog = await directory.open_for(caller, name)
        view = await catalog.read()
    targets = tuple(
        _target_of(operation, kind, place, caller.realm, catalog)
        for kind, place in zip(operation.kinds, places, strict=False)
    )
    if catalog is not None and view is not None:
        for target in targets:
            await _require_seen(catalog, caller, target, view)
    found = await explain_access(
        identities.authorizer,
        subject,
        operation,
        targets,
        view,
        catalog="" if catalog is None else catalog.entity.name,
    )
    if catalog is None or view is None or not found.is_allowed:
        return found
    return await _with_restrictions(catalog, view, subject, operation, targets, found)


async def _with_restrictions(
    catalog: OpenCatalog,
    view: View,
    subject: Caller,
    operation: Operation,
    targets: tuple[Target, ...],
    found: Explanation,
) -> Explanation:
    """What is permitted, less what policies restrict: the same rule that enforcement asks."""
    notes: list[Restriction] = []
    for target in targets:
        if isinstance(target, TableTarget | GenericTableTarget):
            in_force = await catalog.restrictions.find(view, subject, target)
            notes += () if in_force is None else describe_restrictions(in_force)
    try:
        await catalog.restrictions.check(view, subject, operation, targets)
        for target in targets:
            if operation in _ANSWERED and isinstance(target, TableTarget):
                await catalog.restrictions.check_answer(view, Asked(subject, operation, targets), target)
    except RestrictedByPolicy as refused:
        found = structs.replace(found, is_allowed=False, reason=refused.decision.reason)
    return structs.replace(found, restrictions=tuple(notes))


async def _load_subject(identities: Identities, caller: Caller, name: str | None) -> Caller:
    if name is None:
        if caller.is_operator:
            raise BadInput("Nobody is named to be explained", field="principal", fix="Name a principal.")
        return caller
    await identities.authorize(caller, ops.EXPLAIN_ACCESS, PrincipalTarget(name))
    principal = await find_principal(identities.persistence, caller.realm, name)
    if principal is None:
        raise NoSuchPrincipal(name)
    return await load_subject(identities.standings, caller.realm, principal.id)


async def _require_seen(catalog: OpenCatalog, caller: Caller, target: Target, view: View) -> None:
    see = _SEE.get(type(target))
    if see is None or target.name == "":
        return
    if catalog.is_hiding:
        seen = await find_permission(catalog.shared.authorizer, caller, see, (target,), view, is_hiding=True)
        if seen is None and isinstance(target, InCatalog):
            raise target.no_such()
    # An authorizer that has seen enough need not walk to the end; what is missing is said here.
    await require_existing(target, view)


def _target_of(
    operation: Operation, kind: str, place: Place, realm: RealmId, catalog: OpenCatalog | None
) -> Target:
    match kind:
        case "realm":
            return RealmTarget(realm)
        case "principal":
            return PrincipalTarget(_named(place.principal, "principal"))
        case "principal-role":
            return PrincipalRoleTarget(_named(place.principal_role, "principalRole"))
    assert catalog is not None  # noqa: S101 - opened for every other kind
    match kind:
        case "catalog":
            return catalog.target()
        case "catalog-role":
            return CatalogRoleTarget(catalog.entity.id, _named(place.catalog_role, "catalogRole"))
        case "namespace" if not place.namespace:
            return catalog.namespace(())
    namespace = check_namespace(place.namespace, field="target.namespace")
    match kind:
        case "namespace":
            return catalog.namespace(namespace)
        case "table":
            return _table_of(operation, catalog, Identifier(namespace, _named(place.table, "table")))
        case "policy":
            return catalog.policy(Identifier(namespace, _named(place.policy, "policy")))
        case _:
            return catalog.view(Identifier(namespace, _named(place.view, "view")))


def _table_of(operation: Operation, catalog: OpenCatalog, name: Identifier) -> Target:
    if operation.name in _ON_ANY_TABLE:
        return catalog.any_table(name)
    return catalog.generic_table(name) if "generic-table" in operation.name else catalog.table(name)


def _named(name: str, field: str) -> str:
    return check_name(name, field=f"target.{field}")
