"""Register a table whose metadata file exists already: read it into the store, under a name."""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.files.importing import file_number_of, load_metadata_file
from cynosure.catalog.files.versions import Version, keep_version
from cynosure.catalog.guards import Guards
from cynosure.catalog.locations import check_allowed, check_property_locations, claim_location, location_key
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import prepared_creation
from cynosure.catalog.properties import check_ours
from cynosure.catalog.resolve import find_table_ref, require_free_name, require_namespace, require_open
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject
from cynosure.storage.location import Location

_PLAIN: Final = (ops.REGISTER_TABLE,)
_DELEGATED: Final = (ops.REGISTER_TABLE_DELEGATED, ops.REGISTER_TABLE_DELEGATED_READ)


async def register_table(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    metadata_location: str,
    *,
    is_overwrite: bool = False,
    is_delegated: bool = False,
) -> TableAnswer:
    """Register a table. With `is_overwrite` one of this name takes the file's metadata and keeps its id.

    `is_delegated`: the client wants to use the files, to write where it may, else to read.
    """

    async def authorize(view: View) -> Guards:
        guards = await authorize_overwrite(view) if is_overwrite else None
        if guards is not None:
            return guards
        operations = _DELEGATED if is_delegated else _PLAIN
        target = catalog.namespace(table.namespace)
        _, guards = await catalog.authorize_one_of(view, caller, operations, target)
        if is_overwrite:
            # Here, so that the right to register never becomes one to overwrite, also when asked for again.
            await require_free_name(view, table, for_view=False)
        return guards

    async def authorize_overwrite(view: View) -> Guards | None:
        """`None` when there is no table, or none that the caller may know of: then it is to be a new one."""
        is_there = await find_table_ref(view, table) is not None
        if not is_there and not catalog.shared.access.hide_existence:
            return None
        operation = ops.OVERWRITE_TABLE_DELEGATED if is_delegated else ops.OVERWRITE_TABLE
        try:
            guards = await catalog.authorize(view, caller, operation, catalog.table(table))
        except NoSuchTable:
            return None
        return guards if is_there else None

    # Asked before the file is read: most refusals need no storage at all.
    state = await catalog.read()
    await authorize(state)
    location = check_allowed(catalog, metadata_location, field="metadata-location")
    await require_namespace(state, table.namespace)
    if not is_overwrite:
        await require_free_name(state, table, for_view=False)
    metadata = await load_metadata_file(catalog, location)
    check_allowed(catalog, metadata.location, field="metadata.location")
    check_property_locations(catalog, metadata.properties)
    check_ours(metadata.properties)

    async def prepare(view: View) -> Prepared[ManagedTable]:
        await require_open(view)
        await require_namespace(view, table.namespace)
        ref = await find_table_ref(view, table) if is_overwrite else None
        if ref is not None:
            return await _prepare_overwrite(catalog, view, table, ref, metadata, metadata_location)
        await require_free_name(view, table, for_view=False)
        entity_id = catalog.shared.persistence.ids.next()
        claims = await claim_location(view, Location.parse(metadata.location), entity_id)
        registered, objects = _keep(catalog, metadata, metadata_location, entity_id)
        return prepared_creation(table, Version(registered, objects, []), claims)

    committed = await catalog.commit_checked(caller, ops.REGISTER_TABLE.name, authorize, prepare)
    return committed.result.answer()


async def _prepare_overwrite(
    catalog: OpenCatalog,
    view: View,
    table: Identifier,
    ref: ObjRef,
    metadata: TableMetadata,
    metadata_location: str,
) -> Prepared[ManagedTable]:
    entity_id, old_location = await load_identity(view, ref)
    claims = await claim_location(
        view,
        Location.parse(metadata.location),
        entity_id,
        given_up=location_key(Location.parse(old_location)),
    )
    registered, objects = _keep(catalog, metadata, metadata_location, entity_id)
    key, before, after = table_key(table), ref.pack(), registered.ref.pack()
    detail = raw_detail({"id": entity_id, "path": (*table.namespace, table.name)})
    feed = Change(kind="table-overwritten", index="names", key=key, before=before, after=after, detail=detail)
    changes: dict[str, dict[bytes, bytes | None]] = {"names": {key: after}, "locations": claims}
    return Prepared(registered, changes, objects, [feed])


def _keep(
    catalog: OpenCatalog, metadata: TableMetadata, metadata_location: str, entity_id: ObjId
) -> tuple[ManagedTable, list[NewObject]]:
    return keep_version(
        catalog,
        metadata,
        state_id=catalog.shared.persistence.ids.next(),
        entity_id=entity_id,
        base=None,
        metadata_location=metadata_location,
        file_number=file_number_of(metadata_location),
    )
