"""Objects larger than a database's row limit, split into part rows.

Parts are rows of the derived type `TYPE#N` under the object's own id, so whatever keeps the object
keeps its parts. The main row then holds a small *index of parts* instead of the envelope.

Must not break: parts go into the same write as the main row or an earlier one, never a later one, so
whatever a reference leads to is whole.
"""

import struct
import zlib
from collections.abc import Sequence

from cynosure.common.errors import CorruptObject, MissingObject
from cynosure.persistence.objects import FORMAT, PARTS
from cynosure.persistence.spi import ObjKey, Row

_PARTS = struct.Struct(">BBIQI")
"""format u8 | flags u8 | number of parts u32 | bytes in all u64 | CRC-32 of all bytes u32"""
_CHECKSUM = struct.Struct(">I")
"""CRC-32 of the index of parts itself: a flipped bit in the number of parts must not become a request
for four billion rows."""


def split(row: Row, limit_bytes: int) -> list[Row]:
    """The rows that hold `row`, parts first and the main row last. One row when it fits."""
    if len(row.blob) <= limit_bytes:
        return [row]
    pieces = [row.blob[at : at + limit_bytes] for at in range(0, len(row.blob), limit_bytes)]
    parts = [
        row._replace(key=_part_key(row.key, number), blob=piece) for number, piece in enumerate(pieces, 1)
    ]
    index = _PARTS.pack(FORMAT, PARTS, len(pieces), len(row.blob), zlib.crc32(row.blob))
    return [*parts, row._replace(blob=index + _CHECKSUM.pack(zlib.crc32(index)))]


def part_keys(row: Row) -> list[ObjKey]:
    """Keys of the parts that `row` points to; empty for an ordinary row."""
    if len(row.blob) < 2 or row.blob[0] != FORMAT or not row.blob[1] & PARTS:
        return []
    index, checksum = row.blob[: _PARTS.size], row.blob[_PARTS.size :]
    if checksum != _CHECKSUM.pack(zlib.crc32(index)):
        raise CorruptObject(
            "The index of parts of a stored object is damaged",
            fix="Restore the database from a backup.",
            type=row.key.type,
            id=row.key.id,
        )
    _, _, count, _, _ = _PARTS.unpack(index)
    return [_part_key(row.key, number) for number in range(1, count + 1)]


def join(row: Row, parts: Sequence[Row | None]) -> Row:
    """The whole of a split row."""
    _, _, count, total_bytes, checksum = _PARTS.unpack_from(row.blob)
    missing = [number for number, part in enumerate(parts, 1) if part is None]
    if missing or len(parts) != count:
        raise MissingObject(
            "A part of a stored object is not in the database",
            fix="Restore the database from a backup.",
            type=row.key.type,
            id=row.key.id,
            parts=missing,
        )
    blob = b"".join(part.blob for part in parts if part is not None)
    if len(blob) != total_bytes or zlib.crc32(blob) != checksum:
        raise CorruptObject(
            "The parts of a stored object do not fit together",
            fix="Restore the database from a backup.",
            type=row.key.type,
            id=row.key.id,
        )
    return row._replace(blob=blob)


def _part_key(key: ObjKey, number: int) -> ObjKey:
    return key._replace(type=f"{key.type}#{number}")
