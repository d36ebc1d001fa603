"""Replace the properties of a principal role."""

from collections.abc import Mapping

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.changes import change_role, require_version
from cynosure.auth.entities import PrincipalRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_properties
from cynosure.auth.rbac import operations as ops


async def update_principal_role(
    identities: Identities, caller: Caller, name: str, version: int, properties: Mapping[str, str]
) -> PrincipalRoleEntity:
    """Replace them if the role still has this version; `Conflict` when it has another."""
    wanted = check_properties(properties)

    def apply(entity: PrincipalRoleEntity) -> PrincipalRoleEntity:
        require_version(entity, version)
        return structs.replace(entity, properties=wanted)

    return await change_role(
        identities, caller, ops.UPDATE_PRINCIPAL_ROLE, name, apply, kind="principal-role-updated"
    )
