"""Create a principal role."""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.changes import RECALL_ROLE, told
from cynosure.auth.entities import PRINCIPAL_ROLE, PrincipalRoleEntity
from cynosure.auth.errors import PrincipalRoleExists
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_name, check_properties
from cynosure.auth.principals import role_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


class NewPrincipalRole(Struct, frozen=True):
    """A principal role to be created."""

    name: str
    properties: dict[str, str] = {}
    is_federated: bool = False


async def create_principal_role(
    identities: Identities, caller: Caller, wanted: NewPrincipalRole
) -> PrincipalRoleEntity:
    """Create it. `PrincipalRoleExists` when the name is taken."""
    persistence = identities.persistence
    now_us = persistence.clock.now_us()
    entity = PrincipalRoleEntity(
        id=persistence.ids.next(),
        name=check_name(wanted.name),
        created_us=now_us,
        updated_us=now_us,
        properties=check_properties(wanted.properties),
        is_federated=wanted.is_federated,
    )
    key = role_key(entity.name)

    async def prepare(view: View) -> Prepared[PrincipalRoleEntity]:
        if await view.find("names", key) is not None:
            raise PrincipalRoleExists(entity.name)
        # The first version has the stable id as its own.
        value = ObjRef(entity.id, PRINCIPAL_ROLE.name).pack()
        changes = {"names": {key: value}, "ids": {encode_id_key(entity.id): key}}
        new = NewObject(PRINCIPAL_ROLE, entity.id, entity)
        return Prepared(entity, changes, [new], [told("principal-role-created", entity, after=value)])

    return await identities.commit(
        caller, ops.CREATE_PRINCIPAL_ROLE, (RealmTarget(caller.realm),), prepare, RECALL_ROLE
    )
