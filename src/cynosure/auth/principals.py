"""A realm's `principals`: the keys of its indexes, and looking things up in it (`entities.py` has the table).

Must not break: these keys are stored. Assignments are written in both directions, always together.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cynosure.auth.closing import is_closed
from cynosure.auth.entities import PRINCIPAL, PRINCIPAL_ROLE, ROOT, PrincipalEntity, PrincipalRoleEntity
from cynosure.auth.errors import NoSuchPrincipal, NoSuchPrincipalRole, NoSuchRealm
from cynosure.common.errors import NotFound
from cynosure.persistence.commit import Base, View, find_object
from cynosure.persistence.index import decode_id_key, encode_id_key, encode_key, prefix_of
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.persistence.scopes import is_realm_name
from cynosure.persistence.spi import ObjId, RealmId

PRINCIPALS_PREFIX: Final = prefix_of("p")
"""Of the keys of all principals in `names`."""
ROLES_PREFIX: Final = prefix_of("r")
"""Of the keys of all principal roles in `names`."""
_ID_BYTES: Final = 9


def principal_key(name: str) -> bytes:
    """Key of a principal in `names`."""
    return encode_key("p", name)


def role_key(name: str) -> bytes:
    """Key of a principal role in `names`."""
    return encode_key("r", name)


def client_key(client_id: str) -> bytes:
    """Key of a client id in `clients`."""
    return encode_key(client_id)


def subject_key(subject: str) -> bytes:
    """Key in `clients` of an account of another issuer; no client id has two elements."""
    return encode_key("subject", subject)


def assignments_prefix(principal: ObjId) -> bytes:
    """Of the roles of a principal in `assignments`; the role's id follows."""
    return b"p" + encode_id_key(principal)


def assignees_prefix(role: ObjId) -> bytes:
    """Of the principals of a role in `assignments`; the principal's id follows."""
    return b"r" + encode_id_key(role)


def assignment_keys(principal: ObjId, role: ObjId) -> tuple[bytes, bytes]:
    """The two entries of one assignment."""
    return (
        assignments_prefix(principal) + encode_id_key(role),
        assignees_prefix(role) + encode_id_key(principal),
    )


def assigned_id(key: bytes) -> ObjId:
    """The id at the end of a key in `assignments`."""
    return ObjId(decode_id_key(key[-_ID_BYTES:]))


class FoundPrincipal(NamedTuple):
    """A principal and the version of it that the state has."""

    ref: ObjRef
    entity: PrincipalEntity


class FoundRole(NamedTuple):
    """A principal role and the version of it that the state has."""

    ref: ObjRef
    entity: PrincipalRoleEntity


async def read_principals(persistence: Persistence, realm: RealmId) -> Base:
    """The current `principals` of a realm, also of one that a stranger named; else `NoSuchRealm`."""
    key = realm_reference(realm, "principals")
    if not persistence.knows(key) and not is_realm_name(realm):
        raise NoSuchRealm(realm[:128])
    try:
        return await persistence.read(key)
    except NotFound as error:
        raise NoSuchRealm(realm) from error


async def require_principal(view: View, name: str) -> FoundPrincipal:
    """The principal of this name; `NoSuchPrincipal` when there is none."""
    value = await view.find("names", principal_key(name))
    if value is None:
        raise NoSuchPrincipal(name)
    ref = ObjRef.unpack(value)
    return FoundPrincipal(ref, (await view.load_many(PRINCIPAL, [ref.id]))[0])


async def require_role(view: View, name: str) -> FoundRole:
    """The principal role of this name; `NoSuchPrincipalRole` when there is none."""
    value = await view.find("names", role_key(name))
    if value is None:
        raise NoSuchPrincipalRole(name)
    ref = ObjRef.unpack(value)
    return FoundRole(ref, (await view.load_many(PRINCIPAL_ROLE, [ref.id]))[0])


async def find_principal_in(view: View, principal: ObjId) -> PrincipalEntity | None:
    """The principal of this id; `None` when it is gone."""
    key = await view.find("ids", encode_id_key(principal))
    if key is None:
        return None
    return await find_object(view, "names", key, PRINCIPAL)


async def find_role_in(view: View, name: str) -> PrincipalRoleEntity | None:
    """The principal role of this name, or `None`."""
    return await find_object(view, "names", role_key(name), PRINCIPAL_ROLE)


async def find_client_in(view: View, key: bytes) -> PrincipalEntity | None:
    """The principal of a `client_key` or `subject_key`, or `None`; in a closed realm nobody."""
    name = None if await is_closed(view) else await view.find("clients", key)
    if name is None:
        return None
    return await find_object(view, "names", name, PRINCIPAL)


async def load_roles_in(view: View, ids: Iterable[ObjId]) -> list[PrincipalRoleEntity]:
    """The principal roles of these ids, in their order; those that are gone are left out."""
    refs = await _current(view, ids)
    return await view.load_many(PRINCIPAL_ROLE, [ref.id for ref in refs if ref.type == PRINCIPAL_ROLE.name])


async def load_principals_in(view: View, ids: Iterable[ObjId]) -> list[PrincipalEntity]:
    """The principals of these ids, in their order; those that are gone are left out."""
    refs = await _current(view, ids)
    return await view.load_many(PRINCIPAL, [ref.id for ref in refs if ref.type == PRINCIPAL.name])


async def load_assigned(view: View, prefix: bytes) -> list[ObjId]:
    """The ids behind an `assignments_prefix` or `assignees_prefix`."""
    return [assigned_id(key) for key, _ in await scan_all(view, "assignments", prefix)]


async def find_client(persistence: Persistence, realm: RealmId, client_id: str) -> PrincipalEntity | None:
    """The principal with this client id, or `None`; `NoSuchRealm` when there is no such realm."""
    state = (await read_principals(persistence, realm)).state
    is_open = not await is_closed(state)
    name = await state.find("clients", client_key(client_id)) if client_id else None
    # Something is loaded in any case: the time it takes must not tell strangers which clients exist.
    found = await find_object(state, "names", name or principal_key(ROOT), PRINCIPAL)
    return found if is_open and name is not None else None


async def find_subject(persistence: Persistence, realm: RealmId, subject: str) -> PrincipalEntity | None:
    """The principal of another issuer's account (`PrincipalEntity.subject`), or `None`."""
    state = (await read_principals(persistence, realm)).state
    return await find_client_in(state, subject_key(subject))


async def find_principal(persistence: Persistence, realm: RealmId, name: str) -> PrincipalEntity | None:
    """The principal of this name, or `None`."""
    state = (await read_principals(persistence, realm)).state
    return await find_object(state, "names", principal_key(name), PRINCIPAL)


async def load_roles_by_id(
    persistence: Persistence, realm: RealmId, ids: Sequence[ObjId]
) -> list[PrincipalRoleEntity]:
    """The principal roles of these ids, in their order; those that are gone are left out."""
    return await load_roles_in((await read_principals(persistence, realm)).state, ids)


async def _current(view: View, ids: Iterable[ObjId]) -> list[ObjRef]:
    refs: list[ObjRef] = []
    for each in ids:
        key = await view.find("ids", encode_id_key(each))
        value = None if key is None else await view.find("names", key)
        if value is not None:
            refs.append(ObjRef.unpack(value))
    return refs
