"""The principal roles that have a catalog role."""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PrincipalRoleEntity
from cynosure.auth.principals import load_roles_by_id
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import ASSIGNMENTS, assignee_prefix, second_id
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import read_role
from cynosure.persistence.listing import Paging, list_paged

_ALL = Paging()


class AssigneePage(Struct, frozen=True):
    """Principal roles, and how to go on."""

    roles: Sequence[PrincipalRoleEntity]
    next_token: str | None = None


async def list_assignees(
    catalog: OpenCatalog, caller: Caller, role: str, paging: Paging = _ALL
) -> AssigneePage:
    """Who has it, in the order they were made; those that are gone are left out."""
    _, found = await read_role(catalog, caller, ops.LIST_ASSIGNEES_OF_CATALOG_ROLE, role)
    persistence = catalog.shared.persistence
    page = await list_paged(
        catalog.grants,
        persistence.page_tokens,
        index=ASSIGNMENTS,
        prefix=assignee_prefix(found.entity.id),
        paging=paging,
    )
    ids = [second_id(key) for key, _ in page.entries]
    return AssigneePage(await load_roles_by_id(persistence, catalog.realm, ids), page.next_token)
