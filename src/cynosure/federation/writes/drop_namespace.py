"""Drop a namespace at the remote."""

from contextlib import suppress
from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING, Recall
from cynosure.catalog.errors import NamespaceNotEmpty, NoSuchNamespace
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Namespace, generics_prefix, namespace_text, policies_prefix
from cynosure.catalog.resolve import require_namespace, require_open
from cynosure.common.errors import CynosureError
from cynosure.federation.mirror import forget_namespace, prepare_forgotten_namespace
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import look_at_namespace
from cynosure.federation.writes.write import Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View


async def drop_namespace(scene: Scene, namespace: Namespace) -> None:
    """See the native operation. What was seen in it and is gone from the remote is forgotten with it."""
    await carry_out(_Drop(scene, namespace))


class _Drop(Write[bool, None]):
    """What the remote answers is nothing: `True` stands for that."""

    name: ClassVar[str] = ops.DROP_NAMESPACE.name

    def __init__(self, scene: Scene, namespace: Namespace) -> None:
        super().__init__(scene)
        self._namespace = namespace

    @property
    def recall(self) -> Recall[None]:
        return NOTHING

    async def check(self, view: View) -> Guards:
        target = self.catalog.namespace(self._namespace)
        return await self.catalog.authorize(view, self.caller, ops.DROP_NAMESPACE, target)

    async def look(self) -> None:
        await look_at_namespace(self.scene, self._namespace)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        await require_namespace(view, self._namespace)
        # What is ours in it the remote does not know; what is the remote's, it says itself.
        for prefix_of in (policies_prefix, generics_prefix):
            if await view.scan("names", prefix=prefix_of(self._namespace), limit=1):
                raise NamespaceNotEmpty(namespace_text(self._namespace))
        return Before()

    async def send(self, key: str | None) -> bool:
        await self.remote.drop_namespace(self._namespace, key=key)
        await self._forget_contents()
        return True

    async def find(self, before: Before) -> bool | Again | None:
        try:
            await self.remote.load_namespace(self._namespace)
        except NoSuchNamespace:
            await self._forget_contents()
            return True
        # It may be another one by now: nothing tells namespaces of one name apart.
        return None

    async def keep(self, view: View, answer: bool) -> Prepared[None]:
        return await prepare_forgotten_namespace(self.catalog, self.caller, view, self._namespace)

    async def _forget_contents(self) -> None:
        """What was seen in it, one by one."""
        # The remote has done its part: whatever stays here is found out by the next who looks.
        with suppress(CynosureError):
            await forget_namespace(self.catalog, self.caller, self._namespace)
