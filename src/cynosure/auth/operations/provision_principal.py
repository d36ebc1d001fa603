"""Principals for accounts of another issuer: made, or bound to one that exists, when the account first comes.

Must not break: an account gets a principal of its own, or the one that an operator's settings let it have,
and never one that another account is bound to.
"""

from msgspec import structs

from cynosure.auth.caller import operator_caller
from cynosure.auth.changes import RECALL_PRINCIPAL, told
from cynosure.auth.entities import PRINCIPAL, ROOT, PrincipalEntity
from cynosure.auth.errors import PrincipalExists
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_principal_name
from cynosure.auth.principals import find_client_in, principal_key, require_principal, subject_key
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import PrincipalTarget, RealmTarget
from cynosure.common.errors import AlreadyExists, BadInput
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import NewObject

MAX_SUBJECT_CHARS = 2_048


async def provision_principal(
    identities: Identities, realm: RealmId, name: str, subject: str
) -> PrincipalEntity:
    """The principal of this account, made if there is none. `PrincipalExists` when another has the name."""
    _check_subject(subject)
    persistence = identities.persistence
    now_us = persistence.clock.now_us()
    entity = PrincipalEntity(
        id=persistence.ids.next(),
        name=check_principal_name(name),
        client_id="",
        created_us=now_us,
        updated_us=now_us,
        subject=subject,
    )
    key, client = principal_key(name), subject_key(subject)

    async def prepare(view: View) -> Prepared[PrincipalEntity]:
        known = await find_client_in(view, client)
        if known is not None:
            return Prepared(known)  # Another request of the same account was faster.
        if await view.find("names", key) is not None:
            raise PrincipalExists(name)
        value = ObjRef(entity.id, PRINCIPAL.name).pack()
        changes = {"names": {key: value}, "ids": {encode_id_key(entity.id): key}, "clients": {client: key}}
        new = NewObject(PRINCIPAL, entity.id, entity)
        return Prepared(entity, changes, [new], [told("principal-created", entity, after=value)])

    caller = operator_caller("oidc", realm)
    return await identities.commit(
        caller, ops.CREATE_PRINCIPAL, (RealmTarget(realm),), prepare, RECALL_PRINCIPAL
    )


async def bind_subject(identities: Identities, realm: RealmId, name: str, subject: str) -> PrincipalEntity:
    """The principal of this name, bound to the account. `AlreadyExists` when another account has it.

    `root` is never bound: who may be root is said here, and not by another issuer.
    """
    _check_subject(subject)
    if name == ROOT:
        raise BadInput(
            "The principal root authenticates here only", field="name", fix="Use another principal."
        )
    persistence = identities.persistence
    key, client = principal_key(name), subject_key(subject)

    async def prepare(view: View) -> Prepared[PrincipalEntity]:
        known = await find_client_in(view, client)
        if known is not None:
            return Prepared(known)
        ref, before = await require_principal(view, name)
        if before.subject:
            raise AlreadyExists(
                "The principal belongs to another account", fix="Give the account another name.", name=name
            )
        entity = structs.replace(
            before,
            subject=subject,
            version=before.version + 1,
            updated_us=max(persistence.clock.now_us(), before.updated_us),
        )
        new = NewObject(PRINCIPAL, persistence.ids.next(), entity)
        value = ObjRef(new.id, PRINCIPAL.name).pack()
        change = told("principal-bound", entity, before=ref.pack(), after=value)
        return Prepared(entity, {"names": {key: value}, "clients": {client: key}}, [new], [change])

    caller = operator_caller("oidc", realm)
    return await identities.commit(
        caller, ops.UPDATE_PRINCIPAL, (PrincipalTarget(name),), prepare, RECALL_PRINCIPAL
    )


def _check_subject(subject: str) -> None:
    if not 1 <= len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
        raise BadInput(
            "The account has no usable subject",
            field="sub",
            fix=f"Use up to {MAX_SUBJECT_CHARS} printable characters.",
        )
