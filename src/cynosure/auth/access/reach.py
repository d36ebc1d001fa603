"""What a set of principal roles has in one catalog, at one head of its `grants`.

A check asks for the same few sets of roles again and again, so what was found is kept for as long as the head
stays: then a check is a look into a dictionary per step. It is all that is remembered about rights, and it is
never asked at another head than it was read at.

Must not break: everything here is bounded. A catalog role that is gone has nothing, whatever entries are
left.
"""

from collections.abc import Sequence
from typing import Final

from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    THE_CATALOG,
    by_role_prefix,
    second_id,
    securable_prefix,
    unpack_privileges,
    usage_prefix,
)
from cynosure.auth.rbac.privileges import NONE, SATISFIED_BY, Privilege, PrivilegeSet
from cynosure.persistence.commit import State
from cynosure.persistence.index import decode_key, encode_id_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.listing import scan_all
from cynosure.persistence.references import catalog_reference
from cynosure.persistence.spi import CatalogId, ObjId, RealmId, RefKey

MOST_REACHES: Final = 1_024
"""Sets of roles in catalogs that are remembered. The oldest go first."""
MOST_HELD: Final = 1_024
"""Securables that are remembered per set of roles. Others are looked up: a few microseconds each."""
MOST_SEEN: Final = 50_000
"""Longest answer of `load_granted` that is remembered."""
FEW_ROLES: Final = 8
"""Up to so many catalog roles are asked for one by one."""
MOST_SIGHTS: Final = 8
"""So many of them per set of roles."""

Roles = tuple[ObjId, ...]


class Reach:
    """What some principal roles have in one catalog. Made by `load_reach`."""

    __slots__ = (
        "_granted",
        "_held",
        "_suffixes",
        "head",
        "key",
        "names",
        "on_catalog",
        "roles",
        "state",
        "users",
    )

    def __init__(
        self, key: RefKey, state: State, users: dict[ObjId, list[ObjId]], names: dict[ObjId, str]
    ) -> None:
        self.key = key
        self.head = state.commit_id
        self.state = state
        self.users = users
        """Per catalog role, which of the principal roles have it."""
        self.names = names
        """Of the catalog roles."""
        self.roles = tuple(users)
        self._suffixes = [encode_id_key(role) for role in users]
        """Of their keys, whatever the securable."""
        self.on_catalog: PrivilegeSet = NONE
        self._held: dict[ObjId, PrivilegeSet] = {}
        self._granted: dict[Privilege, frozenset[ObjId]] = {}

    def get_held(self, securable: ObjId) -> PrivilegeSet | None:
        """As `load_held`, from memory; `None` when it must be looked up."""
        return self._held.get(securable)

    async def load_held(self, securable: ObjId) -> PrivilegeSet:
        """What the catalog roles have on a securable itself, all together."""
        held = NONE
        for value in await self.find_each(securable):
            held |= value
        if len(self._held) >= MOST_HELD:
            self._held.clear()
        self._held[securable] = held
        return held

    async def find_each(self, securable: ObjId) -> list[PrivilegeSet]:
        """The same per catalog role, in the order of `roles`."""
        prefix, roles = securable_prefix(securable), self.roles
        if len(roles) > FEW_ROLES:
            entries = await self.state.scan(GRANTS, prefix=prefix, limit=len(roles))
            if len(entries) < len(roles):
                # All there are: most things have fewer grants than such a caller has roles.
                found = dict(entries)
                return [unpack_privileges(found.get(prefix + role, b"")) for role in self._suffixes]
        values = await _find_many(self.state, GRANTS, [prefix + role for role in self._suffixes])
        return [unpack_privileges(value or b"") for value in values]

    async def load_granted(self, privilege: Privilege) -> frozenset[ObjId]:
        """Every securable below the catalog on which something that satisfies `privilege` is granted.

        Costs as much as the roles have grants, however many others there are.
        """
        known = self._granted.get(privilege)
        if known is not None:
            return known
        wanted = SATISFIED_BY[privilege]
        found: set[ObjId] = set()
        for role in self.roles:
            for key, value in await scan_all(self.state, GRANTS, by_role_prefix(role)):
                if unpack_privileges(value) & wanted:
                    found.add(second_id(key))
        found.discard(THE_CATALOG)
        granted = frozenset(found)
        if len(granted) <= MOST_SEEN:
            if len(self._granted) >= MOST_SIGHTS:
                self._granted.clear()
            self._granted[privilege] = granted
        return granted


async def load_reach(key: RefKey, state: State, principal_roles: Sequence[ObjId]) -> Reach:
    """What these principal roles have, in one state of a catalog's `grants`."""
    users: dict[ObjId, list[ObjId]] = {}
    for principal_role in principal_roles:
        for entry, _ in await scan_all(state, ASSIGNMENTS, usage_prefix(principal_role)):
            users.setdefault(second_id(entry), []).append(principal_role)
    named = await _find_many(state, "ids", [encode_id_key(role) for role in users])
    names = {
        role: decode_key(value)[-1] for role, value in zip(users, named, strict=True) if value is not None
    }
    reach = Reach(key, state, {role: users[role] for role in names}, names)
    reach.on_catalog = await reach.load_held(THE_CATALOG)
    return reach


class Reaches:
    """The reaches that one process has looked up lately."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence
        self._known: dict[tuple[RealmId, CatalogId, Roles], Reach] = {}

    async def load(self, realm: RealmId, catalog: CatalogId, principal_roles: Roles) -> Reach:
        """What these principal roles have in the catalog now; `NotFound` when the realm has none such."""
        wanted = (realm, catalog, principal_roles)
        reach = self._known.get(wanted)
        if reach is not None and (await self._persistence.heads.load(reach.key)).head == reach.head:
            return reach
        key = catalog_reference(realm, catalog, "grants")
        base = await self._persistence.read(key)
        reach = await load_reach(key, base.state, principal_roles)
        self._known.pop(wanted, None)
        while len(self._known) >= MOST_REACHES:
            del self._known[next(iter(self._known))]
        self._known[wanted] = reach
        return reach


async def _find_many(state: State, index: str, keys: Sequence[bytes]) -> list[bytes | None]:
    """Values of several keys; nodes that are not in memory come in one request per level."""
    if len(keys) == 1:
        return [await state.find(index, keys[0])]
    return await state.commit.index(index).find_many(state.nodes, keys) if keys else []
