"""Delete a catalog role, with all that was granted to it and all who had it.

A role with more grants or users than fit into one commit goes in several: first those who have it, until the
rest fit; then in one commit the role itself, its last users and the first of its grants; then the other
grants. Interrupted before the role has gone, it is there still, for fewer: delete it again. Interrupted
afterwards, grants are left of a role that nobody has and whose id nothing gets again: they grant nothing, and
`sweep_grants` removes them.

A request that is made again under its Idempotency-Key finds its own deletion and goes on with the grants.

Must not break: no one has a role that is gone.
"""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part, find_recalled, refusing, without_key
from cynosure.auth.entities import CATALOG_ADMIN
from cynosure.auth.errors import BuiltIn
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    Changes,
    remove_assignments_of_role,
    remove_grants_of_role,
)
from cynosure.auth.receipts import NOTHING, Kept, Recall
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import check_role, commit_role, role_change
from cynosure.catalog.roles.lookup import FoundRole, role_key
from cynosure.persistence.commit import Base, Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId

MOST_AT_ONCE: Final = 5_000
"""Grants, or assignments, that one commit removes. Each is two entries."""
_ROLE_ID: Final[Recall[ObjId]] = Kept(ObjId)
_IS_MORE: Final[Recall[bool]] = Kept(bool)


async def delete_catalog_role(catalog: OpenCatalog, caller: Caller, name: str) -> None:
    """Delete it; `NoSuchCatalogRole` when there is none. `catalog_admin` stays."""
    if name == CATALOG_ADMIN:
        # Within a commit, so that who has no right is told that, and is recorded.
        await commit_role(catalog, caller, ops.DELETE_CATALOG_ROLE, name, _refuse, NOTHING)
    check = check_role(catalog, caller, ops.DELETE_CATALOG_ROLE, name)
    found = await find_recalled(catalog.grants, caller, check=check, recall=_ROLE_ID)
    if found is None:
        async with refusing(catalog.grants, caller, ops.DELETE_CATALOG_ROLE.name):
            if caller.key is not None:
                # What follows has no key, and would not tell whether the caller may do it.
                await check((await catalog.grants.read()).state)
            while await _take_from_users(catalog, without_key(caller), name):
                pass
        role_id = await commit_role(catalog, caller, ops.DELETE_CATALOG_ROLE, name, _delete, _ROLE_ID)
    else:
        role_id = found.result
    while await remove_grants(catalog, caller, role_id):
        pass


async def _refuse(view: View, role: FoundRole, main: Base) -> Prepared[None]:
    raise BuiltIn(
        "Every catalog has this role, so that somebody can manage it",
        field="catalogRoleName",
        fix="Delete another role, or drop the catalog.",
        name=role.entity.name,
    )


async def _delete(view: View, role: FoundRole, main: Base) -> Prepared[ObjId]:
    role_id = role.entity.id
    key = role_key(role.entity.name)
    changes: Changes = {
        "names": {key: None},
        "ids": {encode_id_key(role_id): None},
        **await remove_assignments_of_role(view, role_id, most=MOST_AT_ONCE + 1),
        **await remove_grants_of_role(view, role_id, most=MOST_AT_ONCE),
    }
    return Prepared(role_id, changes, feed=[role_change("catalog-role-deleted", role, "names", key)])


async def _take_from_users(catalog: OpenCatalog, caller: Caller, name: str) -> bool:
    """Whether so many have the role that some were taken away beforehand."""

    async def prepare(view: View, role: FoundRole, main: Base) -> Prepared[bool]:
        changes = await remove_assignments_of_role(view, role.entity.id, most=MOST_AT_ONCE + 1)
        entries = changes.get(ASSIGNMENTS, {})
        if len(entries) <= 2 * MOST_AT_ONCE:
            return Prepared(False)
        told = role_change("catalog-role-revoked", role, ASSIGNMENTS, b"", entries=len(entries) // 2)
        return Prepared(True, changes, feed=[told])

    return await commit_role(catalog, caller, ops.DELETE_CATALOG_ROLE, name, prepare, _IS_MORE)


async def remove_grants(catalog: OpenCatalog, caller: Caller, role_id: ObjId) -> bool:
    """Remove some grants of a role that is gone; whether there may be more."""

    async def prepare(view: View) -> Prepared[bool]:
        if await view.find("ids", encode_id_key(role_id)) is not None:
            return Prepared(False)
        changes = await remove_grants_of_role(view, role_id, most=MOST_AT_ONCE)
        return Prepared(len(changes.get(GRANTS, {})) >= 2 * MOST_AT_ONCE, changes)

    # Part of a deletion that was authorized; nothing can be granted to the role any more.
    return await commit_part(catalog.grants, caller, ops.DELETE_CATALOG_ROLE.name, prepare)
