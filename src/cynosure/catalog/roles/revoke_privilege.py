"""Take a privilege on something in a catalog from a catalog role.

Must not break: somebody can always manage a catalog, so `catalog_admin` keeps the right to manage access.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.entities import CATALOG_ADMIN
from cynosure.auth.errors import BuiltIn
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.auth.rbac.privileges import Privilege
from cynosure.auth.receipts import NOTHING
from cynosure.auth.targets import CatalogRoleTarget
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role
from cynosure.catalog.roles.granting import prepare_grant
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.catalog.roles.securables import Grant, check_grantable, target_of
from cynosure.persistence.commit import Base, Prepared, View


async def revoke_privilege(catalog: OpenCatalog, caller: Caller, role: str, grant: Grant) -> None:
    """Revoke it; nothing changes when it is so already."""
    check_grantable(grant)
    is_management = grant.kind == "catalog" and grant.privilege is Privilege.CATALOG_MANAGE_ACCESS
    target = target_of(catalog, grant)

    async def prepare(view: View, found: FoundRole, main: Base) -> Prepared[None]:
        if role == CATALOG_ADMIN and is_management:
            raise BuiltIn(
                "Nobody could manage the catalog any more",
                field="privilege",
                fix=f"Leave it to {CATALOG_ADMIN}, and take that role from who should not have it.",
                name=role,
            )
        return await prepare_grant(catalog, view, found, main, target, grant, is_held=False)

    targets = (target, CatalogRoleTarget(catalog.entity.id, role))
    operation = OPERATIONS[f"revoke-on-{grant.kind}"]
    await commit_role(catalog, caller, operation, role, prepare, NOTHING, targets=targets)
