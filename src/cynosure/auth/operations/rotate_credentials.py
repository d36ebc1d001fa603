"""Give a principal another secret; the one it has stays good beside it, so that nobody is locked out.

Tokens obtained with a secret end with it: the one before the previous is out.
"""

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.changes import prepare_principal
from cynosure.auth.credentials import (
    RECALL_CREDENTIALS,
    PrincipalWithCredentials,
    new_client_secret,
    show,
    with_secret,
)
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalTarget
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import Prepared, View


async def rotate_credentials(identities: Identities, caller: Caller, name: str) -> PrincipalWithCredentials:
    """Rotate them. `BadInput` when another issuer says who the principal is, so that it has no secret."""
    secret = new_client_secret(identities)

    def apply(entity: PrincipalEntity) -> PrincipalEntity:
        if not entity.secrets:
            raise BadInput(
                "The principal has no secret to rotate",
                field="name",
                fix="Change its credentials where its tokens come from.",
                name=name,
            )
        rotated = with_secret(identities, entity, secret, keep_previous=True)
        return structs.replace(rotated, is_rotation_required=False)

    async def prepare(view: View) -> Prepared[PrincipalWithCredentials]:
        kind = "principal-credentials-rotated"
        rotated = await prepare_principal(identities, view, name, apply, kind=kind)
        return Prepared(show(rotated.result, secret), rotated.changes, rotated.objects, rotated.feed)

    return await identities.commit(
        caller, ops.ROTATE_CREDENTIALS, (PrincipalTarget(name),), prepare, RECALL_CREDENTIALS
    )
