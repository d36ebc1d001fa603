"""The stored form of a table.

    names ──► TableState ──► TableSchema (only large ones)
                  └────────► TableChunk  (full chunks of snapshots, logs, statistics)

The newest, not yet full chunk of each sequence is inside the state, so that a commit writes one object and,
every sixteenth time, one more.

Must not break: a stored struct gets new fields with defaults only, and every object a state points to is in
its `refs`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from cynosure.iceberg.fragments import Chunk
from cynosure.persistence.objects import ObjectType, ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId


class Piece(Struct, frozen=True, array_like=True):
    """A stored chunk, of which the first entries may have been given up since."""

    id: ObjId
    skip: int = 0


class Sequence(Struct, frozen=True, array_like=True):
    """Stored form of `iceberg.fragments.Fragments`."""

    pieces: tuple[Piece, ...] = ()
    tail: Chunk | None = None
    """The newest chunk, while it can still grow."""


class TableState(Stored, frozen=True):
    """A table at one version."""

    id: ObjId
    """Stable: the same for every version of the table, and kept by rename and undrop."""
    created_us: int
    updated_us: int
    metadata_location: str
    """The exported file, or the one the table was registered with."""
    file_number: int
    """Counts the table's metadata files; part of their names."""

    format_version: int
    table_uuid: str
    location: str
    last_sequence_number: int
    last_updated_ms: int
    last_column_id: int
    current_schema_id: int
    default_spec_id: int
    last_partition_id: int
    default_sort_order_id: int
    current_snapshot_id: int | None = None
    next_row_id: int | None = None
    schemas: tuple[bytes | int, ...] = ()
    """JSON, or the id of a `TableSchema` when it is large."""
    partition_specs: tuple[bytes, ...] = ()
    sort_orders: tuple[bytes, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    refs: dict[str, bytes] = field(default_factory=dict)
    encryption_keys: dict[str, bytes] = field(default_factory=dict)
    other_fields: dict[str, bytes] = field(default_factory=dict)
    """JSON of top-level fields that the specification does not name."""
    snapshots: Sequence = Sequence()
    snapshot_log: Sequence = Sequence()
    metadata_log: Sequence = Sequence()
    statistics: Sequence = Sequence()
    partition_statistics: Sequence = Sequence()
    ref_pieces: dict[int, int] = field(default_factory=dict)
    """Snapshots that refs name, by id: the number of their piece, so that only these need to be read.
    Snapshots in the tail are not listed."""
    claims: tuple[str, ...] = ()
    """Places that the table holds besides its location: where its properties send files, where it was before,
    and what its metadata names elsewhere (`catalog.claims`)."""


class TablePointer(Stored, frozen=True):
    """A table of which only the metadata file is known; imported when it is first loaded."""

    id: ObjId
    created_us: int
    metadata_location: str
    location: str
    claims: tuple[str, ...] = ()
    """As in `TableState`."""


class TableSchema(Stored, frozen=True):
    """One large schema."""

    json: bytes


def _state_refs(state: TableState) -> Iterator[ObjRef]:
    for part in state.schemas:
        if isinstance(part, int):
            yield ObjRef(ObjId(part), SCHEMA.name)
    for sequence in sequences_of(state):
        for piece in sequence.pieces:
            yield ObjRef(piece.id, CHUNK.name)


def sequences_of(state: TableState) -> tuple[Sequence, ...]:
    """All that is kept in chunks, in the order that `loading.py` takes them apart."""
    return (
        state.snapshots,
        state.snapshot_log,
        state.metadata_log,
        state.statistics,
        state.partition_statistics,
    )


class _ChunkCodec:
    """Chunks as they are, without a map around them: a state has many."""

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Chunk)

    def encode(self, value: Chunk) -> bytes:
        return self._encoder.encode(value)

    def decode(self, payload: bytes, version: int) -> Chunk:
        return self._decoder.decode(payload)

    def weigh(self, value: Chunk, payload_bytes: int) -> int:
        return 400 + payload_bytes + 60 * len(value.keys)


TABLE: ObjectType[TableState] = struct_type("table", TableState, refs=_state_refs, version=2)
POINTER: ObjectType[TablePointer] = struct_type("table-pointer", TablePointer, version=2)
SCHEMA: ObjectType[TableSchema] = struct_type("table-schema", TableSchema)
CHUNK: ObjectType[Chunk] = ObjectType(name="table-chunk", codec=_ChunkCodec())

TABLE_TYPES: Iterable[ObjectType[Any]] = (TABLE, POINTER, SCHEMA, CHUNK)
