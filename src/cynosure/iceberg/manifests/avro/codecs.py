"""Blocks, compressed and decompressed.

A maintainer must not break: decompression stops at the limit. A few kilobytes can stand for gigabytes.
"""

import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Final

import zstandard

from cynosure.iceberg.manifests.avro import snappy
from cynosure.iceberg.manifests.avro.malformed import Malformed


def decompress(codec: str, data: bytes, *, limit: int) -> bytes:
    """The bytes of a block. Raises `Malformed` when they are damaged or more than `limit`."""
    read = _READERS.get(codec)
    if read is None:
        raise Malformed("The file is compressed with a codec that this server does not know")
    return read(data, limit)


def compress(codec: str, data: bytes) -> bytes:
    """The stored form of a block."""
    return _WRITERS[codec](data)


def _plain(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise Malformed("A block is larger than allowed")
    return data


def _inflate(data: bytes, limit: int) -> bytes:
    reader = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        plain = reader.decompress(data, limit + 1)
    except zlib.error as error:
        raise Malformed("A block cannot be decompressed") from error
    if len(plain) > limit:
        raise Malformed("A block is larger than allowed")
    if not reader.eof:
        raise Malformed("A block is cut off")
    return plain


def _deflate(data: bytes) -> bytes:
    writer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return writer.compress(data) + writer.flush()


def _unpack_zstd(data: bytes, limit: int) -> bytes:
    # As a stream: asked for all at once, the library allocates what the frame says it holds.
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(BytesIO(data))
        plain: bytes = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise Malformed("A block cannot be decompressed") from error
    if len(plain) > limit:
        raise Malformed("A block is larger than allowed")
    return plain


def _pack_zstd(data: bytes) -> bytes:
    packed: bytes = zstandard.ZstdCompressor(level=3).compress(data)
    return packed


def _unpack_snappy(data: bytes, limit: int) -> bytes:
    if len(data) < 4:
        raise Malformed("A block is cut off")
    plain = snappy.decompress(data[:-4], limit=limit)
    if zlib.crc32(plain) != int.from_bytes(data[-4:], "big"):
        raise Malformed("The checksum of a block is wrong")
    return plain


_READERS: Final[Mapping[str, Callable[[bytes, int], bytes]]] = {
    "null": _plain,
    "deflate": _inflate,
    "zstandard": _unpack_zstd,
    "snappy": _unpack_snappy,
}
_WRITERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda data: data,
    "deflate": _deflate,
    "zstandard": _pack_zstd,
}
WRITABLE: Final = frozenset(_WRITERS)
