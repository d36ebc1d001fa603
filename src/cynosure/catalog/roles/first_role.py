"""`catalog_admin`, the role that every catalog begins with: it manages access and metadata, but not data.

Must not break: a catalog that is listed has it, and a principal role that exists has it. It is made before
the catalog is listed, and made sure of at every start, for catalogs of earlier versions and those whose
creation was interrupted.
"""

from collections.abc import Sequence
from typing import Final

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.committing import commit_part
from cynosure.auth.entities import CATALOG_ADMIN, CATALOG_ROLE, SERVICE_ADMIN, PrincipalRoleEntity
from cynosure.auth.principals import find_role_in, load_roles_in, read_principals, require_role
from cynosure.auth.rbac.grants import (
    ASSIGNMENTS,
    GRANTS,
    THE_CATALOG,
    assignee_key,
    assignee_prefix,
    by_role_key,
    pack_privileges,
    second_id,
    securable_key,
    usage_key,
)
from cynosure.auth.rbac.privileges import Privilege, set_of
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import GRANTS_CLOSED
from cynosure.catalog.roles.changing import role_change
from cynosure.catalog.roles.create_catalog_role import prepared_role
from cynosure.catalog.roles.lookup import FoundRole, find_role
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import REALMS, catalog_reference
from cynosure.persistence.scopes import list_catalog_ids, list_realms
from cynosure.persistence.spi import CatalogId
from cynosure.persistence.store import NewObject

ADMIN_PRIVILEGES: Final = set_of((Privilege.CATALOG_MANAGE_ACCESS, Privilege.CATALOG_MANAGE_METADATA))


async def ensure_catalog_admins(directory: Directory) -> int:
    """Make sure of it in all catalogs of all realms; how many had to be mended. After realms have `root`."""
    persistence = directory.shared.persistence
    mended = 0
    for realm in await list_realms(persistence.committer(REALMS)):
        caller = operator_caller("system", realm)
        for catalog in await list_catalog_ids(directory.committer(realm)):
            mended += await ensure_catalog_admin(persistence, caller, catalog)
    return mended


async def ensure_catalog_admin(
    persistence: Persistence, caller: Caller, catalog: CatalogId, admins: Sequence[str] | None = None
) -> bool:
    """Make the role if it is missing, and give it to `admins` if nobody has it; whether anything was done.

    Without `admins` that is `service_admin`, if the realm has it by now. For a caller that may create
    catalogs: no further right is asked for.
    """
    committer = persistence.committer(catalog_reference(caller.realm, catalog, "grants"))

    async def prepare(view: View) -> Prepared[bool]:
        if await view.find("ids", GRANTS_CLOSED) is not None:
            return Prepared(False)
        principals = await read_principals(persistence, caller.realm)
        role, changes, objects, feed = await _make_role(persistence, view)
        users: list[PrincipalRoleEntity] = []
        if not await _has_user(view, principals.state, role):
            users = await _find_users(principals.state, admins)
        entries = changes.setdefault(ASSIGNMENTS, {})
        for user in users:
            key = usage_key(user.id, role.entity.id)
            entries[key] = entries[assignee_key(role.entity.id, user.id)] = b""
            feed.append(
                role_change("catalog-role-assigned", role, ASSIGNMENTS, key, principal_role=user.name)
            )
        guards = {principals.ref.key: principals.ref.head}
        return Prepared(bool(feed), changes if feed else {}, objects, feed, guards)

    return await commit_part(committer, caller, "create-catalog", prepare)


async def _make_role(
    persistence: Persistence, view: View
) -> tuple[FoundRole, dict[str, dict[bytes, bytes | None]], list[NewObject], list[Change]]:
    found = await find_role(view, CATALOG_ADMIN)
    if found is not None:
        return found, {}, [], []
    made = prepared_role(CATALOG_ADMIN, {}, persistence.ids.next(), persistence.clock.now_us())
    role_id, privileges = made.result.id, pack_privileges(ADMIN_PRIVILEGES)
    changes: dict[str, dict[bytes, bytes | None]] = {
        index: dict(made.changes[index]) for index in made.changes
    }
    changes[GRANTS] = {
        securable_key(THE_CATALOG, role_id): privileges,
        by_role_key(role_id, THE_CATALOG): privileges,
    }
    return (
        FoundRole(ObjRef(role_id, CATALOG_ROLE.name), made.result),
        changes,
        list(made.objects),
        list(made.feed),
    )


async def _has_user(view: View, principals: View, role: FoundRole) -> bool:
    entries = await scan_all(view, ASSIGNMENTS, assignee_prefix(role.entity.id))
    return bool(await load_roles_in(principals, [second_id(key) for key, _ in entries]))


async def _find_users(principals: View, admins: Sequence[str] | None) -> list[PrincipalRoleEntity]:
    if admins:
        return [(await require_role(principals, name)).entity for name in admins]
    # A realm that has not been given its first principal yet gets it at the next start, and this then.
    user = await find_role_in(principals, SERVICE_ADMIN)
    return [] if user is None else [user]
