"""Files of blocks: a header with a schema, then blocks of values.

A maintainer must not break: a file is read to its last byte. Bytes that are left over or missing are an
error, because a manifest that was cut off at the end of a block would otherwise lose files without a word.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from cynosure.iceberg.manifests.avro.codecs import decompress
from cynosure.iceberg.manifests.avro.decode import read_bytes, read_count, read_long, read_text
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Node, least_bytes, parse_schema

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16


class ReadLimits(Struct, frozen=True):
    """What one file may cost."""

    max_entries: int = 2_000_000
    max_decoded_bytes: int = 512 * 1024 * 1024
    """All blocks together, decompressed. Only one block is in memory at a time."""
    max_block_bytes: int = 32 * 1024 * 1024
    """One of them, decompressed: what a file that somebody made up can fill memory with. Writers begin a new
    one long before."""


class Block(NamedTuple):
    """Some values of a file."""

    entries: int
    data: bytes
    position: int
    """Where the block starts in the file."""


class Container(Struct, frozen=True):
    """A file whose header has been read."""

    schema: Node
    least_bytes: int
    """Of an entry."""
    properties: dict[str, bytes]
    codec: str
    data: bytes
    sync: bytes
    first_block: int
    schema_json: bytes
    """The schema as the writer spelled it: what is written again with it reads the same."""

    def blocks(self, limits: ReadLimits) -> Iterator[Block]:
        """All blocks in order. Raises `Malformed` with the position of the damage."""
        at, end = self.first_block, len(self.data)
        entries, left = limits.max_entries, limits.max_decoded_bytes
        while at < end:
            start = at
            try:
                block, at = self._read_block(at, min(left, limits.max_block_bytes))
            except IndexError:
                raise Malformed("The file is cut off", position=start) from None
            except Malformed as error:
                raise Malformed(error.message, position=start) from error
            left -= len(block.data)
            entries -= block.entries
            if entries < 0:
                raise Malformed("The file has more entries than allowed", position=start)
            yield block

    def _read_block(self, start: int, limit: int) -> tuple[Block, int]:
        data = self.data
        count, at = read_long(data, start)
        size, at = read_long(data, at)
        end = at + size
        if count < 0 or size < 0 or end + SYNC_BYTES > len(data):
            raise Malformed("A block is longer than the file")
        if data[end : end + SYNC_BYTES] != self.sync:
            raise Malformed("A block does not end where it should")
        plain = decompress(self.codec, data[at:end], limit=limit)
        if count * self.least_bytes > len(plain):
            raise Malformed("A block has more entries than bytes")
        return Block(count, plain, start), end + SYNC_BYTES


def read_container(data: bytes) -> Container:
    """A file from its header. Raises `Malformed`."""
    if not data.startswith(MAGIC):
        raise Malformed("This is not an Avro file", position=0)
    try:
        return _read_header(data)
    except IndexError:
        raise Malformed("The header is cut off", position=len(MAGIC)) from None
    except Malformed as error:
        raise Malformed(error.message, position=len(MAGIC)) from error


def _read_header(data: bytes) -> Container:
    properties: dict[str, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at = read_count(data, at, 2)
        if not count:
            break
        for _ in range(count):
            key, at = read_text(data, at)
            properties[key], at = read_bytes(data, at)
    first_block = at + SYNC_BYTES
    if first_block > len(data):
        raise Malformed("The header is cut off")
    schema_json = properties.pop("avro.schema", b"")
    schema = parse_schema(schema_json)
    codec = properties.pop("avro.codec", b"null").decode("utf-8", "replace") or "null"
    return Container(
        schema,
        max(1, least_bytes(schema)),
        properties,
        codec,
        data,
        data[at:first_block],
        first_block,
        schema_json,
    )
