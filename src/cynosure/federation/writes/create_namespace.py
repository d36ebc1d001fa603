"""Create a namespace at the remote."""

from collections.abc import Mapping
from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.errors import NamespaceExists, NoSuchNamespace
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_namespace_location
from cynosure.catalog.names import Namespace, namespace_key, namespace_text
from cynosure.catalog.properties import check_properties, check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_namespace, require_open
from cynosure.federation.mirror import prepare_namespace
from cynosure.federation.writes.abilities import require_namespace_name
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import look_at_namespace
from cynosure.federation.writes.placing import require_choosable_home
from cynosure.federation.writes.versions import version_of
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View


async def create_namespace(
    scene: Scene, namespace: Namespace, properties: Mapping[str, str]
) -> NamespaceEntity:
    """See the native operation."""
    check_properties(properties, scene.catalog.shared.settings.sizes)
    check_reserved(properties)
    return (await carry_out(_Creation(scene, namespace, properties))).value


class _Creation(Write[Mapping[str, str], Version[NamespaceEntity]]):
    name: ClassVar[str] = ops.CREATE_NAMESPACE.name

    def __init__(self, scene: Scene, namespace: Namespace, properties: Mapping[str, str]) -> None:
        super().__init__(scene)
        self._namespace = namespace
        self._properties = dict(properties)

    @property
    def recall(self) -> Recall[Version[NamespaceEntity]]:
        return RecalledVersion(NAMESPACE)

    async def check(self, view: View) -> Guards:
        parent = self.catalog.namespace(self._namespace[:-1])
        return await self.catalog.authorize(view, self.caller, ops.CREATE_NAMESPACE, parent)

    async def look(self) -> None:
        require_namespace_name(self.scene, self._namespace)
        if len(self._namespace) > 1:
            await look_at_namespace(self.scene, self._namespace[:-1])
        await look_at_namespace(self.scene, self._namespace)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        if len(self._namespace) > 1:
            await require_namespace(view, self._namespace[:-1])
        if await view.find("names", namespace_key(self._namespace)) is not None:
            raise NamespaceExists(namespace_text(self._namespace))
        await check_namespace_location(self.catalog, view, self._properties)
        await require_choosable_home(self.scene, view, self._namespace, self._properties, field="properties")
        return Before()

    async def send(self, key: str | None) -> Mapping[str, str]:
        return await self.remote.create_namespace(self._namespace, self._properties, key=key)

    async def find(self, before: Before) -> Mapping[str, str] | Again | None:
        try:
            properties = await self.remote.load_namespace(self._namespace)
        except NoSuchNamespace:
            return AGAIN
        # It was not there when it was asked for. Only what it was made with tells who made it.
        return properties if self._properties.items() <= properties.items() else None

    async def keep(self, view: View, answer: Mapping[str, str]) -> Prepared[Version[NamespaceEntity]]:
        prepared = await prepare_namespace(self.catalog, view, self._namespace, answer)
        version = await version_of(view, prepared, namespace_key(self._namespace))
        return Prepared(version, prepared.changes, prepared.objects, prepared.feed)
