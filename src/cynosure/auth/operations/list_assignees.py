"""The principals that were given a principal role."""

from cynosure.auth.caller import Caller
from cynosure.auth.identities import Identities
from cynosure.auth.operations.list_principals import PrincipalPage
from cynosure.auth.principals import assigned_id, assignees_prefix, load_principals_in, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalRoleTarget
from cynosure.persistence.listing import Paging, list_paged

_ALL = Paging()


async def list_assignees(
    identities: Identities, caller: Caller, name: str, paging: Paging = _ALL
) -> PrincipalPage:
    """The principals in the order of their making."""
    state = await identities.read(caller.realm)
    await identities.authorize(caller, ops.LIST_ASSIGNEES, PrincipalRoleTarget(name), view=state)
    role = (await require_role(state, name)).entity
    page = await list_paged(
        identities.committer(caller.realm),
        identities.persistence.page_tokens,
        index="assignments",
        prefix=assignees_prefix(role.id),
        paging=paging,
    )
    principals = await load_principals_in(page.state, [assigned_id(key) for key, _ in page.entries])
    return PrincipalPage(principals, page.next_token)
