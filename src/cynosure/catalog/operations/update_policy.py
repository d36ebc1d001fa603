"""Change what a policy says. Its type never changes.

Must not break: new content of a restriction is checked against everything it is attached to, as attaching it
there would, so that no table is left with a filter that cannot be applied.
"""

from typing import Final

from msgspec import Struct, structs

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.attaching import authorize_asking, surroundings_of
from cynosure.catalog.changes import Changes
from cynosure.catalog.entities import POLICY, PolicyEntity
from cynosure.catalog.errors import PolicyVersionMismatch
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.names import Identifier, policy_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import (
    MAPPINGS,
    POLICY_MAPPING,
    PolicyMapping,
    both_keys,
    load_mappings,
    policy_prefix,
)
from cynosure.catalog.policies.placing import find_target_by_id
from cynosure.catalog.policies.types import PolicyType
from cynosure.catalog.policy_types import (
    check_description,
    choose_operation,
    find_policy,
    get_policy_type,
    name_operation,
    parse_content,
)
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_open, require_policy_ref
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject

_OPERATIONS: Final = (ops.UPDATE_POLICY, ops.UPDATE_RESTRICTION)


class PolicyUpdate(Struct, frozen=True):
    """What a policy is to say. What is left out stays as it is."""

    content: str | None = None
    description: str | None = None
    current_version: int | None = None
    """Of the policy that the change is meant for; any other is a conflict. Left out: whatever is there."""


async def update_policy(
    catalog: OpenCatalog, caller: Caller, path: Identifier, wanted: PolicyUpdate
) -> PolicyEntity:
    """Change it. When it says so already, nothing is committed and its version stays."""
    check_description(wanted.description)
    persistence = catalog.shared.persistence
    key = policy_key(path)

    async def check(view: View) -> Guards:
        operation = await choose_operation(view, path, *_OPERATIONS)
        guards = await catalog.authorize(view, caller, operation, catalog.policy(path))
        policy = await find_policy(view, path)
        if policy is None or wanted.content in (None, policy.content):
            return guards
        parsed = parse_content(get_policy_type(policy.type), wanted.content)
        return join_guards(guards, await authorize_asking(catalog, caller, view, parsed))

    async def prepare(view: View) -> Prepared[Version[PolicyEntity]]:
        await require_open(view)
        before = await require_policy_ref(view, path)
        (entity,) = await view.load_many(POLICY, [before.id])
        expected = wanted.current_version
        if expected is not None and expected != entity.version:
            raise PolicyVersionMismatch(str(path), expected, entity.version)
        content = entity.content if wanted.content is None else wanted.content
        description = entity.description if wanted.description is None else wanted.description
        kind = get_policy_type(entity.type)
        parsed = parse_content(kind, content)
        if (content, description) == (entity.content, entity.description):
            return Prepared(Version(before, entity))
        changed = structs.replace(
            entity,
            content=content,
            description=description,
            version=entity.version + 1,
            updated_us=persistence.clock.now_us(),
        )
        new = NewObject(POLICY, persistence.ids.next(), changed)
        ref = ObjRef(new.id, POLICY.name)
        after = ref.pack()
        mappings, objects = await _check_again(catalog, view, kind, parsed, entity)
        detail = {
            "id": entity.id,
            "path": (*path.namespace, path.name),
            "policy_type": entity.type,
            "version": changed.version,
        }
        change = Change(
            kind="policy-updated",
            index="names",
            key=key,
            before=before.pack(),
            after=after,
            detail=raw_detail(detail),
        )
        changes: Changes = {"names": {key: after}, MAPPINGS: mappings}
        return Prepared(Version(ref, changed), changes, [new, *objects], [change])

    name = await name_operation(catalog, path, *_OPERATIONS)
    recall = RecalledVersion(POLICY)
    return (await catalog.commit_checked(caller, name, check, prepare, recall)).result.value


async def _check_again(
    catalog: OpenCatalog, view: View, kind: PolicyType, parsed: object, policy: PolicyEntity
) -> tuple[dict[bytes, bytes | None], list[NewObject]]:
    """What is to be kept with the mappings of the policy now."""
    changes: dict[bytes, bytes | None] = {}
    objects: list[NewObject] = []
    for mapping in await load_mappings(view, policy_prefix(policy.id)):
        target = await find_target_by_id(view, catalog.target(), mapping)
        if target is None:
            continue  # Dropped: checked by whoever reads it after it was restored.
        detail = raw_detail(await kind.check_target(parsed, surroundings_of(catalog), view, target))
        if detail != mapping.detail:
            new = _rewritten(catalog, mapping, detail=detail)
            value = ObjRef(new.id, POLICY_MAPPING.name).pack()
            changes |= dict.fromkeys(both_keys(policy.id, mapping.target_id), value)
            objects.append(new)
    return changes, objects


def _rewritten(catalog: OpenCatalog, mapping: PolicyMapping, **fields: object) -> NewObject:
    return NewObject(
        POLICY_MAPPING, catalog.shared.persistence.ids.next(), structs.replace(mapping, **fields)
    )
