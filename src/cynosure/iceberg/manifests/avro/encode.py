"""Writers of values, and the file around them.

A maintainer must not break: the same values give the same bytes. The mark between blocks is made from the
contents, not drawn by chance, so that a repeated write of a manifest is a no-op and tests can compare files.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from struct import pack
from typing import Any, Final, TypeAlias

from cynosure.iceberg.manifests.avro.codecs import compress
from cynosure.iceberg.manifests.avro.container import MAGIC, SYNC_BYTES
from cynosure.iceberg.manifests.avro.schema import Array, Fixed, Node, Plain, Record, Union, parse_schema
from cynosure.iceberg.single_value import EXACT

Writer: TypeAlias = Callable[[bytearray, Any], None]

BLOCK_BYTES: Final = 64 * 1024
"""A block ends after the entry that reaches this size: as other writers cut them."""


def write_container(
    schema: bytes, values: Iterable[Any], *, properties: Mapping[str, bytes], codec: str = "deflate"
) -> bytes:
    """A whole file. A record is a tuple of its fields' values in the order of the schema."""
    write = writer_of(schema)
    return _write_file(schema, values, write, properties=properties, codec=codec)


def write_encoded(
    schema: bytes, records: Iterable[bytes], *, properties: Mapping[str, bytes], codec: str = "deflate"
) -> bytes:
    """As `write_container`, of records that `encode_value` made for this schema."""
    return _write_file(schema, records, bytearray.extend, properties=properties, codec=codec)


def encode_value(schema: bytes, value: Any) -> bytes:
    """One record, as it is in a file of this schema."""
    out = bytearray()
    writer_of(schema)(out, value)
    return bytes(out)


@lru_cache(maxsize=128)
def writer_of(schema: bytes) -> Writer:
    """What writes records of a schema: the same few again and again."""
    return make_writer(parse_schema(schema))


def _write_file(
    schema: bytes, values: Iterable[Any], write: Writer, *, properties: Mapping[str, bytes], codec: str
) -> bytes:
    blocks: list[tuple[int, bytes]] = []
    block, count = bytearray(), 0
    for value in values:
        write(block, value)
        count += 1
        if len(block) >= BLOCK_BYTES:
            blocks.append((count, compress(codec, bytes(block))))
            block, count = bytearray(), 0
    if count:
        blocks.append((count, compress(codec, bytes(block))))
    header = {**properties, "avro.schema": schema, "avro.codec": codec.encode()}
    out = bytearray(MAGIC)
    write_long(out, len(header))
    for key, value in header.items():
        _write_bytes(out, key.encode())
        _write_bytes(out, value)
    out.append(0)
    digest = sha256(out)
    for _, data in blocks:
        digest.update(data)
    sync = digest.digest()[:SYNC_BYTES]
    out += sync
    for count, data in blocks:
        write_long(out, count)
        _write_bytes(out, data)
        out += sync
    return bytes(out)


def write_long(out: bytearray, value: int) -> None:
    """A whole number of at most 64 bits."""
    number = value << 1 if value >= 0 else ~(value << 1)
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def make_writer(node: Node) -> Writer:
    """The writer for values of a type."""
    if isinstance(node, Plain):
        return _PLAIN[node.kind]
    if isinstance(node, Fixed):
        return _make_fixed(node)
    if isinstance(node, Array):
        return _make_array(make_writer(node.item))
    if isinstance(node, Record):
        return _make_record([make_writer(field.type) for field in node.fields])
    if isinstance(node, Union) and len(node.branches) == 2 and node.branches[0] == Plain("null"):
        return _make_optional(make_writer(node.branches[1]))
    raise TypeError("a type that no manifest has")


def _write_bytes(out: bytearray, value: bytes) -> None:
    write_long(out, len(value))
    out += value


_PLAIN: Final[Mapping[str, Writer]] = {
    "null": lambda out, value: None,
    "boolean": lambda out, value: out.append(1 if value else 0),
    "int": write_long,
    "long": write_long,
    "float": lambda out, value: out.extend(pack("<f", value)),
    "double": lambda out, value: out.extend(pack("<d", value)),
    "bytes": _write_bytes,
    "string": lambda out, value: _write_bytes(out, value.encode()),
}


def _make_fixed(node: Fixed) -> Writer:
    size, scale = node.size, node.scale

    def write(out: bytearray, value: bytes) -> None:
        if len(value) != size:
            raise ValueError("a value of another length than its type")
        out += value

    def write_decimal(out: bytearray, value: Any) -> None:
        out += int(value.scaleb(scale, context=EXACT)).to_bytes(size, "big", signed=True)

    if node.logical == "decimal":
        return write_decimal
    return (lambda out, value: write(out, value.bytes)) if node.logical == "uuid" else write


def _make_array(write_item: Writer) -> Writer:
    def write(out: bytearray, values: Iterable[Any]) -> None:
        items = list(values)
        if items:
            write_long(out, len(items))
            for item in items:
                write_item(out, item)
        out.append(0)

    return write


def _make_record(writers: list[Writer]) -> Writer:
    def write(out: bytearray, values: tuple[Any, ...]) -> None:
        for one, value in zip(writers, values, strict=True):
            one(out, value)

    return write


def _make_optional(write_value: Writer) -> Writer:
    def write(out: bytearray, value: Any) -> None:
        if value is None:
            out.append(0)
        else:
            out.append(2)
            write_value(out, value)

    return write
