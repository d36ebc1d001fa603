"""Delete a principal role, and take it from everybody who has it.

Entries in catalogs that name it are left behind: they name its id, and ids are never used again.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.entities import SERVICE_ADMIN
from cynosure.auth.errors import BuiltIn
from cynosure.auth.identities import Identities
from cynosure.auth.principals import (
    assignees_prefix,
    assignment_keys,
    load_assigned,
    require_role,
    role_key,
)
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.auth.targets import PrincipalRoleTarget
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key


async def delete_principal_role(identities: Identities, caller: Caller, name: str) -> None:
    """Delete it with its assignments. `BuiltIn` for the one that manages the realm."""

    async def prepare(view: View) -> Prepared[None]:
        ref, entity = await require_role(view, name)
        if entity.name == SERVICE_ADMIN:
            raise BuiltIn(
                "The principal role service_admin cannot be deleted",
                field="name",
                fix="Revoke it from whoever shall not have it.",
            )
        principals = await load_assigned(view, assignees_prefix(entity.id))
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {role_key(name): None},
            "ids": {encode_id_key(entity.id): None},
            "assignments": {key: None for each in principals for key in assignment_keys(each, entity.id)},
        }
        return Prepared(None, changes, feed=[told("principal-role-deleted", entity, before=ref.pack())])

    await identities.commit(caller, ops.DELETE_PRINCIPAL_ROLE, (PrincipalRoleTarget(name),), prepare, NOTHING)
