"""Replace the properties of a principal."""

from collections.abc import Mapping

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.changes import change_principal, require_version
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_properties
from cynosure.auth.rbac import operations as ops


async def update_principal(
    identities: Identities, caller: Caller, name: str, version: int, properties: Mapping[str, str]
) -> PrincipalEntity:
    """Replace them if the principal still has this version; `Conflict` when it has another."""
    wanted = check_properties(properties)

    def apply(entity: PrincipalEntity) -> PrincipalEntity:
        require_version(entity, version)
        return structs.replace(entity, properties=wanted)

    return await change_principal(
        identities, caller, ops.UPDATE_PRINCIPAL, name, apply, kind="principal-updated"
    )
