"""Replace the credentials of a principal: every earlier secret is out at once, with the tokens it gave.

Whoever does this can act as the principal afterwards, so privileges are not enough for it (`rbac/rules.py`).
"""

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.credentials import (
    RECALL_CREDENTIALS,
    PrincipalWithCredentials,
    new_client_id,
    new_client_secret,
    show,
    with_secret,
)
from cynosure.auth.entities import PRINCIPAL
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_client_id, check_client_secret
from cynosure.auth.operations.create_principal import require_free_client
from cynosure.auth.principals import client_key, principal_key, require_principal
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalTarget
from cynosure.common.secrets import Secret
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


async def reset_credentials(
    identities: Identities,
    caller: Caller,
    name: str,
    *,
    client_id: str | None = None,
    client_secret: Secret | None = None,
) -> PrincipalWithCredentials:
    """Reset them to those given, or to a random secret. `AlreadyExists` when the client id is taken."""
    secret = new_client_secret(identities) if client_secret is None else check_client_secret(client_secret)
    wanted_id = None if client_id is None else check_client_id(client_id)
    fresh_id = new_client_id(identities)

    async def prepare(view: View) -> Prepared[PrincipalWithCredentials]:
        ref, before = await require_principal(view, name)
        entity = structs.replace(
            with_secret(identities, before, secret, keep_previous=False),
            # One that came from another issuer has none yet.
            client_id=wanted_id or before.client_id or fresh_id,
            version=before.version + 1,
            updated_us=max(identities.persistence.clock.now_us(), before.updated_us),
            is_rotation_required=False,
        )
        clients: dict[bytes, bytes | None] = {}
        if entity.client_id != before.client_id:
            client = client_key(entity.client_id)
            await require_free_client(view, client)
            clients = {client: principal_key(name)}
            if before.client_id:
                clients[client_key(before.client_id)] = None
        new = NewObject(PRINCIPAL, identities.persistence.ids.next(), entity)
        value = ObjRef(new.id, PRINCIPAL.name).pack()
        change = told("principal-credentials-reset", entity, before=ref.pack(), after=value)
        names = {change.key: value}
        return Prepared(show(entity, secret), {"names": names, "clients": clients}, [new], [change])

    return await identities.commit(
        caller, ops.RESET_CREDENTIALS, (PrincipalTarget(name),), prepare, RECALL_CREDENTIALS
    )
