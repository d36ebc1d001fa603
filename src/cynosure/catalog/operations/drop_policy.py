"""Drop a policy for good. What it said is in the history of the catalog, for as long as that is kept."""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.attaching import mapping_change
from cynosure.catalog.entities import POLICY
from cynosure.catalog.errors import PolicyInUse
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Identifier, policy_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import (
    MAPPINGS,
    load_mappings,
    policy_prefix,
    remove_mappings_of_policy,
)
from cynosure.catalog.policies.placing import find_target_by_id
from cynosure.catalog.policy_types import choose_operation, name_operation
from cynosure.catalog.resolve import require_open, require_policy_ref
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key

_OPERATIONS: Final = (ops.DROP_POLICY, ops.DROP_RESTRICTION)


async def drop_policy(
    catalog: OpenCatalog, caller: Caller, path: Identifier, *, is_detaching: bool = False
) -> None:
    """Drop it. `PolicyInUse` when it is attached to something and may not be detached."""
    key = policy_key(path)

    async def check(view: View) -> Guards:
        operation = await choose_operation(view, path, *_OPERATIONS)
        return await catalog.authorize(view, caller, operation, catalog.policy(path))

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_policy_ref(view, path)
        (policy,) = await view.load_many(POLICY, [ref.id])
        mappings = await load_mappings(view, policy_prefix(policy.id))
        if mappings and not is_detaching:
            raise PolicyInUse(str(path), len(mappings))
        feed: list[Change] = []
        for mapping in mappings:
            target = await find_target_by_id(view, catalog.target(), mapping)
            feed.append(mapping_change("policy-detached", path, policy, target, mapping.target_id))
        detail = {"id": policy.id, "path": (*path.namespace, path.name), "policy_type": policy.type}
        feed.append(
            Change(
                kind="policy-dropped", index="names", key=key, before=ref.pack(), detail=raw_detail(detail)
            )
        )
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {key: None},
            "ids": {encode_id_key(policy.id): None},
            MAPPINGS: await remove_mappings_of_policy(view, policy.id),
        }
        return Prepared(None, changes, feed=feed)

    name = await name_operation(catalog, path, *_OPERATIONS)
    await catalog.commit_checked(caller, name, check, prepare, NOTHING)
