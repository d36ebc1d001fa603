"""Attach a policy to a catalog, namespace or table, or change the parameters it is attached with."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import find_recalled, refusing
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.attaching import authorize_mapping, mapping_change, surroundings_of
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.errors import PolicyTypeAttached
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.guards import Guards
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.attached import load_policy_by_id
from cynosure.catalog.policies.mappings import (
    MAPPINGS,
    POLICY_MAPPING,
    PolicyMapping,
    both_keys,
    load_mappings,
    target_key,
    target_prefix,
)
from cynosure.catalog.policies.placing import AttachTo, kind_of, load_target_id
from cynosure.catalog.policies.types import Attachable
from cynosure.catalog.policy_types import (
    attach_operations,
    find_policy,
    get_policy_type,
    is_restriction,
    name_operation,
    parse_content,
)
from cynosure.catalog.properties import check_properties
from cynosure.catalog.resolve import find_table_ref, load_policy, require_open
from cynosure.catalog.targets import TableTarget
from cynosure.persistence.commit import Prepared, View, find_object
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


async def attach_policy(
    catalog: OpenCatalog,
    caller: Caller,
    path: Identifier,
    to: AttachTo,
    parameters: Mapping[str, str] | None = None,
) -> None:
    """Attach it. Attached already, it gets these parameters instead of those it had.

    `PolicyTypeAttached` when the target has another policy of a type of which only one can count.
    """
    check_properties(parameters or {}, catalog.shared.settings.sizes, field="parameters")
    target = to.target(catalog.entity.id, catalog.entity.name)
    operations = attach_operations(kind_of(target))

    async def check(view: View) -> Guards:
        return await authorize_mapping(catalog, caller, view, operations, path, target)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        policy = await load_policy(view, path)
        target_id = await load_target_id(view, target)
        await _require_free(view, policy, target, target_id)
        kind = get_policy_type(policy.type)
        parsed = parse_content(kind, policy.content)
        detail = await kind.check_target(parsed, surroundings_of(catalog), view, target)
        before = await find_object(view, MAPPINGS, target_key(target_id, policy.id), POLICY_MAPPING)
        mapping = PolicyMapping(
            policy_id=policy.id,
            target_id=target_id,
            target_kind=kind_of(target),
            attached_us=catalog.shared.persistence.clock.now_us(),
            attached_by=caller.principal,
            parameters=dict(parameters or {}),
            detail=raw_detail(detail),
        )
        if before is not None:
            mapping = structs.replace(before, parameters=mapping.parameters, detail=mapping.detail)
            if mapping == before:
                return Prepared(None)
        new = NewObject(POLICY_MAPPING, catalog.shared.persistence.ids.next(), mapping)
        value = ObjRef(new.id, POLICY_MAPPING.name).pack()
        change = mapping_change("policy-attached", path, policy, target, target_id, after=value)
        return Prepared(
            None, {MAPPINGS: dict.fromkeys(both_keys(policy.id, target_id), value)}, [new], [change]
        )

    if await find_recalled(catalog.committer, caller, check=check, recall=NOTHING) is not None:
        return
    name = await name_operation(catalog, path, *operations)
    async with refusing(catalog.committer, caller, name):
        await _import(catalog, caller, path, target, check)
    await catalog.commit_checked(caller, name, check, prepare, NOTHING)


async def _import(
    catalog: OpenCatalog,
    caller: Caller,
    path: Identifier,
    target: Attachable,
    check: Callable[[View], Awaitable[Guards]],
) -> None:
    """Import a table of which only the file is known: a restriction is checked against its columns."""
    if not isinstance(target, TableTarget):
        return
    state = await catalog.read()
    ref = await find_table_ref(state, target.path)
    policy = await find_policy(state, path)
    if ref is None or policy is None or ref.type != POINTER.name or not is_restriction(policy.type):
        return
    await check(state)
    await import_pointer(catalog, caller, target.path)


async def _require_free(view: View, policy: PolicyEntity, target: Attachable, target_id: ObjId) -> None:
    """Refuse a second policy of a type of which a target can have one."""
    kind = get_policy_type(policy.type)
    if kind.is_restriction or not kind.is_inheritable:
        return
    for mapping in await load_mappings(view, target_prefix(target_id)):
        if mapping.policy_id != policy.id:
            other, entity = await load_policy_by_id(view, mapping.policy_id)
            if entity.type == policy.type:
                raise PolicyTypeAttached(policy.type, str(other), f"{target.kind} {target.name}")
