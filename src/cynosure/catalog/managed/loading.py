"""Tables from the store into memory.

Must not break: everything is read through the view it is given, because inside a commit a table may be
drafted and not stored yet.
"""

from collections.abc import Iterable, Mapping

from cynosure.catalog.managed.answer import TableAnswer, make_etag
from cynosure.catalog.managed.parts import Parts
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.managed.state import (
    CHUNK,
    SCHEMA,
    TABLE,
    Piece,
    Sequence,
    TableState,
    sequences_of,
)
from cynosure.catalog.managed.table import ManagedTable
from cynosure.iceberg.document import Document
from cynosure.iceberg.encryption import decode_key
from cynosure.iceberg.fragments import Chunk, Fragments
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.iceberg.partitioning import decode_spec
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.snapshots import decode_ref
from cynosure.iceberg.sorting import decode_order
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId

Chunks = Mapping[ObjId, Chunk]


async def load_table_at(view: View, state_id: ObjId, recent: RecentTables) -> ManagedTable:
    """The table whose state has this id."""
    table = recent.get(state_id)
    if table is None:
        state = (await view.load_many(TABLE, [state_id]))[0]
        table = await assemble(view, state_id, state)
        recent.put(table)
    return table


async def assemble(view: View, state_id: ObjId, state: TableState) -> ManagedTable:
    """A whole table out of its state."""
    metadata, parts = await _load_metadata(view, state, sequences_of(state))
    return ManagedTable(state_id, state, metadata, parts)


async def load_refs_answer(view: View, state_id: ObjId, state: TableState) -> TableAnswer:
    """What clients are told who want only the snapshots that refs name: reads only the chunks of these."""
    snapshots, *others = sequences_of(state)
    pieces = [snapshots.pieces[number] for number in sorted(set(state.ref_pieces.values()))]
    metadata, _ = await _load_metadata(view, state, (Sequence(tuple(pieces), snapshots.tail), *others))
    json = encode_metadata(metadata, snapshots="refs")
    return TableAnswer(json, state.metadata_location, make_etag(state_id, "refs"))


async def _load_metadata(
    view: View, state: TableState, sequences: tuple[Sequence, ...]
) -> tuple[TableMetadata, Parts]:
    parts = Parts()
    chunks = await _load_chunks(view, [piece for each in sequences for piece in each.pieces])
    schemas = await _load_schemas(view, state, parts)
    snapshots, snapshot_log, metadata_log, statistics, partition_statistics = (
        _unpack(sequence, chunks, parts) for sequence in sequences
    )
    metadata = TableMetadata(
        format_version=state.format_version,
        table_uuid=state.table_uuid,
        location=state.location,
        last_sequence_number=state.last_sequence_number,
        last_updated_ms=state.last_updated_ms,
        last_column_id=state.last_column_id,
        schemas=schemas,
        current_schema_id=state.current_schema_id,
        partition_specs=tuple(Document(json, decode_spec) for json in state.partition_specs),
        default_spec_id=state.default_spec_id,
        last_partition_id=state.last_partition_id,
        sort_orders=tuple(Document(json, decode_order) for json in state.sort_orders),
        default_sort_order_id=state.default_sort_order_id,
        properties=state.properties,
        current_snapshot_id=state.current_snapshot_id,
        snapshots=snapshots,
        snapshot_log=snapshot_log,
        metadata_log=metadata_log,
        refs={name: Document(json, decode_ref) for name, json in state.refs.items()},
        statistics=statistics,
        partition_statistics=partition_statistics,
        encryption_keys={name: Document(json, decode_key) for name, json in state.encryption_keys.items()},
        next_row_id=state.next_row_id,
        unknown=state.other_fields,
    )
    return metadata, parts


async def _load_chunks(view: View, pieces: Iterable[Piece]) -> Chunks:
    ids = list(dict.fromkeys(piece.id for piece in pieces))
    if not ids:
        return {}
    return dict(zip(ids, await view.load_many(CHUNK, ids), strict=True))


async def _load_schemas(view: View, state: TableState, parts: Parts) -> tuple[Document[Schema], ...]:
    ids = [ObjId(part) for part in state.schemas if isinstance(part, int)]
    stored = dict(zip(ids, await view.load_many(SCHEMA, ids), strict=True)) if ids else {}
    documents: list[Document[Schema]] = []
    for part in state.schemas:
        if isinstance(part, bytes):
            documents.append(Document(part, decode_schema))
        else:
            document = Document(stored[ObjId(part)].json, decode_schema)
            parts.note_schema(document, ObjId(part))
            documents.append(document)
    return tuple(documents)


def _unpack(sequence: Sequence, chunks: Chunks, parts: Parts) -> Fragments:
    unpacked: list[Chunk] = []
    for piece in sequence.pieces:
        chunk = _without_first(chunks[piece.id], piece.skip)
        parts.note_chunk(chunk, piece)
        unpacked.append(chunk)
    if sequence.tail is not None:
        unpacked.append(sequence.tail)
    return Fragments(tuple(unpacked))


def _without_first(chunk: Chunk, skip: int) -> Chunk:
    if not skip:
        return chunk
    start = chunk.ends[skip - 1] + 1
    return Chunk(chunk.keys[skip:], tuple(end - start for end in chunk.ends[skip:]), chunk.json[start:])
