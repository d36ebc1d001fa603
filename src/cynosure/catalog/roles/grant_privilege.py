"""Grant a privilege on something in a catalog to a catalog role."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import commit_role
from cynosure.catalog.roles.granting import prepare_grant
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.catalog.roles.securables import Grant, check_grantable, target_of
from cynosure.persistence.commit import Base, Prepared, View


async def grant_privilege(catalog: OpenCatalog, caller: Caller, role: str, grant: Grant) -> None:
    """Grant it; nothing changes when it is so already."""
    check_grantable(grant)
    target = target_of(catalog, grant)

    async def prepare(view: View, found: FoundRole, main: Base) -> Prepared[None]:
        return await prepare_grant(catalog, view, found, main, target, grant, is_held=True)

    operation = OPERATIONS[f"grant-on-{grant.kind}"]
    await commit_role(catalog, caller, operation, role, prepare, NOTHING, targets=(target,))
