"""Give a principal a principal role."""

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.identities import Identities
from cynosure.auth.principals import assignment_keys, require_principal, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.auth.targets import PrincipalRoleTarget
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Prepared, View


async def assign_principal_role(identities: Identities, caller: Caller, principal: str, role: str) -> None:
    """Assign it; nothing when the principal has it. `BadInput` when tokens say who has the role."""

    async def prepare(view: View) -> Prepared[None]:
        grantee = (await require_principal(view, principal)).entity
        entity = (await require_role(view, role)).entity
        if entity.is_federated:
            raise BadInput(
                "A federated role cannot be assigned",
                field="principalRole",
                fix="Give the account the group that stands for the role, where its tokens come from.",
                role=role,
            )
        keys = assignment_keys(grantee.id, entity.id)
        if await view.find("assignments", keys[0]) is not None:
            return Prepared(None)
        change = told("principal-role-assigned", entity, principal=principal)
        return Prepared(None, {"assignments": dict.fromkeys(keys, b"")}, feed=[change])

    await identities.commit(caller, ops.ASSIGN_PRINCIPAL_ROLE, (PrincipalRoleTarget(role),), prepare, NOTHING)
