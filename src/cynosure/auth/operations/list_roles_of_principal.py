"""The principal roles that a principal was given."""

from cynosure.auth.caller import Caller
from cynosure.auth.identities import Identities
from cynosure.auth.operations.list_principal_roles import PrincipalRolePage
from cynosure.auth.principals import assigned_id, assignments_prefix, load_roles_in, require_principal
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalTarget
from cynosure.persistence.listing import Paging, list_paged

_ALL = Paging()


async def list_roles_of_principal(
    identities: Identities, caller: Caller, name: str, paging: Paging = _ALL
) -> PrincipalRolePage:
    """The roles in the order of their making; federated ones are told by tokens, and not listed."""
    state = await identities.read(caller.realm)
    await identities.authorize(caller, ops.LIST_ROLES_OF_PRINCIPAL, PrincipalTarget(name), view=state)
    principal = (await require_principal(state, name)).entity
    page = await list_paged(
        identities.committer(caller.realm),
        identities.persistence.page_tokens,
        index="assignments",
        prefix=assignments_prefix(principal.id),
        paging=paging,
    )
    roles = await load_roles_in(page.state, [assigned_id(key) for key, _ in page.entries])
    return PrincipalRolePage(roles, page.next_token)
