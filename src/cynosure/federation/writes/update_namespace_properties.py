"""Set and remove properties of a namespace at the remote."""

from typing import ClassVar, Final

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_namespace_location
from cynosure.catalog.names import Namespace
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    PropertiesUpdated,
    require_disjoint,
)
from cynosure.catalog.properties import check_properties, check_reserved
from cynosure.catalog.resolve import load_namespace, require_open
from cynosure.federation.mirror import prepare_namespace
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import look_at_namespace
from cynosure.federation.writes.placing import require_choosable_home
from cynosure.federation.writes.write import Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View

_RECALL: Final[Recall[PropertiesUpdated]] = Sealed(PropertiesUpdated)


async def update_namespace_properties(
    scene: Scene, namespace: Namespace, wanted: PropertiesUpdate
) -> PropertiesUpdated:
    """See the native operation."""
    require_disjoint(wanted)
    check_reserved((*wanted.updates, *wanted.removals))
    return await carry_out(_Update(scene, namespace, wanted))


class _Update(Write[bool, PropertiesUpdated]):
    """What the remote answers is nothing: `True` stands for that."""

    name: ClassVar[str] = ops.UPDATE_NAMESPACE.name

    def __init__(self, scene: Scene, namespace: Namespace, wanted: PropertiesUpdate) -> None:
        super().__init__(scene)
        self._namespace = namespace
        self._wanted = wanted
        self._before: dict[str, str] = {}

    @property
    def recall(self) -> Recall[PropertiesUpdated]:
        return _RECALL

    async def check(self, view: View) -> Guards:
        target = self.catalog.namespace(self._namespace)
        return await self.catalog.authorize(view, self.caller, ops.UPDATE_NAMESPACE, target)

    async def look(self) -> None:
        await look_at_namespace(self.scene, self._namespace)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        self._before = dict((await load_namespace(view, self._namespace)).properties)
        check_properties(self._after(), self.catalog.shared.settings.sizes, field="updates")
        updates = self._wanted.updates
        await check_namespace_location(self.catalog, view, updates, field="updates")
        if updates.get("location") != self._before.get("location"):
            await require_choosable_home(self.scene, view, self._namespace, updates, field="updates")
        return Before()

    async def send(self, key: str | None) -> bool:
        removals = tuple(dict.fromkeys(self._wanted.removals))
        await self.remote.update_namespace(
            self._namespace, removals=removals, updates=self._wanted.updates, key=key
        )
        return True

    async def find(self, before: Before) -> bool | Again | None:
        # Properties have no versions: what is there may be this request's doing, or another's since.
        return None

    async def keep(self, view: View, answer: bool) -> Prepared[PropertiesUpdated]:
        prepared = await prepare_namespace(self.catalog, view, self._namespace, self._after())
        removals = dict.fromkeys(self._wanted.removals)
        done = PropertiesUpdated(
            updated=list(self._wanted.updates),
            removed=[name for name in removals if name in self._before],
            missing=[name for name in removals if name not in self._before],
        )
        return Prepared(done, prepared.changes, prepared.objects, prepared.feed)

    def _after(self) -> dict[str, str]:
        after = {**self._before, **self._wanted.updates}
        return {name: value for name, value in after.items() if name not in self._wanted.removals}
