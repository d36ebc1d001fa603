"""Create a policy in a namespace. It does nothing until it is attached to something."""

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.catalog.attaching import authorize_asking
from cynosure.catalog.entities import POLICY, PolicyEntity
from cynosure.catalog.errors import PolicyExists
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.names import Identifier, policy_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policy_types import check_description, create_operation, get_policy_type, parse_content
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_namespace, require_open
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


class CreatePolicy(Struct, frozen=True):
    """What a client wants created."""

    path: Identifier
    type: str
    content: str | None = None
    description: str | None = None


async def create_policy(catalog: OpenCatalog, caller: Caller, wanted: CreatePolicy) -> PolicyEntity:
    """Create it. `PolicyExists` when its name is taken, `InvalidPolicy` for content not of its type."""
    kind = get_policy_type(wanted.type)
    parsed = parse_content(kind, wanted.content)
    check_description(wanted.description)
    persistence = catalog.shared.persistence
    key = policy_key(wanted.path)
    target, operation = catalog.namespace(wanted.path.namespace), create_operation(kind.name)

    async def check(view: View) -> Guards:
        guards = await catalog.authorize(view, caller, operation, target)
        return join_guards(guards, await authorize_asking(catalog, caller, view, parsed))

    async def prepare(view: View) -> Prepared[Version[PolicyEntity]]:
        await require_open(view)
        await require_namespace(view, wanted.path.namespace)
        if await view.find("names", key) is not None:
            raise PolicyExists(str(wanted.path))
        now_us = persistence.clock.now_us()
        entity = PolicyEntity(
            id=persistence.ids.next(),
            type=kind.name,
            content=wanted.content,
            description=wanted.description,
            created_us=now_us,
            updated_us=now_us,
            created_by=caller.principal,
        )
        # The first version has the stable id as its own, as that of a namespace has.
        ref = ObjRef(entity.id, POLICY.name)
        state = ref.pack()
        detail = {
            "id": entity.id,
            "path": (*wanted.path.namespace, wanted.path.name),
            "policy_type": kind.name,
        }
        return Prepared(
            Version(ref, entity),
            changes={"names": {key: state}, "ids": {encode_id_key(entity.id): key}},
            objects=[NewObject(POLICY, entity.id, entity)],
            feed=[
                Change(kind="policy-created", index="names", key=key, after=state, detail=raw_detail(detail))
            ],
        )

    recall = RecalledVersion(POLICY)
    return (await catalog.commit_checked(caller, operation.name, check, prepare, recall)).result.value
