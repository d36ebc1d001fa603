"""Take a principal role from a principal. Effective with its next request, on every server."""

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.entities import ROOT, SERVICE_ADMIN
from cynosure.auth.errors import BuiltIn
from cynosure.auth.identities import Identities
from cynosure.auth.principals import assignment_keys, require_principal, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.auth.targets import PrincipalRoleTarget, PrincipalTarget
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import Prepared, View


async def revoke_principal_role(identities: Identities, caller: Caller, principal: str, role: str) -> None:
    """Revoke it; `NotFound` when the principal does not have it. `BuiltIn` for what `root` must keep."""

    async def prepare(view: View) -> Prepared[None]:
        grantee = (await require_principal(view, principal)).entity
        entity = (await require_role(view, role)).entity
        if (principal, role) == (ROOT, SERVICE_ADMIN):
            raise BuiltIn(
                "The principal root keeps the role service_admin",
                field="principalRole",
                fix="Leave it: without it nobody could manage the realm.",
            )
        keys = assignment_keys(grantee.id, entity.id)
        if await view.find("assignments", keys[0]) is None:
            raise NotFound("The principal does not have this role", principal=principal, role=role)
        change = told("principal-role-revoked", entity, principal=principal)
        return Prepared(None, {"assignments": dict.fromkeys(keys)}, feed=[change])

    targets = (PrincipalRoleTarget(role), PrincipalTarget(principal))
    await identities.commit(caller, ops.REVOKE_PRINCIPAL_ROLE, targets, prepare, NOTHING)
