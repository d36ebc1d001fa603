"""Typed objects in rows: the envelope, object types and what happens to fields we do not know.

A row's blob is an *envelope* around an encoded value:

    format u8 | flags u8 | type version u16 | CRC-32 u32 | bytes of refs u32 | refs | payload

`refs` names the objects that must live as long as this one, as a msgpack map from type to packed ids.

Must not break: references are in the envelope, so garbage collection follows the graph
without knowing any type; and a value read from a newer writer keeps the fields this version does
not know (`Stored.unknown`), and what they refer to, so that rolling upgrades and downgrades lose nothing.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from cynosure.common.errors import CorruptObject, Misconfigured, NewerFormat, UnknownType
from cynosure.persistence.deflate import deflate
from cynosure.persistence.spi import ObjId, ObjKey

FORMAT = 1
"""Envelope format. A blob with a greater one is refused with `NewerFormat`."""
ZLIB = 1
PARTS = 2
_HEADER = struct.Struct(">BBHII")
_COMPRESS_FROM_BYTES = 512
"""Below this, zlib's own overhead and CPU cost more than the bytes saved."""


class ObjRef(Struct, frozen=True, order=True):
    """An object's id and type."""

    id: ObjId
    type: str

    def pack(self) -> bytes:
        """As an index value: eight bytes of id, then the type's name."""
        return self.id.to_bytes(8, "big") + self.type.encode()

    @classmethod
    def unpack(cls, value: bytes) -> "ObjRef":
        """From an index value."""
        return cls(ObjId(int.from_bytes(value[:8], "big")), value[8:].decode())


class Unknown(Struct, frozen=True):
    """What a newer version wrote that this one does not know. Carried along, never interpreted."""

    version: int
    """Type version of that writer. The envelope of a rewrite repeats it: with our own version there, the
    next reader of our age would not look for unknown fields and lose them."""
    fields: dict[str, Raw] = {}
    nested: dict[str, tuple[Any, Raw]] = {}
    """Known fields that hold something unknown further down, as read and as stored."""
    refs: tuple[ObjRef, ...] = ()
    """Objects that only unknown fields refer to; without them garbage collection would take those."""


class Stored(Struct, frozen=True, kw_only=True):
    """Base of every struct that is stored.

    New fields need defaults: older objects do not have them. Change a stored value with
    `msgspec.structs.replace`, never by building a new one, so that `unknown` comes along. Unknown fields
    of a struct *within* a field come along as long as that field is not replaced: what several versions
    change together is better kept in fields of the outermost struct, or encoded (`Raw`).
    """

    unknown: Unknown | UnsetType = UNSET
    """Set only on values read from a newer writer."""


T = TypeVar("T")
StoredT = TypeVar("StoredT", bound=Stored)


class Codec(Protocol[T]):
    """How values of one type become bytes and back."""

    def encode(self, value: T) -> bytes:
        """Encode without compression; the envelope compresses."""
        ...

    def decode(self, payload: bytes, version: int) -> T:
        """Decode what a writer of type version `version` wrote. Damage raises `ValueError` or `Damaged`."""
        ...

    def weigh(self, value: T, payload_bytes: int) -> int:
        """Estimate of the decoded value's memory in bytes; the cache is byte-weighted."""
        ...


class StructCodec(Generic[StoredT]):
    """Msgpack maps keyed by field name."""

    def __init__(self, struct_type: type[StoredT], version: int) -> None:
        self._decoder = msgspec.msgpack.Decoder(struct_type)
        self._encoder = msgspec.msgpack.Encoder()
        self._version = version
        fields = msgspec.structs.fields(struct_type)
        self._names = {field.encode_name: field.name for field in fields}

    def encode(self, value: StoredT) -> bytes:  # noqa: D102
        unknown = value.unknown
        if unknown is UNSET:
            return self._encoder.encode(value)
        # What is unknown is msgpack already; a map of raw values keeps it byte for byte.
        fields = self._raw_fields(msgspec.structs.replace(value, unknown=UNSET))
        for name, (as_read, raw) in unknown.nested.items():
            if getattr(value, self._names[name]) is as_read:
                fields[name] = raw
        return self._encoder.encode({**unknown.fields, **fields})

    def decode(self, payload: bytes, version: int) -> StoredT:  # noqa: D102
        value = self._decoder.decode(payload)
        if version <= self._version:
            return value
        stored = msgspec.msgpack.decode(payload, type=dict[str, Raw])
        ours = self._raw_fields(value)
        fields = {name: raw.copy() for name, raw in stored.items() if name not in self._names}
        nested = {
            name: (getattr(value, self._names[name]), raw.copy())
            for name, raw in stored.items()
            if name in ours and ours[name] != raw
        }
        if not fields and not nested:
            return value
        return msgspec.structs.replace(value, unknown=Unknown(version=version, fields=fields, nested=nested))

    def _raw_fields(self, value: StoredT) -> dict[str, Raw]:
        return msgspec.msgpack.decode(self._encoder.encode(value), type=dict[str, Raw])

    def weigh(self, value: StoredT, payload_bytes: int) -> int:  # noqa: D102
        # Measured with tracemalloc on structs of short strings: 3-5 times their msgpack.
        return 400 + 5 * payload_bytes


def _no_refs(value: Any) -> Iterable[ObjRef]:
    return ()


@dataclass(frozen=True, slots=True)
class ObjectType(Generic[T]):
    """A kind of object: its stored name, how to encode it, and how long it may be cached.

    Registered by entry point (group `cynosure.object_types`, naming a sequence of these), so a new
    type is a coding exercise and never a schema change.
    """

    name: str
    codec: Codec[T]
    version: int = 1
    """Raise it when a field is added, so that older servers know to look for unknown fields."""
    is_mutable: bool = False
    """Mutable types are written with `insert` and `swap` only and are never collected as garbage."""
    refs: Callable[[T], Iterable[ObjRef]] = _no_refs
    """Objects that must live as long as this one. Written into the envelope."""
    cache_s: float = 0.0
    """Mutable types only: how long a value may be served from memory. Zero means never."""
    negative_cache_s: float = 0.0
    """How long "no such object" may be served from memory. Zero means never."""
    is_compressed: bool = True
    """False for values that hold compressed bytes already."""

    def __post_init__(self) -> None:
        if not self.name or "#" in self.name or not self.name.isascii():
            raise Misconfigured(
                "An object type needs a short ASCII name without '#'",
                fix="Rename the type.",
                name=self.name,
            )


def struct_type(name: str, struct_class: type[StoredT], **options: Any) -> ObjectType[StoredT]:
    """Object type of a `Stored` struct."""
    version = options.get("version", 1)
    return ObjectType(name=name, codec=StructCodec(struct_class, version), **options)


class TypeRegistry:
    """The object types this process knows, by name."""

    def __init__(self, types: Iterable[ObjectType[Any]]) -> None:
        self._types: dict[str, ObjectType[Any]] = {}
        for object_type in types:
            known = self._types.setdefault(object_type.name, object_type)
            if known is not object_type:
                raise Misconfigured(
                    "Two installed packages define the same object type",
                    fix="Remove one of them or rename its type.",
                    name=object_type.name,
                )

    def __iter__(self) -> Iterator[ObjectType[Any]]:
        return iter(self._types.values())

    def find(self, name: str) -> ObjectType[Any] | None:
        """The type of this name (a part counts as its whole), or `None` when not installed."""
        return self._types.get(name.partition("#")[0])

    def get(self, name: str) -> ObjectType[Any]:
        """The type of this name; `UnknownType` when no installed package has it."""
        found = self.find(name)
        if found is None:
            raise UnknownType(
                "No installed package knows this object type",
                fix="Install the package that wrote it, or start the version that did.",
                type=name,
            )
        return found


class Envelope(Struct, frozen=True):
    """A decoded envelope. `payload` is uncompressed."""

    version: int
    refs: tuple[ObjRef, ...]
    payload: bytes


def seal(object_type: ObjectType[T], value: T) -> bytes:
    """Encode a value and put it into an envelope."""
    return seal_sized(object_type, value)[0]


def seal_sized(object_type: ObjectType[T], value: T) -> tuple[bytes, int]:
    """As `seal`, with the size of the encoded value before compression, which is what the cache weighs."""
    payload = object_type.codec.encode(value)
    payload_bytes = len(payload)
    version, refs = object_type.version, tuple(object_type.refs(value))
    if isinstance(value, Stored) and value.unknown is not UNSET:
        version = max(version, value.unknown.version)
        refs += value.unknown.refs
    flags = 0
    if object_type.is_compressed and payload_bytes >= _COMPRESS_FROM_BYTES:
        packed = deflate(payload)
        if len(packed) < payload_bytes:
            payload, flags = packed, ZLIB
    packed_refs = _pack_refs(refs)
    body, refs_bytes = packed_refs + payload, len(packed_refs)
    header = _HEADER.pack(FORMAT, flags, version, _checksum(flags, version, refs_bytes, body), refs_bytes)
    return header + body, payload_bytes


def open_envelope(key: ObjKey, blob: bytes) -> Envelope:
    """Check and open a blob. `key` only names the object in errors."""
    if len(blob) < _HEADER.size:
        raise _corrupt(key, "shorter than its header")
    format_version, flags, version, checksum, refs_bytes = _HEADER.unpack_from(blob)
    if format_version != FORMAT or flags & ~(ZLIB | PARTS):
        if format_version > FORMAT:
            raise NewerFormat(
                "A stored object was written in a newer format",
                fix="Start the newer version; this one reads up to the format it names.",
                format=format_version,
                reads_up_to=FORMAT,
                **_named(key),
            )
        raise _corrupt(key, "no known format")
    body = blob[_HEADER.size :]
    if _checksum(flags, version, refs_bytes, body) != checksum:
        raise _corrupt(key, "checksum does not match")
    if refs_bytes > len(body):
        raise _corrupt(key, "shorter than its references")
    try:
        refs = _unpack_refs(body[:refs_bytes]) if refs_bytes else ()
    except (msgspec.MsgspecError, struct.error) as error:
        raise _corrupt(key, "references are damaged") from error
    payload = body[refs_bytes:] if refs_bytes else body
    if flags & ZLIB:
        try:
            payload = zlib.decompress(payload)
        except zlib.error as error:
            raise _corrupt(key, "compressed bytes are damaged") from error
    return Envelope(version=version, refs=refs, payload=payload)


def _checksum(flags: int, version: int, refs_bytes: int, body: bytes) -> int:
    # The header is covered too: garbage collection believes the number of references without decoding
    # the payload, so one flipped bit there would let it collect a living object.
    return zlib.crc32(body, zlib.crc32(_HEADER.pack(FORMAT, flags, version, 0, refs_bytes)))


def _pack_refs(refs: tuple[ObjRef, ...]) -> bytes:
    if not refs:
        return b""
    by_type: dict[str, list[int]] = {}
    for ref in refs:
        by_type.setdefault(ref.type, []).append(ref.id)
    return msgspec.msgpack.encode({name: struct.pack(f">{len(ids)}Q", *ids) for name, ids in by_type.items()})


def _unpack_refs(packed: bytes) -> tuple[ObjRef, ...]:
    by_type = msgspec.msgpack.decode(packed, type=dict[str, bytes])
    return tuple(
        ObjRef(ObjId(obj_id), name)
        for name, ids in by_type.items()
        for (obj_id,) in struct.iter_unpack(">Q", ids)
    )


def unseal(object_type: ObjectType[T], key: ObjKey, blob: bytes) -> tuple[T, int]:
    """Decode a blob into its value and the value's weight in memory."""
    envelope = open_envelope(key, blob)
    try:
        value = object_type.codec.decode(envelope.payload, envelope.version)
    except (msgspec.MsgspecError, ValueError) as error:
        if envelope.version > object_type.version:
            raise NewerFormat(
                "A stored object was written by a newer version of its type",
                fix="Start the newer version; this one cannot read what it wrote.",
                version=envelope.version,
                reads_up_to=object_type.version,
                **_named(key),
            ) from error
        raise _corrupt(key, "does not decode as its type") from error
    if envelope.version > object_type.version and envelope.refs:
        value = _with_unknown_refs(object_type, value, envelope)
    return value, object_type.codec.weigh(value, len(envelope.payload))


def _with_unknown_refs(object_type: ObjectType[T], value: T, envelope: Envelope) -> T:
    if not isinstance(value, Stored):
        return value
    explained = set(object_type.refs(value))
    refs = tuple(ref for ref in envelope.refs if ref not in explained)
    if not refs:
        return value
    unknown = Unknown(version=envelope.version) if value.unknown is UNSET else value.unknown
    return msgspec.structs.replace(value, unknown=msgspec.structs.replace(unknown, refs=refs))


def _corrupt(key: ObjKey, why: str) -> CorruptObject:
    return CorruptObject(
        "A stored object is damaged",
        fix="Run 'cynosure store check' to see what else is, then restore the database from a backup.",
        why=why,
        **_named(key),
    )


def _named(key: ObjKey) -> dict[str, Any]:
    return {"realm": key.realm, "catalog": key.catalog, "type": key.type, "id": key.id}
