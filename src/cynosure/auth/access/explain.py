"""Why an operation is allowed or refused to a principal, and what would allow it.

Names are turned into operations and targets by who knows them; this asks the authorizer, as enforcement does,
and tells what it said.

Must not break: the decision is the authorizer's. Nothing here decides.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller, Identity
from cynosure.auth.ports import Authorizer, GrantStep, Missing, Target
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.rbac.privileges import GRANTABLE, NONE, SATISFIED_BY, Privilege, members, set_of
from cynosure.auth.standing import Standings
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId, RealmId

_GRANTABLE: Final = {kind: set_of(privileges) for kind, privileges in GRANTABLE.items()}


class Need(Struct, frozen=True):
    """What the operation needs of one target."""

    target_kind: str
    target: str
    privileges: tuple[str, ...]


class Remedy(Struct, frozen=True):
    """Privileges of which one, granted there to a role of the principal, would meet a missing one."""

    missing: str
    privileges: tuple[str, ...]
    """The one that is missing first, if it can be granted there."""
    on_kind: str
    on: str


class Restriction(Struct, frozen=True):
    """A policy that hides something of a table from the principal."""

    policy: str
    type: str
    on_kind: str
    on: str
    """What it is attached to: the table or something above it."""
    effect: str
    """What it shows, without the constants of a filter."""


class Explanation(Struct, frozen=True):
    """A decision with everything that led to it."""

    is_allowed: bool
    principal: str
    roles: tuple[str, ...]
    """The principal roles that are active."""
    operation: str
    needs: tuple[Need, ...]
    path: tuple[GrantStep, ...]
    """Per need that is met, the grant that meets it."""
    missing: tuple[Missing, ...]
    remedies: tuple[Remedy, ...]
    reason: str
    """Why it is so when it is not for privileges."""
    restrictions: tuple[Restriction, ...] = ()
    """What of the table the principal does not see."""


def get_operation(name: str) -> Operation:
    """The operation of this name; `BadInput` when there is none."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise BadInput(
            "There is no such operation",
            field="operation",
            fix=f"Use one of: {', '.join(sorted(OPERATIONS))}.",
            operation=name[:100],
        )
    return operation


async def load_subject(
    standings: Standings, realm: RealmId, principal: ObjId, external_roles: tuple[str, ...] = ()
) -> Caller:
    """The principal as the caller it would be with all its roles active.

    `external_roles`: those that another issuer's token would add; only such a token knows them.
    """
    identity = Identity(principal, external_roles=external_roles)
    standing = (await standings.load(realm, identity)).standing
    roles = tuple(role.name for role in standing.roles)
    return Caller(standing.principal.name, realm, identity=identity, roles=roles)


async def explain_access(
    authorizer: Authorizer,
    subject: Caller,
    operation: Operation,
    targets: tuple[Target, ...],
    view: View | None,
    *,
    catalog: str = "",
) -> Explanation:
    """What the authorizer says about `subject`, and why. `catalog`: name of the one that targets are in."""
    decision = await authorizer.decide(subject, operation, targets, view, explain=True)
    needs = operation.needs if len(operation.needs) == len(targets) else operation.needs * len(targets)
    return Explanation(
        is_allowed=decision.is_allowed,
        principal=subject.principal,
        roles=subject.roles,
        operation=operation.name,
        needs=tuple(
            Need(target.kind, target.name, tuple(each.name for each in privileges))
            for target, privileges in zip(targets, needs, strict=True)
        ),
        path=tuple(_with_catalog(step, catalog) for step in decision.path),
        missing=decision.missing,
        remedies=tuple(
            remedy
            for target in targets
            for each in decision.missing
            if (each.target_kind, each.target) == (target.kind, target.name)
            for remedy in find_remedies(Privilege[each.privilege], target, catalog)
        ),
        reason=decision.reason,
    )


def find_remedies(need: Privilege, target: Target, catalog: str = "") -> Iterator[Remedy]:
    """Grants of which each would meet the need: on the target, on what is above it, on its catalog."""
    suffices = SATISFIED_BY[need]
    for kind, name in _places(target, catalog):
        possible = list(members(suffices & _GRANTABLE.get(kind, NONE)))
        if possible:
            # The smallest first: what is asked for, then what includes it.
            possible.sort(key=lambda each: (each is not need, each))
            yield Remedy(need.name, tuple(each.name for each in possible), kind, name)
    if suffices & Privilege.SERVICE_MANAGE_ACCESS.bit:
        yield Remedy(need.name, (Privilege.SERVICE_MANAGE_ACCESS.name,), "realm", "")


def _places(target: Target, catalog: str) -> list[tuple[str, str]]:
    """Where something can be granted that counts for the target, innermost first."""
    if target.catalog is None:
        return []
    places, depth, own = [("catalog", catalog)], 0, (target.kind, target.name)
    if own[0] not in ("catalog", "catalog-role") and own != ("namespace", ""):
        while places[-1] != own:
            places.append(target.place(depth))
            depth += 1
    return places[::-1]


def _with_catalog(step: GrantStep, catalog: str) -> GrantStep:
    """The authorizer knows catalogs by id; people want their names."""
    if step.on_kind == "catalog" and not step.on:
        return msgspec.structs.replace(step, on=catalog)
    return step
