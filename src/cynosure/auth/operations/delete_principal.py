"""Delete a principal, and what it had.

Its tokens are refused from the next request on: they name its id, and ids are never used again.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.changes import told
from cynosure.auth.entities import ROOT
from cynosure.auth.errors import BuiltIn
from cynosure.auth.identities import Identities
from cynosure.auth.principals import (
    assignment_keys,
    assignments_prefix,
    client_key,
    load_assigned,
    principal_key,
    require_principal,
    subject_key,
)
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.auth.targets import PrincipalTarget
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key


async def delete_principal(identities: Identities, caller: Caller, name: str) -> None:
    """Delete it with its assignments. `BuiltIn` for `root`, without whom nobody could manage the realm."""

    async def prepare(view: View) -> Prepared[None]:
        ref, entity = await require_principal(view, name)
        if entity.name == ROOT:
            raise BuiltIn(
                "The principal root cannot be deleted", field="name", fix="Reset its credentials instead."
            )
        clients = [client_key(entity.client_id)] if entity.client_id else []
        if entity.subject:
            clients.append(subject_key(entity.subject))
        roles = await load_assigned(view, assignments_prefix(entity.id))
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {principal_key(name): None},
            "ids": {encode_id_key(entity.id): None},
            "clients": dict.fromkeys(clients),
            "assignments": {key: None for role in roles for key in assignment_keys(entity.id, role)},
        }
        return Prepared(None, changes, feed=[told("principal-deleted", entity, before=ref.pack())])

    await identities.commit(caller, ops.DELETE_PRINCIPAL, (PrincipalTarget(name),), prepare, NOTHING)
