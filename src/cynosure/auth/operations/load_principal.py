"""Look at a principal."""

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.principals import require_principal
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalTarget


async def load_principal(identities: Identities, caller: Caller, name: str) -> PrincipalEntity:
    """The principal of this name; `NoSuchPrincipal` when there is none."""
    state = await identities.read(caller.realm)
    await identities.authorize(caller, ops.LOAD_PRINCIPAL, PrincipalTarget(name), view=state)
    return (await require_principal(state, name)).entity
