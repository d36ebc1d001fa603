"""The next version of a table: logged, exported, packed; not committed yet.

Must not break: the metadata file exists before the commit that makes it reachable.
"""

from dataclasses import dataclass

from cynosure.catalog.files.export import Export
from cynosure.catalog.managed.parts import Parts
from cynosure.catalog.managed.saving import pack_table
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.opened import OpenCatalog
from cynosure.iceberg.metadata import TableMetadata, encode_metadata, with_previous_file
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


@dataclass(frozen=True, slots=True)
class Version:
    """A prepared version of a table."""

    table: ManagedTable
    objects: list[NewObject]
    """To be written with the commit."""
    outdated_files: list[str]
    """Metadata files that fell out of the table's log."""


async def first_version(
    catalog: OpenCatalog, export: Export, metadata: TableMetadata, entity_id: ObjId, claims: tuple[str, ...]
) -> Version:
    """The version that a table is created with."""
    return await _export(
        catalog, export, metadata, entity_id=entity_id, base=None, outdated=[], claims=claims
    )


async def next_version(
    catalog: OpenCatalog,
    export: Export,
    base: ManagedTable,
    metadata: TableMetadata,
    claims: tuple[str, ...],
) -> Version:
    """The version that follows `base`."""
    logged, outdated = with_previous_file(
        metadata, base.state.metadata_location, base.metadata.last_updated_ms
    )
    return await _export(
        catalog, export, logged, entity_id=base.state.id, base=base, outdated=outdated, claims=claims
    )


async def _export(
    catalog: OpenCatalog,
    export: Export,
    metadata: TableMetadata,
    *,
    entity_id: ObjId,
    base: ManagedTable | None,
    outdated: list[str],
    claims: tuple[str, ...],
) -> Version:
    persistence = catalog.shared.persistence
    state_id = persistence.ids.next()
    number = 0 if base is None else base.state.file_number + 1
    json = encode_metadata(metadata)
    location = await export.write_table(metadata, json, number, state_id)
    table, objects = keep_version(
        catalog,
        metadata,
        state_id=state_id,
        entity_id=entity_id,
        base=base,
        metadata_location=location,
        file_number=number,
        claims=claims,
        json=json,
    )
    return Version(table, objects, outdated)


def keep_version(
    catalog: OpenCatalog,
    metadata: TableMetadata,
    *,
    state_id: ObjId,
    entity_id: ObjId,
    base: ManagedTable | None,
    metadata_location: str,
    file_number: int,
    claims: tuple[str, ...],
    json: bytes | None = None,
) -> tuple[ManagedTable, list[NewObject]]:
    """A version whose file exists already. `json` is the metadata, if it was encoded for the file."""
    persistence = catalog.shared.persistence
    now_us = persistence.clock.now_us()
    table, objects = pack_table(
        metadata,
        state_id=state_id,
        entity_id=entity_id,
        created_us=now_us if base is None else base.state.created_us,
        updated_us=now_us,
        metadata_location=metadata_location,
        file_number=file_number,
        stored=Parts() if base is None else base.parts,
        next_id=persistence.ids.next,
        claims=claims,
    )
    if json is not None:
        table.adopt_json(json)
    # By its id, so it does no harm if this version is never committed; and a request that comes right after
    # this one in the same group finds it here.
    catalog.shared.tables.put(table)
    return table, objects
