"""Detach a policy from a catalog, namespace or table."""

from cynosure.auth.caller import Caller
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.attaching import authorize_mapping, mapping_change
from cynosure.catalog.errors import NoSuchMapping
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import MAPPINGS, both_keys, target_key
from cynosure.catalog.policies.placing import AttachTo, kind_of, load_target_id
from cynosure.catalog.policy_types import detach_operations, name_operation
from cynosure.catalog.resolve import load_policy, require_open
from cynosure.persistence.commit import Prepared, View


async def detach_policy(catalog: OpenCatalog, caller: Caller, path: Identifier, from_: AttachTo) -> None:
    """Detach it; `NoSuchMapping` when it is not attached there."""
    target = from_.target(catalog.entity.id, catalog.entity.name)
    operations = detach_operations(kind_of(target))

    async def check(view: View) -> Guards:
        return await authorize_mapping(catalog, caller, view, operations, path, target)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        policy = await load_policy(view, path)
        target_id = await load_target_id(view, target)
        before = await view.find(MAPPINGS, target_key(target_id, policy.id))
        if before is None:
            raise NoSuchMapping(str(path), f"{target.kind} {target.name}")
        change = mapping_change("policy-detached", path, policy, target, target_id, before=before)
        return Prepared(None, {MAPPINGS: dict.fromkeys(both_keys(policy.id, target_id))}, feed=[change])

    name = await name_operation(catalog, path, *operations)
    await catalog.commit_checked(caller, name, check, prepare, NOTHING)
