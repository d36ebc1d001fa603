"""Create a table, or stage one: a staged table is answered and not kept, until a commit creates it.

Must not break: whoever is given access to the files of a staged table writes before there is a table. So
where access is given, its places are reserved in a commit before this returns (`catalog.staged`).
"""

import uuid
from typing import NamedTuple

from msgspec import Raw, Struct

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, Places, claim, creator_of, places_of
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation
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
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import load_namespace, require_free_name, require_open
from cynosure.catalog.staged import STAGED, StagedTable, adding, principal_id_of
from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.metadata import TableMetadata, encode_metadata, parse_metadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
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
    is_staged: bool = False


class _Built(NamedTuple):
    metadata: TableMetadata
    places: Places


class Staged(NamedTuple):
    """A table that is promised, or could be created now."""

    entity_id: ObjId
    metadata: TableMetadata
    json: bytes
    """The metadata, as it is told."""
    claims: tuple[str, ...]

    def state(self) -> TableState:
        """As it would be if it were stored."""
        metadata, entity_id = self.metadata, self.entity_id
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
            claims=self.claims,
        )
        return table.state


class RecalledStaged:
    """From the reservation, which keeps the metadata when the request has a key."""

    def keep(self, result: Staged, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return ObjRef(result.entity_id, STAGED.name).pack()

    async def recall(self, done: Done) -> Staged:
        """See `Recall.recall`."""
        (staged,) = await done.after.load_many(STAGED, [ObjRef.unpack(done.data).id])
        json = done.key.open(staged.sealed_metadata)
        return Staged(staged.id, parse_metadata(json), json, staged.claims)


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
        # An attempt before this one may have asked for access, and reserve its places at any time: what is
        # told now must then be what it finds.
        is_repeat = caller.key is not None and caller.key.is_repeat
        stage = _reserve if (delegation and gives_access) or is_repeat else _look_ahead
        staged = await stage(catalog, caller, operation, table, wanted, entity_id)
        return CreatedTable(
            TableAnswer(staged.json, None, None), staged.state(), bool(delegation), is_staged=True
        )
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[ManagedTable]:
            await require_open(view)
            metadata, places = await _build(catalog, view, table, wanted, entity_id)
            claimed = await claim(view, creator_of(catalog, caller, table, entity_id), places)
            version = await first_version(catalog, export, metadata, entity_id, claimed.claims)
            return prepared_creation(table, version, claimed)

        target = catalog.namespace(wanted.namespace)
        recall = RecalledTable(catalog, caller, operation, table)
        committed = await catalog.commit(caller, operation, (target,), prepare, recall)
        export.keep(committed.result.state.metadata_location)
    return CreatedTable(committed.result.answer(), committed.result.state, bool(delegation))


async def _look_ahead(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    table: Identifier,
    wanted: CreateTable,
    entity_id: ObjId,
) -> Staged:
    """Staged for a client with access of its own: refused when it could not be created now, and not kept.

    Unless an earlier attempt asked for access and got it: then it is promised, as it was told then.
    """
    check = catalog.checking(caller, operation, catalog.namespace(table.namespace))
    recalled = await find_recalled(catalog.committer, caller, check=check, recall=RecalledStaged())
    if recalled is not None:
        return recalled.result
    state = await catalog.read()
    await check(state)
    end_rehearsal(caller)
    metadata, places = await _build(catalog, state, table, wanted, entity_id)
    await claim(state, creator_of(catalog, caller, table, entity_id), places)
    return Staged(entity_id, metadata, encode_metadata(metadata), places.claims)


async def _reserve(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    table: Identifier,
    wanted: CreateTable,
    entity_id: ObjId,
) -> Staged:
    """Staged for a client that is given access: its places are nobody else's from here on."""

    async def prepare(view: View) -> Prepared[Staged]:
        await require_open(view)
        metadata, places = await _build(catalog, view, table, wanted, entity_id)
        return await prepare_reservation(catalog, caller, view, table, metadata, places, entity_id)

    target = catalog.namespace(table.namespace)
    return (await catalog.commit(caller, operation, (target,), prepare, RecalledStaged())).result


async def prepare_reservation(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    metadata: TableMetadata,
    places: Places,
    entity_id: ObjId,
) -> Prepared[Staged]:
    """The change that promises a table to the caller, with its places."""
    claimed = await claim(view, creator_of(catalog, caller, table, entity_id), places)
    json = encode_metadata(metadata)
    staged = StagedTable(
        id=entity_id,
        path=(*table.namespace, table.name),
        table_uuid=metadata.table_uuid,
        location=metadata.location,
        claims=claimed.claims,
        principal_id=principal_id_of(caller),
        principal=caller.principal,
        created_us=catalog.shared.persistence.clock.now_us(),
        sealed_metadata=b"" if caller.key is None else caller.key.seal(json),
    )
    # The first object of this id: the table's own states get ids of their own.
    new, changes = adding(staged, entity_id)
    merge(changes, claimed.changes)
    return Prepared(Staged(entity_id, metadata, json, places.claims), changes, [new])


async def _build(
    catalog: OpenCatalog, view: View, table: Identifier, wanted: CreateTable, entity_id: ObjId
) -> _Built:
    namespace = await load_namespace(view, table.namespace)
    await require_free_name(view, table, for_view=False)
    location = wanted.location or default_location(catalog, namespace, table, entity_id)
    places = places_of(catalog, location, wanted.properties)
    table_uuid = str(uuid.UUID(int=catalog.shared.persistence.rng.getrandbits(128), version=4))
    return _Built(build_metadata(catalog, wanted, location, table_uuid), places)


def build_metadata(
    catalog: OpenCatalog, wanted: CreateTable, location: str, table_uuid: str
) -> TableMetadata:
    """The first metadata of a table."""
    return new_table_metadata(
        schema=wanted.schema,
        partition_spec=wanted.partition_spec,
        sort_order=wanted.write_order,
        location=location.rstrip("/"),
        properties=wanted.properties,
        table_uuid=table_uuid,
        now_ms=catalog.shared.persistence.clock.now_us() // 1000,
        limits=catalog.limits,
    )


def prepared_creation(table: Identifier, version: Version, claimed: Claimed) -> Prepared[ManagedTable]:
    """The change that makes a first version a table of this name."""
    key, value = table_key(table), version.table.ref.pack()
    entity_id = version.table.state.id
    changes: Changes = {"names": {key: value}, "ids": {encode_id_key(entity_id): key}}
    merge(changes, claimed.changes)
    detail = raw_detail({"id": entity_id, "path": (*table.namespace, table.name)})
    feed = Change(kind="table-created", index="names", key=key, after=value, detail=detail)
    return Prepared(version.table, changes, version.objects, [feed])
