"""Grant a privilege on something in a catalog to a catalog role.

Must not break: what it is granted on exists in the very state of the catalog that the commit is guarded by.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.grants import GRANTS, change_grant, securable_key
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role, role_change
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.catalog.roles.securables import Grant, check_grantable, load_securable_id, target_of
from cynosure.persistence.commit import Base, Prepared, View


async def grant_privilege(catalog: OpenCatalog, caller: Caller, role: str, grant: Grant) -> None:
    """Grant it; nothing changes when it is so already."""
    check_grantable(grant)
    target = target_of(catalog, grant)

    async def prepare(view: View, found: FoundRole, main: Base) -> Prepared[None]:
        securable = await load_securable_id(main.state, target)
        role_id = found.entity.id
        changes = await change_grant(view, role_id, securable, add=grant.privilege.bit)
        told = role_change(
            "catalog-role-granted",
            found,
            GRANTS,
            securable_key(securable, role_id),
            privilege=grant.privilege.name,
            on_kind=grant.kind,
            on=grant.on or catalog.entity.name,
        )
        guards = {} if grant.kind == "catalog" else {main.ref.key: main.ref.head}
        return Prepared(None, changes, feed=[told] if changes else [], guards=guards)

    operation = OPERATIONS[f"grant-on-{grant.kind}"]
    await commit_role(catalog, caller, operation, role, prepare, targets=(target,))
