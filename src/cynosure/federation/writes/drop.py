"""Drop a table or view at the remote, and unregister a table, which is the same there.

Must not break: what is answered to who unregisters is the version that was seen right before; the remote is
asked for nothing else in between.
"""

from abc import abstractmethod
from typing import ClassVar, TypeVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import NOTHING, Recall
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.guards import Guards
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.purging.purge import require_switched_on
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.federation.mirror.returning import end_id
from cynosure.federation.writes.abilities import require_purge, require_views
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.kinds import TABLES, VIEWS, Kind
from cynosure.federation.writes.looking import before_of
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View
from cynosure.storage.errors import FileMissing

R = TypeVar("R")


async def drop_table(scene: Scene, table: Identifier, *, is_purge_requested: bool = False) -> None:
    """See the native operation. It cannot be restored here: only the remote could."""
    await carry_out(_Purge(scene, table) if is_purge_requested else _DropTable(scene, table))


async def unregister_table(scene: Scene, table: Identifier) -> TableAnswer:
    """See the native operation."""
    return (await carry_out(_Unregistration(scene, table))).answer()


async def drop_view(scene: Scene, name: Identifier) -> None:
    """See the native operation. It cannot be restored here: only the remote could."""
    await carry_out(_DropView(scene, name))


class _Gone(Write[bool, R]):
    """What the remote answers is nothing: `True` stands for that."""

    operation: ClassVar[Operation]
    kind: ClassVar[Kind] = TABLES
    is_blind: ClassVar[bool] = True
    """Whether what the remote has need not be readable."""

    def __init__(self, scene: Scene, name: Identifier) -> None:
        super().__init__(scene)
        self._named = name

    async def check(self, view: View) -> Guards:
        target = self.kind.target(self.catalog, self._named)
        return await self.catalog.authorize(view, self.caller, self.operation, target)

    async def look(self) -> None:
        try:
            await self.kind.look(self.scene, self._named)
        except FileMissing:
            # What cannot be read can still be dropped, as what it was when it was last seen.
            if not self.is_blind:
                raise

    async def judge(self, view: State) -> Before:
        await require_open(view)
        await self.kind.require_ref(view, self._named)
        known = await self.kind.load_known(self.scene, view, self._named)
        return Before() if known is None else before_of(known)

    async def send(self, key: str | None) -> bool:
        await self.remote.drop_table(self._named, is_purge=False, key=key)
        return True

    async def find(self, before: Before) -> bool | Again | None:
        found = await self.kind.find(self.scene, self._named)
        return True if found is None or found.uuid != before.uuid else AGAIN

    async def keep(self, view: View, answer: bool) -> Prepared[R]:
        gone = await self.kind.prepare_forgotten(self.catalog, self.caller, view, self._named)
        changes: Changes = {name: dict(entries) for name, entries in gone.changes.items()}
        # Also where somebody has seen meanwhile that it is gone.
        merge(changes, end_id(self.before.uuid))
        return Prepared(self.result(), changes, gone.objects, gone.feed)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.forget(self.catalog, self.kind.key(self._named))

    @abstractmethod
    def result(self) -> R:
        """What the caller is answered."""


class _Drop(_Gone[None]):
    @property
    def recall(self) -> Recall[None]:
        return NOTHING

    def result(self) -> None:
        return None


class _DropTable(_Drop):
    name: ClassVar[str] = ops.DROP_TABLE.name
    operation: ClassVar[Operation] = ops.DROP_TABLE


class _Purge(_Drop):
    name: ClassVar[str] = ops.PURGE_TABLE.name
    operation: ClassVar[Operation] = ops.PURGE_TABLE

    async def look(self) -> None:
        require_switched_on(self.catalog)
        require_purge(self.scene, self.name)
        await super().look()

    async def send(self, key: str | None) -> bool:
        await self.remote.drop_table(self._named, is_purge=True, key=key)
        return True


class _DropView(_Drop):
    name: ClassVar[str] = ops.DROP_VIEW.name
    operation: ClassVar[Operation] = ops.DROP_VIEW
    kind: ClassVar[Kind] = VIEWS

    async def look(self) -> None:
        require_views(self.scene, self.name)
        await super().look()

    async def send(self, key: str | None) -> bool:
        await self.remote.drop_view(self._named, key=key)
        return True


class _Unregistration(_Gone[ManagedTable]):
    name: ClassVar[str] = ops.UNREGISTER_TABLE.name
    operation: ClassVar[Operation] = ops.UNREGISTER_TABLE
    is_blind: ClassVar[bool] = False

    def __init__(self, scene: Scene, table: Identifier) -> None:
        super().__init__(scene, table)
        self._last: ManagedTable | None = None

    @property
    def recall(self) -> Recall[ManagedTable]:
        return RecalledTable(self.catalog, self.caller, ops.UNREGISTER_TABLE, self._named)

    async def judge(self, view: State) -> Before:
        before = await super().judge(view)
        ref = await require_table_ref(view, self._named)
        self._last = await load_table_at(view, ref.id, self.catalog.shared.tables)
        return before

    def result(self) -> ManagedTable:
        if self._last is None:
            # Only of a repeated request: the remote dropped it for the first one, whose answer was lost.
            raise NoSuchTable(str(self._named))
        return self._last
