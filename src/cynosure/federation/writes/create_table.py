"""Create a table at the remote, or stage one: the remote says what it would be, and it is reserved here.

A REST remote builds a table itself, and chooses its place if the client did not; pointers get the metadata
that is built here. Where a table is already that the remote would choose again, as after a rename, the place
is chosen here. Either way what is answered must be allowed in this catalog.

Must not break: whoever is given access to the files of a staged table writes before there is a table, so its
places are reserved here before this returns, as those of native tables are.
"""

import uuid
from typing import ClassVar, TypeVar

from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall
from cynosure.catalog.claims import Places, claim, creator_of, places_of
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import default_location
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.operations.create_table import (
    CreatedTable,
    CreateTable,
    RecalledStaged,
    Staged,
    build_metadata,
    prepare_reservation,
)
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import load_namespace, require_free_name, require_open
from cynosure.federation.mirror import prepare_table
from cynosure.federation.remote import NewTable, RemoteTable
from cynosure.federation.writes.abilities import require_name
from cynosure.federation.writes.carrying import carry_out
from cynosure.federation.writes.looking import find_table, look_at_name, look_at_namespace
from cynosure.federation.writes.placing import is_usual_place_taken, require_choosable
from cynosure.federation.writes.write import AGAIN, Again, Before, Scene, Write
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.commit import Prepared, State, View

R = TypeVar("R")


async def create_table(scene: Scene, wanted: CreateTable, *, delegation: Delegation) -> CreatedTable:
    """See the native operation. A staged one is always reserved."""
    check_reserved(wanted.properties)
    is_delegated = bool(delegation)
    if wanted.is_staged:
        staged = await carry_out(_Staging(scene, wanted, is_delegated=is_delegated))
        answer = TableAnswer(staged.json, None, None)
        return CreatedTable(answer, staged.state(), is_delegated, is_staged=True)
    created = await carry_out(_Creation(scene, wanted, is_delegated=is_delegated))
    return CreatedTable(created.answer(), created.state, is_delegated)


class _New(Write[RemoteTable, R]):
    """What is common to creating and staging."""

    name: ClassVar[str] = ops.CREATE_TABLE.name

    def __init__(self, scene: Scene, wanted: CreateTable, *, is_delegated: bool) -> None:
        super().__init__(scene)
        self._wanted = wanted
        self._table = Identifier(wanted.namespace, wanted.name)
        self._operation = ops.CREATE_TABLE_DELEGATED if is_delegated else ops.CREATE_TABLE
        self._entity_id = self.catalog.shared.persistence.ids.next()
        key, rng = self.caller.key, self.catalog.shared.persistence.rng
        # Of a request with a key always the same, so that a table of an earlier attempt is known by it.
        self._uuid = str(uuid.UUID(int=rng.getrandbits(128), version=4)) if key is None else key.derive()
        self._metadata: TableMetadata | None = None
        self._is_placed = wanted.location is not None

    async def check(self, view: View) -> Guards:
        target = self.catalog.namespace(self._table.namespace)
        return await self.catalog.authorize(view, self.caller, self._operation, target)

    async def look(self) -> None:
        require_name(self.scene, self._table)
        await look_at_namespace(self.scene, self._table.namespace)
        await look_at_name(self.scene, self._table)

    async def judge(self, view: State) -> Before:
        await require_open(view)
        namespace = await load_namespace(view, self._table.namespace)
        await require_free_name(view, self._table, for_view=False)
        wanted, catalog = self._wanted, self.catalog
        location = wanted.location or default_location(catalog, namespace, self._table, self._entity_id)
        places = places_of(catalog, location, wanted.properties)
        self._metadata = self._build(location)
        claimant = creator_of(catalog, self.caller, self._table, self._entity_id)
        own = None if wanted.location else Held(self._entity_id, location, ())
        await require_choosable(self.scene, view, self._table.namespace, places, held=own)
        await claim(view, claimant, places)
        self._is_placed = wanted.location is not None or await is_usual_place_taken(
            self.scene, view, claimant, namespace, self._table
        )
        return Before()

    async def send(self, key: str | None) -> RemoteTable:
        # Not judged: a repeated request that would be refused now. Where it was to be, the remote knows.
        place = self._wanted.location or self.catalog.base.text
        wanted = NewTable(
            table=self._table,
            metadata=self._metadata or self._build(place),
            is_staged=self._wanted.is_staged,
            is_placed=self._is_placed,
        )
        return await self.remote.create_table(wanted, key=key)

    def _build(self, location: str) -> TableMetadata:
        return build_metadata(self.catalog, self._wanted, location, self._uuid)


class _Creation(_New[ManagedTable]):
    @property
    def recall(self) -> Recall[ManagedTable]:
        return RecalledTable(self.catalog, self.caller, self._operation, self._table)

    async def find(self, before: Before) -> RemoteTable | Again | None:
        found = await find_table(self.scene, self._table)
        if found is None:
            return AGAIN
        # A remote that gives uuids of its own cannot be told from one where somebody else was faster.
        return found if found.metadata.table_uuid == self._uuid else None

    async def keep(self, view: View, answer: RemoteTable) -> Prepared[ManagedTable]:
        return await prepare_table(self.catalog, self.caller, view, self._table, answer)

    def note(self, asked_s: float) -> None:
        self.scene.federation.freshness.note(self.catalog, table_key(self._table), asked_s)


class _Staging(_New[Staged]):
    @property
    def recall(self) -> Recall[Staged]:
        return RecalledStaged()

    async def find(self, before: Before) -> RemoteTable | Again | None:
        # The remote has nothing of it.
        return AGAIN

    async def keep(self, view: View, answer: RemoteTable) -> Prepared[Staged]:
        metadata = answer.metadata
        places: Places = places_of(self.catalog, metadata.location, metadata.properties)
        return await prepare_reservation(
            self.catalog, self.caller, view, self._table, metadata, places, self._entity_id
        )
