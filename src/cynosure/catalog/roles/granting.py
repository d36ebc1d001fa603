"""The change that grants or revokes: the same but for its direction.

Must not break: what it is granted on exists in the very state of the catalog that the commit is guarded by.
"""

from cynosure.auth.ports import Target
from cynosure.auth.rbac.grants import GRANTS, change_grant, securable_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.changing import role_change
from cynosure.catalog.roles.lookup import FoundRole
from cynosure.catalog.roles.securables import Grant, load_securable_id
from cynosure.persistence.commit import Base, Prepared, View


async def prepare_grant(
    catalog: OpenCatalog,
    view: View,
    role: FoundRole,
    main: Base,
    target: Target,
    grant: Grant,
    *,
    is_held: bool,
) -> Prepared[None]:
    """Let the role hold the privilege on the target, or no longer; nothing changes when it is so already."""
    securable = await load_securable_id(main.state, target)
    role_id, bit = role.entity.id, grant.privilege.bit
    changes = await change_grant(
        view, role_id, securable, add=bit if is_held else 0, remove=0 if is_held else bit
    )
    told = role_change(
        "catalog-role-granted" if is_held else "catalog-role-revoked",
        role,
        GRANTS,
        securable_key(securable, role_id),
        privilege=grant.privilege.name,
        on_kind=grant.kind,
        on=grant.on or catalog.entity.name,
    )
    guards = {} if grant.kind == "catalog" else {main.ref.key: main.ref.head}
    return Prepared(None, changes, feed=[told] if changes else [], guards=guards)
