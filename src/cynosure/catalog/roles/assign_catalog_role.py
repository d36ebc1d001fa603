"""Give a catalog role to a principal role, whose principals then may what it may."""

from cynosure.auth.caller import Caller
from cynosure.auth.principals import read_principals, require_role
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import ASSIGNMENTS, change_assignment, usage_key
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role, role_change
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.persistence.commit import Base, Prepared, View


async def assign_catalog_role(catalog: OpenCatalog, caller: Caller, role: str, principal_role: str) -> None:
    """Assign it; nothing changes when it is so already. `NoSuchPrincipalRole` when there is none."""

    async def prepare(view: View, found: FoundRole, main: Base) -> Prepared[None]:
        principals = await read_principals(catalog.shared.persistence, catalog.realm)
        user = (await require_role(principals.state, principal_role)).entity
        role_id = found.entity.id
        changes = await change_assignment(view, user.id, role_id, is_assigned=True)
        key = usage_key(user.id, role_id)
        told = role_change("catalog-role-assigned", found, ASSIGNMENTS, key, principal_role=principal_role)
        guards = {principals.ref.key: principals.ref.head}
        return Prepared(None, changes, feed=[told] if changes else [], guards=guards)

    await commit_role(catalog, caller, ops.ASSIGN_CATALOG_ROLE, role, prepare, NOTHING)
