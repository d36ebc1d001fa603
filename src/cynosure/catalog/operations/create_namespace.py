"""Create a namespace below one that exists."""

from collections.abc import Mapping

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.errors import NamespaceExists
from cynosure.catalog.locations import check_namespace_location
from cynosure.catalog.names import Namespace, namespace_key, namespace_text
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_properties, check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_namespace, require_open
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject


async def create_namespace(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, properties: Mapping[str, str]
) -> NamespaceEntity:
    """Create it. `NamespaceExists` when it is there, `NoSuchNamespace` when its parent is not."""
    check_properties(properties, catalog.shared.settings.sizes)
    check_reserved(properties)
    persistence = catalog.shared.persistence
    key, parent = namespace_key(namespace), catalog.namespace(namespace[:-1])

    async def prepare(view: View) -> Prepared[Version[NamespaceEntity]]:
        await require_open(view)
        if len(namespace) > 1:
            await require_namespace(view, namespace[:-1])
        if await view.find("names", key) is not None:
            raise NamespaceExists(namespace_text(namespace))
        await check_namespace_location(catalog, view, properties)
        now_us = persistence.clock.now_us()
        entity = NamespaceEntity(
            id=persistence.ids.next(), created_us=now_us, updated_us=now_us, properties=dict(properties)
        )
        # The first version has the stable id as its own: one id less to draw, and nothing else has it.
        ref = ObjRef(entity.id, NAMESPACE.name)
        state = ref.pack()
        return Prepared(
            Version(ref, entity),
            changes={"names": {key: state}, "ids": {encode_id_key(entity.id): key}},
            objects=[NewObject(NAMESPACE, entity.id, entity)],
            feed=[
                Change(
                    kind="namespace-created",
                    index="names",
                    key=key,
                    after=state,
                    detail=raw_detail({"id": entity.id, "path": namespace}),
                )
            ],
        )

    recall = RecalledVersion(NAMESPACE)
    committed = await catalog.commit(caller, ops.CREATE_NAMESPACE, (parent,), prepare, recall)
    return committed.result.value
