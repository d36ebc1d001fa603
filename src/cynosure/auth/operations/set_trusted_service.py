"""Say whether a principal is a service that may act on behalf of others."""

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.changes import change_principal
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.rbac import operations as ops


async def set_trusted_service(
    identities: Identities, caller: Caller, name: str, *, is_trusted: bool
) -> PrincipalEntity:
    """Trust it, or trust it no more: tokens it got for others are refused from the next request on."""

    def apply(entity: PrincipalEntity) -> PrincipalEntity:
        return structs.replace(entity, is_trusted_service=is_trusted)

    return await change_principal(
        identities,
        caller,
        ops.TRUST_SERVICE,
        name,
        apply,
        kind="principal-trust-changed",
        is_trusted=is_trusted,
    )
