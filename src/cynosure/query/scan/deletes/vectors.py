"""Deletion vectors: a roaring bitmap of places, as a blob in a Puffin file.

    length of what follows, 4 bytes, big endian
    D1 D3 39 64
    bitmaps of 32 bits by their upper halves, little endian (the portable 64-bit form of roaring)
    CRC-32 of magic and bitmaps, 4 bytes, big endian

A maintainer must not break: length, magic, checksum and number of places are all checked; nothing is guessed.
"""

import zlib
from array import array
from typing import Final

from pyroaring import BitMap64

from cynosure.query.errors import NotReadable
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import reading
from cynosure.query.scan_task import DeleteFile

_MAGIC: Final = b"\xd1\xd3\x39\x64"
_AROUND: Final = 12
"""Bytes of length, magic and checksum."""


def read_vector(delete: DeleteFile, files: TaskFiles, budget: Budget) -> "array[int]":
    """Places of deleted rows, sorted. What they take is counted by whoever keeps them."""
    if delete.offset < 0 or delete.length <= _AROUND or delete.offset + delete.length > delete.size_bytes:
        raise NotReadable("A deletion vector is not where the table says")
    with budget.holding(delete.length):
        source = files.open(delete.path, delete.size_bytes)
        try:
            with reading():
                source.file.seek(delete.offset)
                blob = source.file.read(delete.length) or b""
        finally:
            source.close()
        found = parse_vector(blob, delete.length)
    if delete.record_count and len(found) != delete.record_count:
        raise NotReadable("A deletion vector has another number of rows than the table says")
    return found


def parse_vector(blob: bytes, length: int) -> "array[int]":
    """The places in a blob."""
    content = blob[4:-4]
    is_whole = len(blob) == length and int.from_bytes(blob[:4], "big") == len(content)
    if not is_whole or content[:4] != _MAGIC or zlib.crc32(content) != int.from_bytes(blob[-4:], "big"):
        raise NotReadable("A deletion vector is damaged", fix="Restore the file, or rewrite the table.")
    try:
        return array("q", BitMap64.deserialize(content[4:]))
    except (ValueError, OverflowError):
        raise NotReadable("A deletion vector is damaged") from None
