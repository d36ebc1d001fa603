"""What is granted to a catalog role.

A page holds everything that is granted on some securables: its size counts these.
"""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import GRANTS, THE_CATALOG, by_role_prefix, second_id, unpack_privileges
from cynosure.auth.rbac.privileges import members
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import read_role
from cynosure.catalog.roles.securables import Grant, describe
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.listing import Paging, list_paged

_ALL = Paging()


class GrantPage(Struct, frozen=True):
    """Grants, and how to go on."""

    grants: Sequence[Grant]
    next_token: str | None = None


async def list_grants(catalog: OpenCatalog, caller: Caller, role: str, paging: Paging = _ALL) -> GrantPage:
    """Its grants, by the names that things have now. Grants on what is dropped are not shown."""
    _, found = await read_role(catalog, caller, ops.LIST_GRANTS, role)
    page = await list_paged(
        catalog.grants,
        catalog.shared.persistence.page_tokens,
        index=GRANTS,
        prefix=by_role_prefix(found.entity.id),
        paging=paging,
    )
    main = await catalog.read()
    grants: list[Grant] = []
    for key, value in page.entries:
        securable = second_id(key)
        name_key = None
        if securable != THE_CATALOG:
            name_key = await main.find("ids", encode_id_key(securable))
            if name_key is None:
                continue
        grants += describe(name_key, list(members(unpack_privileges(value))))
    return GrantPage(grants, page.next_token)
