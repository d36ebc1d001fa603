"""What a principal is and has right now: its entity, its active roles, what they may do to the realm.

Looked up for every request. What is remembered is remembered for one head of the realm's `principals`, and
the head is read anew each time: whatever is taken away is gone with the next request, on every server.

Must not break: everything that is not found, not valid any more or not had is `NotAuthenticated`.
"""

from typing import Final, NamedTuple

from msgspec import Struct

from cynosure.auth.caller import Identity
from cynosure.auth.closing import is_closed
from cynosure.auth.entities import PrincipalEntity, PrincipalRoleEntity
from cynosure.auth.principals import (
    assignments_prefix,
    find_principal_in,
    find_role_in,
    load_assigned,
    load_roles_in,
    read_principals,
)
from cynosure.auth.rbac.grants import unpack_privileges
from cynosure.auth.rbac.privileges import NONE, PrivilegeSet
from cynosure.common.errors import NotAuthenticated
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import ObjId, RealmId, RefKey

_MOST_KEPT: Final = 20_000
"""Standings of one realm that are remembered at a time."""


class Standing(Struct, frozen=True):
    """What an identity stands for."""

    principal: PrincipalEntity
    roles: tuple[PrincipalRoleEntity, ...]
    """Those that are active, by name."""
    realm_privileges: PrivilegeSet
    """What they may do to the realm itself."""
    actor: PrincipalEntity | None = None
    """The trusted service that acts for the principal."""


class Stood(NamedTuple):
    """A standing, and the head it was read at, for guards."""

    standing: Standing
    key: RefKey
    head: ObjId


class _Known(Struct):
    """Standings at one head of a realm's `principals`."""

    head: ObjId
    by_identity: dict[Identity, Standing]


class Standings:
    """The standings of all realms, as one process looks them up."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence
        self._known: dict[RealmId, _Known] = {}

    def get_head(self, realm: RealmId) -> ObjId | None:
        """The head of the realm's principals, if this request has read it ahead."""
        ref = self._persistence.heads.get_ahead(realm_reference(realm, "principals"))
        return None if ref is None else ref.head

    async def load(self, realm: RealmId, identity: Identity) -> Stood:
        """What the identity stands for now. `NotAuthenticated` for nothing, `NoSuchRealm` without a realm."""
        base = await read_principals(self._persistence, realm)
        known = self._known.get(realm)
        if known is None or known.head != base.ref.head:
            known = self._known[realm] = _Known(base.ref.head, {})
        standing = known.by_identity.get(identity)
        if standing is None:
            standing = await load_standing(base.state, identity)
            if len(known.by_identity) >= _MOST_KEPT:
                known.by_identity.clear()
            known.by_identity[identity] = standing
        return Stood(standing, base.ref.key, base.ref.head)


async def load_standing(view: View, identity: Identity) -> Standing:
    """As `Standings.load`, in one state."""
    if await is_closed(view):
        raise _not_valid()
    principal = await _require_valid(view, identity.principal_id, identity.credential)
    actor: PrincipalEntity | None = None
    if identity.actor_id:
        actor = await _require_valid(view, identity.actor_id, identity.actor_credential)
        if not actor.is_trusted_service:
            raise _not_valid()
    roles = {role.name: role for role in await _load_roles(view, identity)}
    if identity.scope is not None:
        if not roles.keys() >= set(identity.scope):
            raise _not_valid()
        roles = {name: roles[name] for name in identity.scope}
    privileges = NONE
    for role in roles.values():
        privileges |= unpack_privileges(role.realm_privileges)
    return Standing(principal, tuple(roles[name] for name in sorted(roles)), privileges, actor)


async def _require_valid(view: View, principal: ObjId, credential: int) -> PrincipalEntity:
    entity = await find_principal_in(view, principal)
    if entity is None or (credential and credential not in {each.generation for each in entity.secrets}):
        raise _not_valid()
    return entity


async def _load_roles(view: View, identity: Identity) -> list[PrincipalRoleEntity]:
    assigned = await load_assigned(view, assignments_prefix(identity.principal_id))
    roles = await load_roles_in(view, assigned)
    for name in identity.external_roles:
        # Only those that exist to be had this way: an issuer's group that happens to be called like a role
        # of ours must not give it.
        role = await find_role_in(view, name)
        if role is not None and role.is_federated:
            roles.append(role)
    return roles


def _not_valid() -> NotAuthenticated:
    return NotAuthenticated("The token is not valid any more", fix="Get a new one.")
