"""Create a table, or stage one: a staged table is answered and not kept, until a commit creates it."""

import uuid

from msgspec import Raw, Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.versions import Version, first_version
from cynosure.catalog.locations import (
    check_allowed,
    check_property_locations,
    claim_location,
    default_location,
)
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, Namespace, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.resolve import load_namespace, require_free_name, require_open
from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location


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


async def create_table(
    catalog: OpenCatalog, caller: Caller, wanted: CreateTable, *, is_delegated: bool = False
) -> TableAnswer:
    """Create a table; its answer, which for a staged one has no file and no ETag.

    `is_delegated`: the client wants to write with what it is given, so it must be allowed to.
    """
    check_reserved(wanted.properties)
    operation = ops.CREATE_TABLE_DELEGATED if is_delegated else ops.CREATE_TABLE
    target = catalog.namespace(wanted.namespace)
    table = Identifier(wanted.namespace, wanted.name)
    entity_id = catalog.shared.persistence.ids.next()
    if wanted.is_staged:
        state = await catalog.read()
        await catalog.authorize(state, caller, operation, target)
        metadata = await _build(catalog, state, table, wanted, entity_id)
        return TableAnswer(encode_metadata(metadata), None, None)
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[ManagedTable]:
            await require_open(view)
            metadata = await _build(catalog, view, table, wanted, entity_id)
            claims = await claim_location(view, Location.parse(metadata.location), entity_id)
            version = await first_version(catalog, export, metadata, entity_id)
            return prepared_creation(table, version, claims)

        committed = await catalog.commit(caller, operation, (target,), prepare)
        export.keep(committed.result.state.metadata_location)
    return committed.result.answer()


async def _build(
    catalog: OpenCatalog, view: View, table: Identifier, wanted: CreateTable, entity_id: ObjId
) -> TableMetadata:
    namespace = await load_namespace(view, table.namespace)
    await require_free_name(view, table, for_view=False)
    location = wanted.location or default_location(catalog, namespace, table, entity_id)
    check_allowed(catalog, location, field="location")
    check_property_locations(catalog, wanted.properties)
    persistence = catalog.shared.persistence
    return new_table_metadata(
        schema=wanted.schema,
        partition_spec=wanted.partition_spec,
        sort_order=wanted.write_order,
        location=location.rstrip("/"),
        properties=wanted.properties,
        table_uuid=str(uuid.UUID(int=persistence.rng.getrandbits(128), version=4)),
        now_ms=persistence.clock.now_us() // 1000,
        limits=catalog.limits,
    )


def prepared_creation(
    table: Identifier, version: Version, claims: dict[bytes, bytes | None]
) -> Prepared[ManagedTable]:
    """The change that makes a first version a table of this name."""
    key, value = table_key(table), version.table.ref.pack()
    entity_id = version.table.state.id
    changes: dict[str, dict[bytes, bytes | None]] = {
        "names": {key: value},
        "ids": {encode_id_key(entity_id): key},
        "locations": claims,
    }
    detail = raw_detail({"id": entity_id, "path": (*table.namespace, table.name)})
    feed = Change(kind="table-created", index="names", key=key, after=value, detail=detail)
    return Prepared(version.table, changes, version.objects, [feed])
