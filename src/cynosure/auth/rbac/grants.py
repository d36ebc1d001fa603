"""How a catalog's `grants` reference holds grants and assignments, and how they are changed.

    grants       s SECURABLE ROLE → privileges      asked for by a check
                 r ROLE SECURABLE → privileges      asked for by what belongs to a role
    assignments  u PRINCIPAL_ROLE CATALOG_ROLE      which catalog roles a principal role has
                 a CATALOG_ROLE PRINCIPAL_ROLE      who has a catalog role

Ids are nine bytes (`encode_id_key`), so one prefix is exactly one securable's or role's entries. A set of
privileges is a bitmap by code, lowest first: three bytes for `TABLE_READ_DATA`, thirteen at most today.

Must not break: whatever writes one direction writes the other in the same change. Bits that this version does
not know are kept when a set is changed, and grant nothing.
"""

from typing import Final

from cynosure.auth.rbac.privileges import NONE, PrivilegeSet
from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_id_key, encode_id_key
from cynosure.persistence.spi import ObjId

Changes = dict[str, dict[bytes, bytes | None]]
"""As `Prepared.changes` takes them."""

GRANTS: Final = "grants"
ASSIGNMENTS: Final = "assignments"
THE_CATALOG: Final = ObjId(0)
"""The securable that is the catalog itself: no id is ever 0, and its reference says which catalog it is."""

_ID_BYTES = 9
_PAIR_BYTES = 1 + 2 * _ID_BYTES


# --- values -------------------------------------------------------------------------------------------------


def pack_privileges(privileges: PrivilegeSet) -> bytes:
    """A set of privileges as it is stored. The empty set is no bytes."""
    return privileges.to_bytes((privileges.bit_length() + 7) // 8, "little")


def unpack_privileges(data: bytes) -> PrivilegeSet:
    """The set that `pack_privileges` stored, with bits this version may not know."""
    return int.from_bytes(data, "little")


# --- keys ---------------------------------------------------------------------------------------------------


def securable_key(securable: ObjId, role: ObjId) -> bytes:
    """Where the privileges of a catalog role on a securable are."""
    return b"s" + encode_id_key(securable) + encode_id_key(role)


def by_role_key(role: ObjId, securable: ObjId) -> bytes:
    """The same from the role's side."""
    return b"r" + encode_id_key(role) + encode_id_key(securable)


def securable_prefix(securable: ObjId) -> bytes:
    """All that is granted on a securable."""
    return b"s" + encode_id_key(securable)


def by_role_prefix(role: ObjId) -> bytes:
    """All that is granted to a catalog role."""
    return b"r" + encode_id_key(role)


def usage_key(principal_role: ObjId, catalog_role: ObjId) -> bytes:
    """That a principal role has a catalog role."""
    return b"u" + encode_id_key(principal_role) + encode_id_key(catalog_role)


def assignee_key(catalog_role: ObjId, principal_role: ObjId) -> bytes:
    """The same from the catalog role's side."""
    return b"a" + encode_id_key(catalog_role) + encode_id_key(principal_role)


def usage_prefix(principal_role: ObjId) -> bytes:
    """All catalog roles of a principal role."""
    return b"u" + encode_id_key(principal_role)


def assignee_prefix(catalog_role: ObjId) -> bytes:
    """All principal roles that have a catalog role."""
    return b"a" + encode_id_key(catalog_role)


def second_id(key: bytes) -> ObjId:
    """The other end of an entry: what stands last in its key."""
    if len(key) != _PAIR_BYTES:
        raise CorruptObject("A key of grants does not hold two ids", key_bytes=len(key))
    return ObjId(decode_id_key(key[1 + _ID_BYTES :]))


# --- changes ------------------------------------------------------------------------------------------------


async def find_grant(view: View, role: ObjId, securable: ObjId) -> PrivilegeSet:
    """What is granted to a catalog role on a securable itself."""
    value = await view.find(GRANTS, securable_key(securable, role))
    return NONE if value is None else unpack_privileges(value)


async def change_grant(
    view: View, role: ObjId, securable: ObjId, *, add: PrivilegeSet = NONE, remove: PrivilegeSet = NONE
) -> Changes:
    """What to change so that the role has `add` on the securable and has `remove` no more.

    Nothing when that is so already. When nothing is left, the entries are removed.
    """
    before = await find_grant(view, role, securable)
    after = (before | add) & ~remove
    if after == before:
        return {}
    value = pack_privileges(after) or None
    return {GRANTS: {securable_key(securable, role): value, by_role_key(role, securable): value}}


async def change_assignment(
    view: View, principal_role: ObjId, catalog_role: ObjId, *, is_assigned: bool
) -> Changes:
    """What to change so that the principal role has the catalog role, or has it no more."""
    key = usage_key(principal_role, catalog_role)
    if (await view.find(ASSIGNMENTS, key) is not None) == is_assigned:
        return {}
    value = b"" if is_assigned else None
    return {ASSIGNMENTS: {key: value, assignee_key(catalog_role, principal_role): value}}


async def remove_grants_of_role(view: View, role: ObjId, *, most: int) -> Changes:
    """What to change so that up to `most` of a catalog role's grants are gone, from both sides."""
    entries = await view.scan(GRANTS, prefix=by_role_prefix(role), limit=most)
    changes: dict[bytes, bytes | None] = {}
    for key, _ in entries:
        changes[key] = changes[securable_key(second_id(key), role)] = None
    return {GRANTS: changes} if changes else {}


async def remove_assignments_of_role(view: View, catalog_role: ObjId, *, most: int) -> Changes:
    """What to change so that up to `most` principal roles have this catalog role no more."""
    entries = await view.scan(ASSIGNMENTS, prefix=assignee_prefix(catalog_role), limit=most)
    changes: dict[bytes, bytes | None] = {}
    for key, _ in entries:
        changes[key] = changes[usage_key(second_id(key), catalog_role)] = None
    return {ASSIGNMENTS: changes} if changes else {}
