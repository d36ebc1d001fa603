"""Create a principal with fresh credentials, which are shown to who asked for them, and never again."""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.credentials import (
    FIRST_GENERATION,
    RECALL_CREDENTIALS,
    PrincipalWithCredentials,
    new_client_id,
    new_client_secret,
    show,
)
from cynosure.auth.entities import PRINCIPAL, PrincipalEntity
from cynosure.auth.errors import PrincipalExists
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_client_id, check_principal_name, check_properties
from cynosure.auth.principals import client_key, principal_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.common.errors import AlreadyExists
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


class NewPrincipal(Struct, frozen=True):
    """A principal to be created."""

    name: str
    properties: dict[str, str] = {}
    client_id: str | None = None
    """Left out: a random one."""
    is_rotation_required: bool = False


async def create_principal(
    identities: Identities, caller: Caller, wanted: NewPrincipal
) -> PrincipalWithCredentials:
    """Create it. `PrincipalExists` when the name is taken, `AlreadyExists` when the client id is."""
    persistence = identities.persistence
    secret = new_client_secret(identities)
    now_us = persistence.clock.now_us()
    entity = PrincipalEntity(
        id=persistence.ids.next(),
        name=check_principal_name(wanted.name),
        client_id=check_client_id(wanted.client_id or new_client_id(identities)),
        created_us=now_us,
        updated_us=now_us,
        properties=check_properties(wanted.properties),
        secrets=(identities.hasher.hash(secret, FIRST_GENERATION),),
        is_rotation_required=wanted.is_rotation_required,
    )
    key, client = principal_key(entity.name), client_key(entity.client_id)

    async def prepare(view: View) -> Prepared[PrincipalWithCredentials]:
        if await view.find("names", key) is not None:
            raise PrincipalExists(entity.name)
        await require_free_client(view, client)
        # The first version has the stable id as its own.
        value = ObjRef(entity.id, PRINCIPAL.name).pack()
        changes = {"names": {key: value}, "ids": {encode_id_key(entity.id): key}, "clients": {client: key}}
        new = NewObject(PRINCIPAL, entity.id, entity)
        change = told("principal-created", entity, after=value)
        return Prepared(show(entity, secret), changes, [new], [change])

    return await identities.commit(
        caller, ops.CREATE_PRINCIPAL, (RealmTarget(caller.realm),), prepare, RECALL_CREDENTIALS
    )


async def require_free_client(view: View, client: bytes) -> None:
    """Refuse a client id that another principal has."""
    if await view.find("clients", client) is not None:
        raise AlreadyExists("The client id is taken", fix="Choose another one, or leave it out.")
