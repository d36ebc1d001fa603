"""Create a table, or stage one: a staged table is answered and not kept, until a commit creates it.

Must not break: whoever is given access to the files of a staged table writes before there is a table. So
where access is given, its places are reserved in a commit before this returns (`catalog.staged`).
"""

import uuid
from typing import NamedTuple

from msgspec import Raw, Struct, structs

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, Places, claim, creator_of, places_of
from cynosure.catalog.delegation.modes import NOT_ASKED, Delegation
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.versions import Version, first_version
from cynosure.catalog.locations import default_location
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.parts import Parts
from cynosure.catalog.managed.saving import pack_table
from cynosure.catalog.managed.state import TableState
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, Namespace, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.resolve import load_namespace, require_free_name, require_open
from cynosure.catalog.staged import StagedTable, adding, principal_id_of
from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId


class CreateTable(Struct, frozen=True):
    """What a client wants created."""

    namespace: Namespace
    name: str
    schema: Raw
    location: str | None = None
    partition_spec: Raw | None = None
    write_order: Raw | None = None
    properties: dict[str, str] = {}
    is_staged: bool = False


class CreatedTable(NamedTuple):
    """A table that was created, registered or staged, and what its client may do with its files."""

    answer: TableAnswer
    """For a staged one without file and ETag."""
    state: TableState
    """A staged one's is not stored."""
    is_writable: bool
    """Else the client may only read, if it asked for access at all."""


class _Built(NamedTuple):
    metadata: TableMetadata
    places: Places


async def create_table(
    catalog: OpenCatalog, caller: Caller, wanted: CreateTable, *, delegation: Delegation = NOT_ASKED
) -> CreatedTable:
    """Create or stage a table.

    `delegation`: how the client wants to reach its files; it must be allowed to write them then.
    """
    check_reserved(wanted.properties)
    operation = ops.CREATE_TABLE_DELEGATED if delegation else ops.CREATE_TABLE
    table = Identifier(wanted.namespace, wanted.name)
    entity_id = catalog.shared.persistence.ids.next()
    if wanted.is_staged:
        storage = catalog.storage
        gives_access = storage.vending is not None or storage.signer is not None
        stage = _reserve if delegation and gives_access else _look_ahead
        metadata, claims = await stage(catalog, caller, operation, table, wanted, entity_id)
        state = _unstored(metadata, entity_id, claims)
        return CreatedTable(TableAnswer(encode_metadata(metadata), None, None), state, bool(delegation))
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[ManagedTable]:
            await require_open(view)
            metadata, places = await _build(catalog, view, table, wanted, entity_id)
            claimed = await claim(view, creator_of(catalog, caller, table, entity_id), places)
            version = await first_version(catalog, export, metadata, entity_id, claimed.claims)
            return prepared_creation(table, version, claimed)

        target = catalog.namespace(wanted.namespace)
        committed = await catalog.commit(caller, operation, (target,), prepare)
        export.keep(committed.result.state.metadata_location)
    return CreatedTable(committed.result.answer(), committed.result.state, bool(delegation))


async def _look_ahead(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    table: Identifier,
    wanted: CreateTable,
    entity_id: ObjId,
) -> tuple[TableMetadata, tuple[str, ...]]:
    """Staged for a client with access of its own: refused when it could not be created now, and not kept."""
    state = await catalog.read()
    await catalog.authorize(state, caller, operation, catalog.namespace(table.namespace))
    metadata, places = await _build(catalog, state, table, wanted, entity_id)
    await claim(state, creator_of(catalog, caller, table, entity_id), places)
    return metadata, places.claims


async def _reserve(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    table: Identifier,
    wanted: CreateTable,
    entity_id: ObjId,
) -> tuple[TableMetadata, tuple[str, ...]]:
    """Staged for a client that is given access: its places are nobody else's from here on."""
    persistence = catalog.shared.persistence

    async def prepare(view: View) -> Prepared[_Built]:
        await require_open(view)
        built = await _build(catalog, view, table, wanted, entity_id)
        claimed = await claim(view, creator_of(catalog, caller, table, entity_id), built.places)
        staged = StagedTable(
            id=entity_id,
            path=(*table.namespace, table.name),
            table_uuid=built.metadata.table_uuid,
            location=built.metadata.location,
            claims=claimed.claims,
            principal_id=principal_id_of(caller),
            principal=caller.principal,
            created_us=persistence.clock.now_us(),
        )
        # The first object of this id: the table's own states get ids of their own.
        new, changes = adding(staged, entity_id)
        merge(changes, claimed.changes)
        return Prepared(built, changes, [new])

    # Without the key: it belongs to what the request makes, and this may be made again.
    unkeyed = structs.replace(caller, key_hash="")
    target = catalog.namespace(table.namespace)
    metadata, places = (await catalog.commit(unkeyed, operation, (target,), prepare)).result
    return metadata, places.claims


async def _build(
    catalog: OpenCatalog, view: View, table: Identifier, wanted: CreateTable, entity_id: ObjId
) -> _Built:
    namespace = await load_namespace(view, table.namespace)
    await require_free_name(view, table, for_view=False)
    location = wanted.location or default_location(catalog, namespace, table, entity_id)
    places = places_of(catalog, location, wanted.properties)
    persistence = catalog.shared.persistence
    metadata = new_table_metadata(
        schema=wanted.schema,
        partition_spec=wanted.partition_spec,
        sort_order=wanted.write_order,
        location=location.rstrip("/"),
        properties=wanted.properties,
        table_uuid=str(uuid.UUID(int=persistence.rng.getrandbits(128), version=4)),
        now_ms=persistence.clock.now_us() // 1000,
        limits=catalog.limits,
    )
    return _Built(metadata, places)


def _unstored(metadata: TableMetadata, entity_id: ObjId, claims: tuple[str, ...]) -> TableState:
    table, _ = pack_table(
        metadata,
        state_id=entity_id,
        entity_id=entity_id,
        created_us=metadata.last_updated_ms * 1000,
        updated_us=metadata.last_updated_ms * 1000,
        metadata_location="",
        file_number=0,
        stored=Parts(),
        next_id=lambda: entity_id,
        claims=claims,
    )
    return table.state


def prepared_creation(table: Identifier, version: Version, claimed: Claimed) -> Prepared[ManagedTable]:
    """The change that makes a first version a table of this name."""
    key, value = table_key(table), version.table.ref.pack()
    entity_id = version.table.state.id
    changes: Changes = {"names": {key: value}, "ids": {encode_id_key(entity_id): key}}
    merge(changes, claimed.changes)
    detail = raw_detail({"id": entity_id, "path": (*table.namespace, table.name)})
    feed = Change(kind="table-created", index="names", key=key, after=value, detail=detail)
    return Prepared(version.table, changes, version.objects, [feed])
