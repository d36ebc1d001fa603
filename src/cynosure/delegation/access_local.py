"""The catalog as a worker in its own process sees it: no HTTP, no credentials, the server's own storage.

A maintainer must not break: a task reaches the files of its own table only, though the server reaches all;
and whether a table may be purged is asked of the catalog in the same way as over HTTP.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from cynosure.auth.caller import Caller, operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.file_access.modes import NOT_ASKED
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.locations import parse_place
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.end_purging import end_purging
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_tombstone import load_tombstone
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.system import SYSTEM
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput, NotFound
from cynosure.delegation.catalog_access import ClientFiles, TableAccess, TableFacts
from cynosure.persistence.spi import ObjId, RealmId
from cynosure.storage.decorators.confined import confine
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location

_PAGE: Final = 1_000


class TableHere:
    """A `TableAccess` in the catalog's own process."""

    def __init__(self, catalog: OpenCatalog, facts: TableFacts) -> None:
        self._catalog = catalog
        self._facts = facts

    @property
    def facts(self) -> TableFacts:  # noqa: D102
        return self._facts

    @property
    def files(self) -> FileIO:  # noqa: D102
        return confine(self._catalog.files, self._facts.places)

    async def client_files(self) -> ClientFiles:
        """Without credentials: the keys of the server are for no other process."""
        return ClientFiles(dict(self._catalog.storage.client_config), 0)


class CatalogHere:
    """A `CatalogAccess` to the catalogs of one realm, as the server itself."""

    def __init__(self, directory: Directory, realm: RealmId) -> None:
        self._directory = directory
        self._realm = realm

    async def open_tombstone(self, order: TaskOrder) -> TableAccess:
        """See `CatalogAccess`."""
        catalog = await self._open(order)
        loaded = await load_tombstone(catalog, self._caller, entity_id_of(order), delegation=NOT_ASKED)
        facts = _facts_of(catalog, loaded.table, tuple(parse_place(each) for each in loaded.dropped.places))
        return TableHere(catalog, facts)

    async def begin_purging(self, order: TaskOrder) -> None:
        """See `CatalogAccess`."""
        catalog = await self._open(order)
        await begin_purging(catalog, self._caller, entity_id_of(order), order.task_id)

    async def open_table(self, order: TaskOrder) -> TableAccess:
        """See `CatalogAccess`."""
        catalog = await self._open(order)
        name = Identifier(order.table.namespace_levels, order.table.table_name)
        view = await catalog.read()
        ref = await require_table_ref(view, name)
        if ref.type == POINTER.name:
            table = await import_pointer(catalog, self._caller, name)
        else:
            table = await load_table_at(view, ref.id, catalog.shared.tables)
        places = table_scope(catalog, table.state, is_writable=True).locations
        return TableHere(catalog, _facts_of(catalog, table, places))

    async def list_overlapping_dropped(
        self, order: TaskOrder, places: Sequence[Location]
    ) -> list[TableAccess]:
        """See `CatalogAccess`."""
        catalog = await self._open(order)
        found: list[TableAccess] = []
        token: str | None = None
        while True:
            page = await list_dropped(catalog, self._caller, size=_PAGE, token=token)
            for _, dropped in page.entries:
                own = [parse_place(each) for each in (dropped.location, *dropped.claims) if each]
                overlaps = any(each.overlaps(place) for each in own for place in places)
                if dropped.kind == "table" and dropped.state.type != POINTER.name and overlaps:
                    view = await catalog.read()
                    table = await load_table_at(view, dropped.state.id, catalog.shared.tables)
                    found.append(TableHere(catalog, _facts_of(catalog, table, tuple(own))))
            token = page.next_token
            if token is None:
                return found

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        """See `CatalogAccess`. Only purges are waited for."""
        if order.task_type is not TaskType.TABLE_PURGE:
            return
        catalog = await self._open(order)
        # Whoever waited for the task may have ended it all already.
        with suppress(NotFound):
            await end_purging(catalog, self._caller, entity_id_of(order), task_id)

    @property
    def _caller(self) -> Caller:
        return operator_caller(SYSTEM, self._realm)

    async def _open(self, order: TaskOrder) -> OpenCatalog:
        return await self._directory.open(self._realm, order.table.catalog_name)


def entity_id_of(order: TaskOrder) -> ObjId:
    """The stable id of the table of an order."""
    text = order.table.table_entity_id
    if not (text.isascii() and text.isdecimal()):
        raise BadInput(
            "An entity id is not a number",
            field="operation_parameters.table_identity.table_entity_id",
            fix="Give the id of the table as the catalog has it.",
            value=text[:100],
        )
    return ObjId(int(text))


def _facts_of(catalog: OpenCatalog, table: ManagedTable, places: tuple[Location, ...]) -> TableFacts:
    state = table.state
    return TableFacts(
        entity_id=str(state.id),
        table_uuid=str(table.metadata.table_uuid),
        location=state.location,
        places=places,
        metadata_location=state.metadata_location,
        metadata=msgspec.json.decode(table.answer().metadata),
        is_federated=catalog.is_facade,
    )
