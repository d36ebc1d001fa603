"""Rename a table or view at the remote. Here it keeps its id, and with it its grants and policies."""

from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import NOTHING, Recall
from cynosure.catalog.guards import Guards
from cynosure.catalog.names import Identifier
from cynosure.catalog.resolve import require_free_target, require_namespace, require_open
from cynosure.federation.writes.abilities import require_name, require_views
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.kinds import TABLES, VIEWS, Kind
from cynosure.federation.writes.looking import before_of, look_at_name, look_at_namespace
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View


async def rename_table(scene: Scene, source: Identifier, destination: Identifier) -> None:
    """See the native operation."""
    await carry_out(_RenameTable(scene, source, destination))


async def rename_view(scene: Scene, source: Identifier, destination: Identifier) -> None:
    """See the native operation."""
    await carry_out(_RenameView(scene, source, destination))


class _Rename(Write[bool, None]):
    """What the remote answers is nothing: `True` stands for that."""

    operation: ClassVar[Operation]
    kind: ClassVar[Kind]

    def __init__(self, scene: Scene, source: Identifier, destination: Identifier) -> None:
        super().__init__(scene)
        self._source = source
        self._destination = destination

    @property
    def recall(self) -> Recall[None]:
        return NOTHING

    async def check(self, view: View) -> Guards:
        source = self.kind.target(self.catalog, self._source)
        into = self.catalog.namespace(self._destination.namespace)
        return await self.catalog.authorize(view, self.caller, self.operation, source, into)

    async def look(self) -> None:
        require_name(self.scene, self._destination, field="destination")
        await self.kind.look(self.scene, self._source)
        await look_at_namespace(self.scene, self._destination.namespace)
        await look_at_name(self.scene, self._destination)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        await self.kind.require_ref(view, self._source)
        await require_namespace(view, self._destination.namespace)
        await require_free_target(view, self._source, self._destination)
        known = await self.kind.load_known(self.scene, view, self._source)
        return Before() if known is None else before_of(known)

    async def send(self, key: str | None) -> bool:
        await self.kind.rename(self.remote, self._source, self._destination, key)
        return True

    async def find(self, before: Before) -> bool | Again | None:
        there = await self.kind.find(self.scene, self._destination)
        here = await self.kind.find(self.scene, self._source)
        is_there = there is not None and there.uuid == before.uuid
        is_here = here is not None and here.uuid == before.uuid
        if is_there and is_here:
            # A remote that renames in two steps (Glue) was cut off between them.
            return None
        return True if is_there else AGAIN if is_here else None

    async def keep(self, view: View, answer: bool) -> Prepared[None]:
        prepare, uuid = self.kind.prepare_moved, self.before.uuid
        return await prepare(self.catalog, self.caller, view, self._source, self._destination, uuid)

    def note(self, asked_s: float) -> None:
        freshness = self.scene.federation.freshness
        freshness.forget(self.catalog, self.kind.key(self._source))
        # Its file or entry may be another version by the rename: who loads it next looks.
        freshness.forget(self.catalog, self.kind.key(self._destination))


class _RenameTable(_Rename):
    name: ClassVar[str] = ops.RENAME_TABLE.name
    operation: ClassVar[Operation] = ops.RENAME_TABLE
    kind: ClassVar[Kind] = TABLES


class _RenameView(_Rename):
    name: ClassVar[str] = ops.RENAME_VIEW.name
    operation: ClassVar[Operation] = ops.RENAME_VIEW
    kind: ClassVar[Kind] = VIEWS

    async def look(self) -> None:
        require_views(self.scene, self.name)
        await super().look()
