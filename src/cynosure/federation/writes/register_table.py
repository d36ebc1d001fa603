"""Register a metadata file as a table of the remote.

Must not break: the file is read and judged here first, by the rules of this catalog: what a file says counts
only where this catalog allows it, whatever the remote would take.
"""

from typing import ClassVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import Places, changer_of, claim
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_allowed
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.operations.create_table import CreatedTable
from cynosure.catalog.operations.register_table import RightToRegister, load_registrable
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_namespace, require_open
from cynosure.federation.mirror import prepare_table
from cynosure.federation.mirror.seen import ANYTHING, Expected, find_seen
from cynosure.federation.remote import RemoteTable
from cynosure.federation.writes.abilities import require_name
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import find_table, look_at_name, look_at_namespace
from cynosure.federation.writes.placing import require_choosable
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.spi import ObjId


async def register_table(
    scene: Scene, table: Identifier, metadata_location: str, *, is_overwrite: bool, delegation: Delegation
) -> CreatedTable:
    """See the native operation. The id is kept only where the file is of the same table."""
    right = RightToRegister(
        scene.catalog, scene.caller, table, is_overwrite=is_overwrite, delegation=delegation
    )
    registered = await carry_out(
        _Registration(scene, table, metadata_location, right, is_overwrite=is_overwrite)
    )
    return CreatedTable(registered.answer(), registered.state, right.is_writable)


class _Registration(Write[RemoteTable, ManagedTable]):
    name: ClassVar[str] = ops.REGISTER_TABLE.name

    def __init__(
        self,
        scene: Scene,
        table: Identifier,
        metadata_location: str,
        right: RightToRegister,
        *,
        is_overwrite: bool,
    ) -> None:
        super().__init__(scene)
        self._table = table
        self._location = metadata_location
        self._right = right
        self._is_overwrite = is_overwrite
        self._seen: Expected = ANYTHING
        """What the mirror had when the remote was asked."""

    @property
    def recall(self) -> Recall[ManagedTable]:
        return RecalledTable(self.catalog, self.caller, ops.REGISTER_TABLE, self._table)

    async def check(self, view: View) -> Guards:
        return await self._right.check(view)

    async def look(self) -> None:
        require_name(self.scene, self._table)
        await look_at_namespace(self.scene, self._table.namespace)
        await look_at_name(self.scene, self._table)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        await require_namespace(view, self._table.namespace)
        if not self._is_overwrite:
            await require_free_name(view, self._table, for_view=False)
        self._seen = await find_seen(view, table_key(self._table))
        replaced = await find_table_ref(view, self._table) if self._is_overwrite else None
        held, namespace = None if replaced is None else await load_held(view, replaced), self._table.namespace
        # Twice: before the file is read, and for what it says.
        place = Places(check_allowed(self.catalog, self._location, field="metadata-location"))
        await require_choosable(self.scene, view, namespace, place, held=held)
        file = await load_registrable(self.catalog, self.caller, view, self._table, replaced, self._location)
        await require_choosable(self.scene, view, namespace, file.places, held=held)
        claimant = changer_of(self.catalog, self.caller, ObjId(0) if held is None else held.id)
        await claim(view, claimant, file.places, before=held)
        return Before()

    async def send(self, key: str | None) -> RemoteTable:
        return await self.remote.register_table(
            self._table, self._location, is_overwrite=self._is_overwrite, key=key
        )

    async def find(self, before: Before) -> RemoteTable | Again | None:
        found = await find_table(self.scene, self._table)
        if found is None:
            return AGAIN
        # Behind an overwrite others may have committed: then it cannot be told, and must not be repeated.
        return found if found.tag.metadata_location == self._location else None

    async def keep(self, view: View, answer: RemoteTable) -> Prepared[ManagedTable]:
        seen = await find_seen(view, table_key(self._table))
        # An earlier version counts if it was asked for. Of one that somebody saw meanwhile nobody knows.
        expected = seen if seen == self._seen else ANYTHING
        return await prepare_table(self.catalog, self.caller, view, self._table, answer, expected=expected)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.note(self.catalog, table_key(self._table), asked_s)
