"""Take a catalog role from a principal role.

Must not break: somebody can always manage a catalog. Its `catalog_admin` cannot be taken from the last
principal role that has it. (`service_admin` is no exception: what it may is to manage the realm.)
"""

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ADMIN, PrincipalRoleEntity
from cynosure.auth.errors import BuiltIn
from cynosure.auth.principals import load_roles_in, read_principals, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import ASSIGNMENTS, assignee_prefix, change_assignment, second_id, usage_key
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role, role_change
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.persistence.commit import Base, Prepared, View
from cynosure.persistence.listing import scan_all


async def revoke_catalog_role(catalog: OpenCatalog, caller: Caller, role: str, principal_role: str) -> None:
    """Take it away; nothing changes when it is so already."""

    async def prepare(view: View, found: FoundRole, main: Base) -> Prepared[None]:
        principals = await read_principals(catalog.shared.persistence, catalog.realm)
        user = (await require_role(principals.state, principal_role)).entity
        role_id = found.entity.id
        changes = await change_assignment(view, user.id, role_id, is_assigned=False)
        if changes and role == CATALOG_ADMIN:
            await _require_other_admin(view, principals.state, found, user)
        key = usage_key(user.id, role_id)
        told = role_change("catalog-role-revoked", found, ASSIGNMENTS, key, principal_role=principal_role)
        guards = {principals.ref.key: principals.ref.head}
        return Prepared(None, changes, feed=[told] if changes else [], guards=guards)

    await commit_role(catalog, caller, ops.REVOKE_CATALOG_ROLE, role, prepare, NOTHING)


async def _require_other_admin(
    view: View, principals: View, admin: FoundRole, leaving: PrincipalRoleEntity
) -> None:
    # The scan is remembered by the view: if the other one loses the role meanwhile, this is asked again.
    entries = await scan_all(view, ASSIGNMENTS, assignee_prefix(admin.entity.id))
    others = [second_id(key) for key, _ in entries if second_id(key) != leaving.id]
    if not await load_roles_in(principals, others):
        raise BuiltIn(
            "Nobody could manage the catalog any more",
            field="principalRoleName",
            fix=f"Give {CATALOG_ADMIN} to another principal role first.",
            name=leaving.name,
        )
