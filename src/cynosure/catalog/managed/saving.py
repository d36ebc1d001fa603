"""Tables from memory into stored form: what is stored already is pointed to, only the rest is written."""

from collections.abc import Callable

from cynosure.catalog.managed.parts import Packing, Parts
from cynosure.catalog.managed.state import TABLE, TableState
from cynosure.catalog.managed.table import ManagedTable
from cynosure.iceberg import fragments
from cynosure.iceberg.metadata import TableMetadata
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


def pack_table(
    metadata: TableMetadata,
    *,
    state_id: ObjId,
    entity_id: ObjId,
    created_us: int,
    updated_us: int,
    metadata_location: str,
    file_number: int,
    stored: Parts,
    next_id: Callable[[], ObjId],
    claims: tuple[str, ...] = (),
) -> tuple[ManagedTable, list[NewObject]]:
    """A version of a table and the objects that have to be written for it.

    `stored` are the parts of the version it came from.
    """
    packing = Packing(stored, next_id)
    state = TableState(
        id=entity_id,
        created_us=created_us,
        updated_us=updated_us,
        metadata_location=metadata_location,
        file_number=file_number,
        format_version=metadata.format_version,
        table_uuid=metadata.table_uuid,
        location=metadata.location,
        last_sequence_number=metadata.last_sequence_number,
        last_updated_ms=metadata.last_updated_ms,
        last_column_id=metadata.last_column_id,
        current_schema_id=metadata.current_schema_id,
        default_spec_id=metadata.default_spec_id,
        last_partition_id=metadata.last_partition_id,
        default_sort_order_id=metadata.default_sort_order_id,
        current_snapshot_id=metadata.current_snapshot_id,
        next_row_id=metadata.next_row_id,
        schemas=tuple([packing.pack_schema(document) for document in metadata.schemas]),
        partition_specs=tuple([document.json for document in metadata.partition_specs]),
        sort_orders=tuple([document.json for document in metadata.sort_orders]),
        properties=metadata.properties,
        refs={name: document.json for name, document in metadata.refs.items()},
        encryption_keys={name: document.json for name, document in metadata.encryption_keys.items()},
        other_fields=metadata.unknown,
        snapshots=packing.pack_sequence(metadata.snapshots),
        snapshot_log=packing.pack_sequence(metadata.snapshot_log),
        metadata_log=packing.pack_sequence(metadata.metadata_log),
        statistics=packing.pack_sequence(metadata.statistics),
        partition_statistics=packing.pack_sequence(metadata.partition_statistics),
        ref_pieces=_ref_pieces(metadata),
        claims=claims,
    )
    table = ManagedTable(state_id, state, metadata, packing.parts)
    return table, [*packing.new_objects, NewObject(TABLE, state_id, state)]


def _ref_pieces(metadata: TableMetadata) -> dict[int, int]:
    chunks = metadata.snapshots.chunks
    if not chunks:
        return {}
    is_last_inside = len(chunks[-1].keys) < fragments.CHUNK
    found: dict[int, int] = {}
    for document in metadata.refs.values():
        snapshot_id = document.value.snapshot_id
        number = metadata.snapshots.find_chunk(snapshot_id)
        if number is not None and not (is_last_inside and number == len(chunks) - 1):
            found[snapshot_id] = number
    return found
