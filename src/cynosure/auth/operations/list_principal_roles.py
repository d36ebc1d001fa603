"""All principal roles of a realm."""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PRINCIPAL_ROLE, PrincipalRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.principals import ROLES_PREFIX
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.persistence.listing import Paging, list_paged
from cynosure.persistence.objects import ObjRef

_ALL = Paging()


class PrincipalRolePage(Struct, frozen=True):
    """Principal roles, and how to go on."""

    roles: list[PrincipalRoleEntity]
    next_token: str | None = None


async def list_principal_roles(
    identities: Identities, caller: Caller, paging: Paging = _ALL
) -> PrincipalRolePage:
    """The principal roles in the order of their names, all pages as of one moment."""
    await identities.authorize(caller, ops.LIST_PRINCIPAL_ROLES, RealmTarget(caller.realm))
    page = await list_paged(
        identities.committer(caller.realm),
        identities.persistence.page_tokens,
        index="names",
        prefix=ROLES_PREFIX,
        paging=paging,
    )
    ids = [ObjRef.unpack(value).id for _, value in page.entries]
    return PrincipalRolePage(await page.state.load_many(PRINCIPAL_ROLE, ids), page.next_token)
