"""Principals, roles and grants of one realm and catalog, written straight into a store, for tests of access.

What a test states is made so in as few commits as there are references; the keys are those of production. Ids
stay with their names until `forget` gives a name a new one, as dropping and creating anew does.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from cynosure.auth.caller import Caller, Identity, operator_caller
from cynosure.auth.committing import commit_part
from cynosure.auth.entities import (
    CATALOG_ROLE,
    PRINCIPAL,
    PRINCIPAL_ROLE,
    CatalogRoleEntity,
    PrincipalEntity,
    PrincipalRoleEntity,
)
from cynosure.auth.principals import assignment_keys, principal_key, role_key
from cynosure.auth.rbac.grants import (
    assignee_key,
    by_role_key,
    pack_privileges,
    securable_key,
    usage_key,
)
from cynosure.auth.rbac.privileges import Privilege, set_of
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjectType, ObjRef
from cynosure.persistence.references import (
    CATALOG_REFERENCES,
    DEFAULT_REALM,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.spi import CatalogId, ObjId, RealmId, RefKey
from cynosure.persistence.store import NewObject

CATALOG = CatalogId("77")
_NOW_US = 1_900_000_000_000_000
Entries = dict[str, dict[bytes, bytes]]


class World(Struct, frozen=True):
    """Who has what. What is not named does not exist."""

    principals: Mapping[str, tuple[str, ...]] = {}
    """Per principal, its principal roles."""
    realm: Mapping[str, tuple[Privilege, ...]] = {}
    """Per principal role, what it holds on the realm itself."""
    uses: Mapping[str, tuple[str, ...]] = {}
    """Per principal role, its catalog roles."""
    grants: Mapping[tuple[str, ObjId], tuple[Privilege, ...]] = {}
    """Per catalog role and securable, what is granted."""
    must_rotate: tuple[str, ...] = ()
    """Principals that must rotate their credentials."""
    federated: tuple[str, ...] = ()
    """Principal roles that other issuers' tokens give."""


class AccessWorld:
    """One realm and one catalog in it, as a test wants them."""

    def __init__(
        self,
        persistence: Persistence,
        realm: RealmId = DEFAULT_REALM,
        catalog: CatalogId = CATALOG,
    ) -> None:
        self.persistence = persistence
        self.realm = realm
        self.catalog = catalog
        self._ids: dict[tuple[str, str], ObjId] = {}
        self._written: dict[tuple[str, bytes], NewObject] = {}

    @property
    def principals(self) -> RefKey:
        """The reference of principals and principal roles."""
        return realm_reference(self.realm, "principals")

    @property
    def grants(self) -> RefKey:
        """The reference of catalog roles and grants."""
        return catalog_reference(self.realm, self.catalog, "grants")

    async def setup(self) -> None:
        """Make the references."""
        keys = [catalog_reference(self.realm, self.catalog, name) for name in CATALOG_REFERENCES]
        for key in [self.principals, *keys]:
            await ensure_reference(self.persistence.backend, key, self.persistence.clock)

    async def view(self) -> State:
        """The catalog's content, which is empty."""
        return (await self.persistence.read(catalog_reference(self.realm, self.catalog, "main"))).state

    def id_of(self, kind: str, name: str) -> ObjId:
        """The id of a `principal`, `principal-role` or `catalog-role`."""
        key = (kind, name)
        if key not in self._ids:
            self._ids[key] = self.persistence.ids.next()
        return self._ids[key]

    def forget(self, kind: str, name: str) -> None:
        """From now on this name is of another thing."""
        self._ids.pop((kind, name), None)

    def caller(self, principal: str, scope: Iterable[str] | None = None, **identity: object) -> Caller:
        """A principal as caller, with the roles in `scope`, or all."""
        names = None if scope is None else tuple(scope)
        made = Identity(self.id_of("principal", principal), scope=names)
        if identity:
            made = Identity(made.principal_id, scope=names, **identity)  # type: ignore[arg-type]
        return Caller(principal, self.realm, identity=made)

    async def make(self, world: World) -> None:
        """Make it so: whatever else there was is gone. A reference whose content is right stays as it is."""
        await self._write(self.principals, *self._principals(world))
        await self._write(self.grants, *self._grants(world))

    def _principals(self, world: World) -> tuple[Entries, list[NewObject]]:
        entries: Entries = {"names": {}, "ids": {}, "assignments": {}}
        objects: list[NewObject] = []
        roles = {
            *world.realm,
            *world.uses,
            *world.federated,
            *(each for all_ in world.principals.values() for each in all_),
        }
        for name in sorted(roles):
            role = PrincipalRoleEntity(
                self.id_of("principal-role", name),
                name,
                _NOW_US,
                _NOW_US,
                is_federated=name in world.federated,
                realm_privileges=pack_privileges(set_of(world.realm.get(name, ()))),
            )
            self._add(entries, objects, role_key(name), PRINCIPAL_ROLE, role.id, role)
        for name, has in world.principals.items():
            principal = PrincipalEntity(
                self.id_of("principal", name),
                name,
                f"client-{name}",
                _NOW_US,
                _NOW_US,
                is_rotation_required=name in world.must_rotate,
            )
            self._add(entries, objects, principal_key(name), PRINCIPAL, principal.id, principal)
            for role_name in has:
                for key in assignment_keys(principal.id, self.id_of("principal-role", role_name)):
                    entries["assignments"][key] = b""
        return entries, objects

    def _grants(self, world: World) -> tuple[Entries, list[NewObject]]:
        entries: Entries = {"names": {}, "ids": {}, "assignments": {}, "grants": {}}
        objects: list[NewObject] = []
        roles = {
            *(role for role, _ in world.grants),
            *(each for all_ in world.uses.values() for each in all_),
        }
        for name in sorted(roles):
            role = CatalogRoleEntity(self.id_of("catalog-role", name), name, _NOW_US, _NOW_US)
            self._add(entries, objects, encode_key(name), CATALOG_ROLE, role.id, role)
        for principal_role, has in world.uses.items():
            user = self.id_of("principal-role", principal_role)
            for name in has:
                used = self.id_of("catalog-role", name)
                entries["assignments"][usage_key(user, used)] = b""
                entries["assignments"][assignee_key(used, user)] = b""
        for (name, securable), privileges in world.grants.items():
            role_id, packed = self.id_of("catalog-role", name), pack_privileges(set_of(privileges))
            if packed:
                entries["grants"][securable_key(securable, role_id)] = packed
                entries["grants"][by_role_key(role_id, securable)] = packed
        return entries, objects

    def _add(
        self,
        entries: Entries,
        objects: list[NewObject],
        key: bytes,
        object_type: ObjectType[Any],
        stable_id: ObjId,
        value: object,
    ) -> None:
        known = self._written.get((object_type.name, key))
        if known is None or known.value != value:
            known = self._written[object_type.name, key] = NewObject(
                object_type, self.persistence.ids.next(), value
            )
            objects.append(known)
        entries["names"][key] = ObjRef(known.id, object_type.name).pack()
        entries["ids"][encode_id_key(stable_id)] = key

    async def _write(self, key: RefKey, wanted: Entries, objects: list[NewObject]) -> None:
        async def prepare(view: View) -> Prepared[None]:
            changes: dict[str, dict[bytes, bytes | None]] = {}
            for index, entries in wanted.items():
                now = dict(await scan_all(view, index, b""))
                new = {each: value for each, value in entries.items() if now.get(each) != value}
                if new or now.keys() - entries.keys():
                    changes[index] = {**dict.fromkeys(now.keys() - entries.keys()), **new}
            return Prepared(None, changes, objects if changes else ())

        await commit_part(self.persistence.committer(key), operator_caller("test"), "make-world", prepare)
