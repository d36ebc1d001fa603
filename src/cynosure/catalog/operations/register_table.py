"""Register a table whose metadata file exists already: read it into the store, under a name.

Must not break: the file, the table's location and every file that it names are where this catalog allows
them, and none is another table's. The server reads no file that another table holds. A client that staged the
very table wrote its files with credentials of ours: its own reservation gives way, and nobody else's.
"""

from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import (
    Claimed,
    Places,
    changer_of,
    claim,
    creator_of,
    join_places,
    require_free,
)
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation
from cynosure.catalog.file_references import places_in_file
from cynosure.catalog.files.importing import file_number_of, load_metadata_file
from cynosure.catalog.files.versions import Version, keep_version
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_allowed, parse_place
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.sharing import share_pieces
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreatedTable, prepared_creation
from cynosure.catalog.properties import check_ours
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_namespace, require_open
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

_PLAIN: Final = (ops.REGISTER_TABLE,)
_DELEGATED: Final = (ops.REGISTER_TABLE_DELEGATED, ops.REGISTER_TABLE_DELEGATED_READ)
_OVERWRITE: Final = (ops.OVERWRITE_TABLE,)
_OVERWRITE_DELEGATED: Final = (ops.OVERWRITE_TABLE_DELEGATED, ops.OVERWRITE_TABLE_DELEGATED_READ)
_TO_WRITE: Final = frozenset({ops.REGISTER_TABLE_DELEGATED.name, ops.OVERWRITE_TABLE_DELEGATED.name})


class MetadataFile(NamedTuple):
    """A metadata file that may be registered."""

    metadata: TableMetadata
    location: str
    places: Places
    """What the table holds with it."""


class RightToRegister:
    """What a caller must be allowed to do to register a table, and how much of it the caller may.

    `delegation`: how the client wants to reach the files, to write where it may, else to read.
    """

    def __init__(
        self,
        catalog: OpenCatalog,
        caller: Caller,
        table: Identifier,
        *,
        is_overwrite: bool,
        delegation: Delegation,
    ) -> None:
        self._catalog = catalog
        self._caller = caller
        self._table = table
        self._is_overwrite = is_overwrite
        self._is_delegated = bool(delegation)
        self._granted: Operation = ops.REGISTER_TABLE

    @property
    def is_writable(self) -> bool:
        """Whether the caller may write the files, as it was last checked."""
        return self._granted.name in _TO_WRITE

    async def check(self, view: View) -> Guards:
        """Authorize it on a state."""
        guards = await self._check_overwrite(view) if self._is_overwrite else None
        if guards is not None:
            return guards
        operations = _DELEGATED if self._is_delegated else _PLAIN
        target = self._catalog.namespace(self._table.namespace)
        self._granted, guards = await self._catalog.authorize_one_of(view, self._caller, operations, target)
        if self._is_overwrite:
            # Here, so that the right to register never becomes one to overwrite, also when asked for again.
            await require_free_name(view, self._table, for_view=False)
        return guards

    async def _check_overwrite(self, view: View) -> Guards | None:
        """`None` when there is no table, or none that the caller may know of: then it is to be a new one."""
        catalog, table = self._catalog, self._table
        is_there = await find_table_ref(view, table) is not None
        if not is_there and not catalog.is_hiding:
            return None
        operations = _OVERWRITE_DELEGATED if self._is_delegated else _OVERWRITE
        target = catalog.table(table)
        try:
            operation, guards = await catalog.authorize_one_of(view, self._caller, operations, target)
        except NoSuchTable:
            return None
        if not is_there:
            return None
        self._granted = operation
        return guards


async def register_table(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    metadata_location: str,
    *,
    is_overwrite: bool = False,
    delegation: Delegation = NOT_ASKED,
) -> CreatedTable:
    """Register a table. With `is_overwrite` one of this name takes the file's metadata and keeps its id.

    `delegation`: how the client wants to reach the files, to write where it may, else to read.
    """
    right = RightToRegister(catalog, caller, table, is_overwrite=is_overwrite, delegation=delegation)
    authorize = right.check
    committer, name = catalog.committer, ops.REGISTER_TABLE.name
    recall = RecalledTable(catalog, caller, ops.REGISTER_TABLE, table)
    recalled = await find_recalled(committer, caller, check=authorize, recall=recall)
    if recalled is not None:
        return CreatedTable(recalled.result.answer(), recalled.result.state, right.is_writable)
    async with refusing(committer, caller, name):
        # Asked before the file is read: most refusals need no storage at all.
        state = await catalog.read()
        await authorize(state)
        end_rehearsal(caller)
        await require_namespace(state, table.namespace)
        if not is_overwrite:
            await require_free_name(state, table, for_view=False)
        replaced = await find_table_ref(state, table) if is_overwrite else None
        file = await load_registrable(
            catalog, caller, state, table, replaced, metadata_location, is_creator=True
        )

    async def prepare(view: View) -> Prepared[ManagedTable]:
        await require_open(view)
        await require_namespace(view, table.namespace)
        ref = await find_table_ref(view, table) if is_overwrite else None
        return await prepare_registration(catalog, caller, view, table, ref, file, is_creator=True)

    registered = (await catalog.commit_checked(caller, name, authorize, prepare, recall)).result
    return CreatedTable(registered.answer(), registered.state, right.is_writable)


async def load_registrable(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    replaced: ObjRef | None,
    metadata_location: str,
    *,
    is_creator: bool = False,
) -> MetadataFile:
    """A file that is to be registered, if all that it says may be so in this catalog.

    `replaced` is the state of the table that it is for, if there is one. `is_creator`: where there is none,
    what the caller reserved for this very name gives way.
    """
    location = check_allowed(catalog, metadata_location, field="metadata-location")
    # Before it is read. A table that is new has no places: no entry has the id of none.
    entity_id = ObjId(0) if replaced is None else (await load_held(view, replaced)).id
    claimant = changer_of(catalog, caller, entity_id)
    if is_creator and replaced is None:
        claimant = creator_of(catalog, caller, table, entity_id)
    await require_free(view, location, claimant)
    metadata = await load_metadata_file(catalog, location)
    check_ours(metadata.properties)
    return MetadataFile(metadata, metadata_location, places_in_file(catalog, metadata, metadata_location))


async def prepare_registration(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef | None,
    file: MetadataFile,
    *,
    entity_id: ObjId | None = None,
    is_creator: bool = False,
) -> Prepared[ManagedTable]:
    """The change that gives a table this metadata. `ref` is its state; `None`: it is a new one.

    `entity_id`: what a new one is to have, if that was promised before. `is_creator`: see `load_registrable`.
    """
    if ref is not None:
        return await _prepare_overwrite(catalog, caller, view, table, ref, file)
    await require_free_name(view, table, for_view=False)
    entity_id = entity_id or catalog.shared.persistence.ids.next()
    claimant = changer_of(catalog, caller, entity_id)
    if is_creator:
        claimant = creator_of(catalog, caller, table, entity_id)
    claimed = await claim(view, claimant, file.places)
    registered, objects = _keep(catalog, file, entity_id, claimed)
    return prepared_creation(table, Version(registered, objects, []), claimed)


async def _prepare_overwrite(
    catalog: OpenCatalog, caller: Caller, view: View, table: Identifier, ref: ObjRef, file: MetadataFile
) -> Prepared[ManagedTable]:
    before, base = await load_held(view, ref), None
    if ref.type != POINTER.name:
        base = await load_table_at(view, ref.id, catalog.shared.tables)
        await catalog.restrictions.check_schema_change(
            view, catalog.table(table), base.metadata, file.metadata
        )
    # What it held stays its own, as when it is moved: the files that it loses are still there.
    former = [parse_place(text) for text in (before.location, *before.claims)]
    places = join_places(file.places.location, [*file.places.others, *former])
    claimant = changer_of(catalog, caller, before.id)
    claimed = await claim(view, claimant, places, before=before)
    registered, objects = _keep(catalog, file, before.id, claimed, base)
    key, old, new = table_key(table), ref.pack(), registered.ref.pack()
    detail = raw_detail({"id": before.id, "path": (*table.namespace, table.name)})
    feed = Change(kind="table-overwritten", index="names", key=key, before=old, after=new, detail=detail)
    changes: Changes = {"names": {key: new}}
    merge(changes, claimed.changes)
    return Prepared(registered, changes, objects, [feed])


def _keep(
    catalog: OpenCatalog,
    file: MetadataFile,
    entity_id: ObjId,
    claimed: Claimed,
    base: ManagedTable | None = None,
) -> tuple[ManagedTable, list[NewObject]]:
    return keep_version(
        catalog,
        file.metadata if base is None else share_pieces(file.metadata, base.metadata),
        state_id=catalog.shared.persistence.ids.next(),
        entity_id=entity_id,
        base=base,
        metadata_location=file.location,
        file_number=file_number_of(file.location),
        claims=claimed.claims,
    )
