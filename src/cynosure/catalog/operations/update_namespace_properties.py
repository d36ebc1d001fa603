"""Set and remove properties of a namespace."""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.entities import NAMESPACE
from cynosure.catalog.errors import NoSuchNamespace, Unprocessable
from cynosure.catalog.locations import check_namespace_location
from cynosure.catalog.names import Namespace, namespace_key, namespace_text
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_properties, check_reserved
from cynosure.catalog.resolve import require_open
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


class PropertiesUpdate(Struct, frozen=True):
    """What is to become of a namespace's properties."""

    removals: tuple[str, ...] = ()
    updates: dict[str, str] = {}


class PropertiesUpdated(Struct, frozen=True):
    """What became of them."""

    updated: list[str]
    removed: list[str]
    missing: list[str]
    """Removals of properties that were not there."""


_RECALL: Final[Recall[PropertiesUpdated]] = Sealed(PropertiesUpdated)


async def update_namespace_properties(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, wanted: PropertiesUpdate
) -> PropertiesUpdated:
    """Change the properties; when all are as wanted already, nothing is committed."""
    require_disjoint(wanted)
    check_reserved((*wanted.updates, *wanted.removals))
    persistence = catalog.shared.persistence
    key = namespace_key(namespace)

    async def prepare(view: View) -> Prepared[PropertiesUpdated]:
        await require_open(view)
        before = await view.find("names", key)
        if before is None:
            raise NoSuchNamespace(namespace_text(namespace))
        (entity,) = await view.load_many(NAMESPACE, [ObjRef.unpack(before).id])
        properties = {**entity.properties, **wanted.updates}
        removals = dict.fromkeys(wanted.removals)
        removed = [name for name in removals if properties.pop(name, None) is not None]
        answer = PropertiesUpdated(
            updated=list(wanted.updates),
            removed=removed,
            missing=[name for name in removals if name not in entity.properties],
        )
        if properties == entity.properties:
            return Prepared(answer)
        check_properties(properties, catalog.shared.settings.sizes, field="updates")
        await check_namespace_location(catalog, view, wanted.updates, field="updates")
        state_id = persistence.ids.next()
        changed = msgspec.structs.replace(
            entity, updated_us=persistence.clock.now_us(), properties=properties
        )
        after = ObjRef(state_id, NAMESPACE.name).pack()
        return Prepared(
            answer,
            changes={"names": {key: after}},
            objects=[NewObject(NAMESPACE, state_id, changed)],
            feed=[
                Change(
                    kind="namespace-updated",
                    index="names",
                    key=key,
                    before=before,
                    after=after,
                    detail=raw_detail({"id": entity.id, "path": namespace}),
                )
            ],
        )

    target = catalog.namespace(namespace)
    return (await catalog.commit(caller, ops.UPDATE_NAMESPACE, (target,), prepare, _RECALL)).result


def require_disjoint(wanted: PropertiesUpdate) -> None:
    """Refuse a property that is to be both set and removed."""
    both = sorted(wanted.updates.keys() & set(wanted.removals))
    if both:
        raise Unprocessable(
            "A property is to be both set and removed",
            fix="Name each property in updates or in removals, not in both.",
            properties=both[:10],
        )
