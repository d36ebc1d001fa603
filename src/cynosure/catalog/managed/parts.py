"""Which pieces of a table in memory are stored objects already.

`Fragments` keeps the identity of chunks that did not change, so identity says what need not be written
again. A chunk that only lost entries at its front is stored as the old object and a number of entries to
skip: logs are trimmed on every commit, and would else rewrite their oldest chunk each time.

Must not break: the chunks and schemas of the mapping are held by it, so an identity is never reused.
"""

from collections.abc import Callable
from typing import Any

from cynosure.catalog.managed.state import CHUNK, SCHEMA, Piece, Sequence, TableSchema
from cynosure.iceberg import fragments
from cynosure.iceberg.fragments import Chunk, Fragments
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

INLINE_SCHEMA_BYTES = 2_048
"""Schemas up to this size stay inside the state: a second row costs more than their bytes."""


class Parts:
    """Stored objects by the identity of what they hold."""

    __slots__ = ("_chunks", "_schemas")

    def __init__(self) -> None:
        self._chunks: dict[int, tuple[Chunk, Piece]] = {}
        self._schemas: dict[int, tuple[Any, ObjId]] = {}

    def note_chunk(self, chunk: Chunk, piece: Piece) -> None:
        """Remember where a chunk is stored."""
        self._chunks[id(chunk)] = (chunk, piece)

    def note_schema(self, document: Any, obj_id: ObjId) -> None:
        """Remember where a schema is stored."""
        self._schemas[id(document)] = (document, obj_id)

    def find_schema(self, document: Any) -> ObjId | None:
        """Where a schema is stored."""
        found = self._schemas.get(id(document))
        return None if found is None else found[1]

    def find_chunk(self, chunk: Chunk) -> Piece | None:
        """Where a chunk, or a longer one that ends with it, is stored."""
        found = self._chunks.get(id(chunk))
        if found is not None:
            return found[1]
        for other, piece in self._chunks.values():
            lost = len(other.keys) - len(chunk.keys)
            if lost > 0 and other.keys[lost:] == chunk.keys and other.json.endswith(chunk.json):
                return Piece(piece.id, piece.skip + lost)
        return None


class Packing:
    """One state being packed: what is stored already, and what has to be written."""

    __slots__ = ("_next_id", "_old", "new_objects", "parts")

    def __init__(self, old: Parts, next_id: Callable[[], ObjId]) -> None:
        self._old = old
        self._next_id = next_id
        self.parts = Parts()
        self.new_objects: list[NewObject] = []

    def pack_schema(self, document: Any) -> bytes | int:
        """The schema itself, or where it is stored."""
        json: bytes = document.json
        if len(json) <= INLINE_SCHEMA_BYTES:
            return json
        obj_id = self._old.find_schema(document)
        if obj_id is None:
            obj_id = self._next_id()
            self.new_objects.append(NewObject(SCHEMA, obj_id, TableSchema(json=json)))
        self.parts.note_schema(document, obj_id)
        return obj_id

    def pack_sequence(self, entries: Fragments) -> Sequence:
        """Where the chunks are stored; those that are not yet become new objects."""
        chunks = entries.chunks
        if not chunks:
            return Sequence()
        tail = chunks[-1] if len(chunks[-1].keys) < fragments.CHUNK else None
        pieces: list[Piece] = []
        for chunk in chunks if tail is None else chunks[:-1]:
            piece = self._old.find_chunk(chunk)
            if piece is None:
                piece = Piece(self._next_id())
                self.new_objects.append(NewObject(CHUNK, piece.id, chunk))
            self.parts.note_chunk(chunk, piece)
            pieces.append(piece)
        return Sequence(tuple(pieces), tail)
