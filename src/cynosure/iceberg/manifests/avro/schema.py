"""A writer's schema as values.

A maintainer must not break: a schema is finite work. Recursive types, endless nesting and many fields of no
size are refused here, so that no reader made from a schema can loop or recurse without using up bytes.
"""

from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from cynosure.iceberg.manifests.avro.malformed import Malformed

MAX_SCHEMA_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 32
MAX_LEAVES: Final = 20_000
MAX_EMPTY_LEAVES: Final = 64
"""Fields that take no bytes. Each of them is work that the size of a file does not bound."""

PLAIN: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_LEAST_BYTES: Final = {"null": 0, "float": 4, "double": 8}


class Plain(Struct, frozen=True):
    """A type without parts."""

    kind: str
    logical: str | None = None
    scale: int = 0
    """Of a decimal."""


class Fixed(Struct, frozen=True):
    """Exactly `size` bytes."""

    size: int
    logical: str | None = None
    scale: int = 0


class Enum(Struct, frozen=True):
    """One of some names."""

    symbols: tuple[str, ...]


class Array(Struct, frozen=True):
    """Many of one type."""

    item: "Node"


class Map(Struct, frozen=True):
    """Texts to values of one type."""

    value: "Node"


class Union(Struct, frozen=True):
    """One of some types."""

    branches: tuple["Node", ...]


class RecordField(Struct, frozen=True):
    """A part of a record."""

    name: str
    id: int | None
    """Iceberg's own number: how fields are found. None in files that are not Iceberg's."""
    aliases: tuple[str, ...]
    type: "Node"


class Record(Struct, frozen=True):
    """Parts in order."""

    fields: tuple[RecordField, ...]


Node: TypeAlias = Plain | Fixed | Enum | Array | Map | Union | Record


def parse_schema(json: bytes) -> Node:
    """A schema from the header of a file. The manifests of a table repeat theirs, so some are remembered."""
    if len(json) > MAX_SCHEMA_BYTES:
        raise Malformed("The Avro schema is too large")
    return _parse_known(json) if len(json) <= _REMEMBERED_BYTES else _parse(json)


def _parse(json: bytes) -> Node:
    try:
        document = msgspec.json.decode(json)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed("The Avro schema is not JSON") from error
    node = _Parser().parse(document, "", 0)
    leaves, empty = _count_leaves(node)
    if leaves > MAX_LEAVES or empty > MAX_EMPTY_LEAVES:
        raise Malformed("The Avro schema has too many fields")
    return node


_REMEMBERED_BYTES: Final = 32 * 1024
_parse_known = lru_cache(maxsize=128)(_parse)


def least_bytes(node: Node) -> int:
    """How many bytes a value takes at least."""
    if isinstance(node, Plain):
        return _LEAST_BYTES.get(node.kind, 1)
    if isinstance(node, Fixed):
        return node.size
    if isinstance(node, Record):
        return sum(least_bytes(field.type) for field in node.fields)
    return 1


def unwrap(node: Node) -> Node:
    """The type behind an optional one."""
    if isinstance(node, Union):
        others = [branch for branch in node.branches if branch != Plain("null")]
        if len(others) == 1:
            return others[0]
    return node


def _count_leaves(node: Node) -> tuple[int, int]:
    if isinstance(node, Record):
        counts = [_count_leaves(field.type) for field in node.fields]
        return sum(one for one, _ in counts), sum(empty for _, empty in counts)
    if isinstance(node, Union):
        # One byte says which branch it is, so no branch is empty.
        return 1 + sum(_count_leaves(branch)[0] for branch in node.branches), 0
    if isinstance(node, Array):
        return 1 + _count_leaves(node.item)[0], 0
    if isinstance(node, Map):
        return 1 + _count_leaves(node.value)[0], 0
    return 1, int(least_bytes(node) == 0)


class _Parser:
    def __init__(self) -> None:
        self._named: dict[str, Node] = {}
        self._leaves = 0

    def parse(self, value: object, space: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Malformed("The Avro schema is nested too deeply")
        self._leaves += 1
        if self._leaves > MAX_LEAVES:
            raise Malformed("The Avro schema has too many fields")
        if isinstance(value, str):
            return self._find(value, space)
        if isinstance(value, list):
            return Union(tuple(self.parse(one, space, depth + 1) for one in value))
        if not isinstance(value, dict):
            raise Malformed("An Avro type is text, a list or an object")
        return self._parse_object(value, space, depth)

    def _find(self, name: str, space: str) -> Node:
        if name in PLAIN:
            return Plain(name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            # A name that is still being read stands for a recursive type: not in manifests.
            raise Malformed("The Avro schema names a type that it does not define before")
        # Every use of a name counts as if it were written out, because that is how it is read.
        self._leaves += _count_leaves(found)[0]
        return found

    def _parse_object(self, value: dict[str, Any], space: str, depth: int) -> Node:
        kind = value.get("type")
        logical = value.get("logicalType")
        logical = logical if isinstance(logical, str) else None
        scale = value.get("scale", 0)
        scale = scale if type(scale) is int and 0 <= scale <= 10_000 else 0
        if logical in ("timestamp-micros", "timestamp-nanos"):
            logical += "-utc" if value.get("adjust-to-utc") is True else ""
        match kind:
            case "array":
                item = self.parse(value.get("items"), space, depth + 1)
                if least_bytes(item) == 0:
                    raise Malformed("The Avro schema has a list of values without a size")
                return Array(item)
            case "map":
                return Map(self.parse(value.get("values"), space, depth + 1))
            case "record" | "error":
                return self._parse_record(value, space, depth)
            case "fixed":
                size = value.get("size")
                if type(size) is not int or not 0 <= size <= MAX_SCHEMA_BYTES:
                    raise Malformed("A fixed Avro type needs a size")
                return self._remember(value, space, Fixed(size, logical, scale))
            case "enum":
                symbols = value.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
                    raise Malformed("An Avro enumeration needs symbols")
                return self._remember(value, space, Enum(tuple(symbols)))
            case str() if kind in PLAIN:
                return Plain(kind, logical, scale)
        return self.parse(kind, space, depth + 1)

    def _parse_record(self, value: dict[str, Any], space: str, depth: int) -> Node:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise Malformed("An Avro record needs fields")
        inner = _space_of(value, space)
        parts = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise Malformed("A field of an Avro record needs a name")
            id_ = field.get("field-id")
            aliases = field.get("aliases")
            parts.append(
                RecordField(
                    name=field["name"],
                    id=id_ if type(id_) is int else None,
                    aliases=tuple(map(str, aliases)) if isinstance(aliases, list) else (),
                    type=self.parse(field.get("type"), inner, depth + 1),
                )
            )
        return self._remember(value, space, Record(tuple(parts)))

    def _remember(self, value: dict[str, Any], space: str, node: Node) -> Node:
        name = value.get("name")
        if isinstance(name, str):
            inner = _space_of(value, space)
            self._named[name if "." in name or not inner else f"{inner}.{name}"] = node
        return node


def _space_of(value: dict[str, Any], space: str) -> str:
    name = value.get("name")
    if isinstance(name, str) and "." in name:
        return name.rpartition(".")[0]
    given = value.get("namespace")
    return given if isinstance(given, str) else space
