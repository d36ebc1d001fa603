"""All principals of a realm."""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PRINCIPAL, PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.principals import PRINCIPALS_PREFIX
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.persistence.listing import Paging, list_paged
from cynosure.persistence.objects import ObjRef

_ALL = Paging()


class PrincipalPage(Struct, frozen=True):
    """Principals, and how to go on."""

    principals: list[PrincipalEntity]
    next_token: str | None = None


async def list_principals(identities: Identities, caller: Caller, paging: Paging = _ALL) -> PrincipalPage:
    """The principals in the order of their names, all pages as of one moment."""
    await identities.authorize(caller, ops.LIST_PRINCIPALS, RealmTarget(caller.realm))
    page = await list_paged(
        identities.committer(caller.realm),
        identities.persistence.page_tokens,
        index="names",
        prefix=PRINCIPALS_PREFIX,
        paging=paging,
    )
    found = await page.state.load_many(PRINCIPAL, [ObjRef.unpack(value).id for _, value in page.entries])
    return PrincipalPage(found, page.next_token)
