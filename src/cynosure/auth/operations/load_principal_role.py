"""Look at a principal role."""

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PrincipalRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.principals import require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalRoleTarget


async def load_principal_role(identities: Identities, caller: Caller, name: str) -> PrincipalRoleEntity:
    """The principal role of this name; `NoSuchPrincipalRole` when there is none."""
    state = await identities.read(caller.realm)
    await identities.authorize(caller, ops.LOAD_PRINCIPAL_ROLE, PrincipalRoleTarget(name), view=state)
    return (await require_role(state, name)).entity
