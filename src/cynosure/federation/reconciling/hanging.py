"""Grants and policies that hang on something in the mirror."""

from typing import NamedTuple

from cynosure.auth.rbac.grants import GRANTS, second_id, securable_prefix, unpack_privileges
from cynosure.auth.rbac.privileges import members
from cynosure.catalog.names import path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import load_mappings, target_prefix
from cynosure.catalog.roles.lookup import load_roles_by_id
from cynosure.federation.reconciling.drift import HangingGrant
from cynosure.persistence.commit import State
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.spi import ObjId


class Hanging(NamedTuple):
    """What hangs on one thing."""

    grants: tuple[HangingGrant, ...] = ()
    policies: tuple[str, ...] = ()


async def find_hanging(catalog: OpenCatalog, state: State, entity_id: ObjId) -> Hanging:
    """All that is granted on it and attached to it, by names. What is above it does not hang on it."""
    grants = (await catalog.grants.read()).state
    found: list[HangingGrant] = []
    for key, value in await scan_all(grants, GRANTS, securable_prefix(entity_id)):
        names = tuple(each.name for each in members(unpack_privileges(value)))
        found += [HangingGrant(role.name, names) for role in await load_roles_by_id(grants, [second_id(key)])]
    policies: list[str] = []
    for mapping in await load_mappings(state, target_prefix(entity_id)):
        key_of_policy = await state.find("ids", encode_id_key(mapping.policy_id))
        if key_of_policy is not None:
            policies.append(".".join(path_of(key_of_policy)))
    return Hanging(tuple(found), tuple(policies))
