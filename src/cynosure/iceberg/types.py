"""Iceberg's types, v1 to v3: values for them, their text and JSON forms, and what may become what.

A maintainer must not break: two types that mean the same are equal and print the same, because schemas are
compared to decide whether a commit adds a new one. Values of a type (defaults, literals) are in
`single_value.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeGuard

from msgspec import UNSET, Struct, UnsetType

from cynosure.common.errors import BadInput

MAX_DEPTH: Final = 100
"""Deepest nesting of structs, lists and maps. Keeps every walk over a type far from Python's own limit."""

MAX_INT: Final = 2**31 - 1


class Primitive(Struct, frozen=True):
    """A type without parameters. Equal by name: compare with the constants below."""

    name: str

    def __str__(self) -> str:
        return self.name


class DecimalType(Struct, frozen=True):
    """A fixed-point number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


class FixedType(Struct, frozen=True):
    """Exactly `length` bytes."""

    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


class GeometryType(Struct, frozen=True):
    """A shape on a plane. `crs` is None for the default, OGC:CRS84."""

    crs: str | None = None

    def __str__(self) -> str:
        return f"geometry({self.crs})" if self.crs else "geometry"


class GeographyType(Struct, frozen=True):
    """A shape on a globe. None stands for the defaults, OGC:CRS84 and spherical edges."""

    crs: str | None = None
    algorithm: str | None = None

    def __str__(self) -> str:
        if self.algorithm:
            return f"geography({self.crs or DEFAULT_CRS}, {self.algorithm})"
        return f"geography({self.crs})" if self.crs else "geography"


class NestedField(Struct, frozen=True):
    """A named and numbered part of a struct; also how elements, keys and values are walked."""

    id: int
    name: str
    type: "Type"
    is_required: bool
    doc: str | None = None
    initial_default: Any | UnsetType = UNSET
    """Single-value JSON, unconverted: what rows written before the field existed read as."""
    write_default: Any | UnsetType = UNSET
    """Single-value JSON, unconverted: what a writer that does not know the field writes."""

    def __str__(self) -> str:
        return f"{self.id}: {self.name}: {'required' if self.is_required else 'optional'} {self.type}"


class StructType(Struct, frozen=True):
    """Named fields in order."""

    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"


class ListType(Struct, frozen=True):
    """A sequence of one type."""

    element_id: int
    element: "Type"
    is_element_required: bool

    def __str__(self) -> str:
        return f"list<{self.element}>"


class MapType(Struct, frozen=True):
    """Keys, which are never null, to values."""

    key_id: int
    key: "Type"
    value_id: int
    value: "Type"
    is_value_required: bool

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


PrimitiveType = Primitive | DecimalType | FixedType | GeometryType | GeographyType
Type = PrimitiveType | StructType | ListType | MapType

DEFAULT_CRS: Final = "OGC:CRS84"
DEFAULT_ALGORITHM: Final = "spherical"
EDGE_ALGORITHMS: Final = ("spherical", "vincenty", "thomas", "andoyer", "karney")

BOOLEAN: Final = Primitive("boolean")
INT: Final = Primitive("int")
LONG: Final = Primitive("long")
FLOAT: Final = Primitive("float")
DOUBLE: Final = Primitive("double")
DATE: Final = Primitive("date")
TIME: Final = Primitive("time")
TIMESTAMP: Final = Primitive("timestamp")
TIMESTAMPTZ: Final = Primitive("timestamptz")
TIMESTAMP_NS: Final = Primitive("timestamp_ns")
TIMESTAMPTZ_NS: Final = Primitive("timestamptz_ns")
STRING: Final = Primitive("string")
UUID: Final = Primitive("uuid")
BINARY: Final = Primitive("binary")
UNKNOWN: Final = Primitive("unknown")
VARIANT: Final = Primitive("variant")

PLAIN: Final[Mapping[str, Primitive]] = {
    one.name: one
    for one in (
        *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS),
        *(TIMESTAMPTZ_NS, STRING, UUID, BINARY, UNKNOWN, VARIANT),
    )
}

NEW_IN_V3: Final = frozenset({TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT})


# Predicates.


def is_primitive(type_: Type) -> TypeGuard[PrimitiveType]:
    """Whether a type has no fields of its own and is not a variant, as Iceberg's schemas divide them."""
    return not isinstance(type_, StructType | ListType | MapType) and type_ != VARIANT


def is_orderable(type_: Type) -> bool:
    """Whether values can be sorted and compared with `<`: what bounds and sort orders need."""
    return is_primitive(type_) and type_ != UNKNOWN and not isinstance(type_, GeometryType | GeographyType)


def is_floating(type_: Type) -> bool:
    """Whether NaN is a value of this type."""
    return type_ in (FLOAT, DOUBLE)


def min_format_version(type_: Type) -> int:
    """The first table format version that may hold this type, parts included."""
    if isinstance(type_, GeometryType | GeographyType) or type_ in NEW_IN_V3:
        return 3
    return max((min_format_version(part.type) for part in children(type_)), default=1)


def can_promote(source: Type, target: Type, *, format_version: int = 3) -> bool:
    """Whether a column may change its type without rewriting data; a type may always stay itself."""
    if source == target:
        return True
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        return source.scale == target.scale and source.precision <= target.precision
    if (source, target) in ((INT, LONG), (FLOAT, DOUBLE)):
        return True
    if format_version < 3:
        return False
    return source == UNKNOWN or (source == DATE and target in (TIMESTAMP, TIMESTAMP_NS))


def children(type_: Type) -> tuple[NestedField, ...]:
    """The parts of a nested type, under the names that paths use for them; empty for a primitive."""
    if isinstance(type_, StructType):
        return type_.fields
    if isinstance(type_, ListType):
        return (NestedField(type_.element_id, "element", type_.element, type_.is_element_required),)
    if isinstance(type_, MapType):
        return (
            NestedField(type_.key_id, "key", type_.key, is_required=True),
            NestedField(type_.value_id, "value", type_.value, type_.is_value_required),
        )
    return ()


def walk_fields(type_: Type, prefix: str = "") -> Iterator[tuple[str, NestedField]]:
    """Every field below a type with its dotted path, parents before their children."""
    for field in children(type_):
        path = prefix + field.name
        yield path, field
        if not isinstance(field.type, Primitive):
            yield from walk_fields(field.type, path + ".")


# Text and JSON forms.


def parse_type(value: object, *, field: str = "type") -> Type:
    """A type from decoded JSON: text for a primitive, an object for a nested type.

    Text may differ from the canonical form in spaces and letter case, as other writers' does. `field` is the
    path of the value in its document, named in the error.
    """
    return _parse(value, field, 0)


def encode_type(type_: Type) -> str | dict[str, Any]:
    """The canonical JSON form, ready to encode."""
    if isinstance(type_, StructType):
        return {"type": "struct", "fields": [encode_field(field) for field in type_.fields]}
    if isinstance(type_, ListType):
        return {
            "type": "list",
            "element-id": type_.element_id,
            "element": encode_type(type_.element),
            "element-required": type_.is_element_required,
        }
    if isinstance(type_, MapType):
        return {
            "type": "map",
            "key-id": type_.key_id,
            "key": encode_type(type_.key),
            "value-id": type_.value_id,
            "value": encode_type(type_.value),
            "value-required": type_.is_value_required,
        }
    return str(type_)


def encode_field(field: NestedField) -> dict[str, Any]:
    """One struct field in its canonical JSON form."""
    document: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "required": field.is_required,
        "type": encode_type(field.type),
    }
    if field.doc is not None:
        document["doc"] = field.doc
    if field.initial_default is not UNSET:
        document["initial-default"] = field.initial_default
    if field.write_default is not UNSET:
        document["write-default"] = field.write_default
    return document


def parse_fields(value: object, *, field: str = "fields") -> tuple[NestedField, ...]:
    """The fields of a struct or schema from decoded JSON."""
    return _parse_fields(value, field, 0)


def _parse(value: object, path: str, depth: int) -> Type:
    if isinstance(value, str):
        return PLAIN.get(value) or _parse_text(value, path)
    if not isinstance(value, dict):
        _refuse("A type is text or an object", path, "Send a type's name or a nested type.")
    if depth >= MAX_DEPTH:
        _refuse("The type is nested too deeply", path, f"Nest at most {MAX_DEPTH} levels.")
    kind = value.get("type")
    read = _NESTED.get(kind) if isinstance(kind, str) else None
    if read is None:
        _refuse("A nested type is a struct, list or map", f"{path}.type", "Send one of the three.")
    return read(value, path, depth + 1)


def _parse_struct(value: dict[str, Any], path: str, depth: int) -> Type:
    return StructType(_parse_fields(value.get("fields"), f"{path}.fields", depth))


def _parse_fields(value: object, path: str, depth: int) -> tuple[NestedField, ...]:
    if not isinstance(value, list):
        _refuse("The fields of a struct are a list", path, "Send a list of fields.")
    return tuple(_parse_field(one, f"{path}[{at}]", depth) for at, one in enumerate(value))


def _parse_field(value: object, path: str, depth: int) -> NestedField:
    if not isinstance(value, dict):
        _refuse("A field is an object", path, "Send id, name, required and type.")
    doc = value.get("doc")
    if doc is not None and not isinstance(doc, str):
        _refuse("The doc of a field is text", f"{path}.doc", "Send text or leave it out.")
    name = value.get("name")
    if not isinstance(name, str):
        _refuse("A field needs a name", f"{path}.name", "Send the name as text.")
    return NestedField(
        id=_read_id(value, "id", path),
        name=name,
        type=_parse(value.get("type"), f"{path}.type", depth),
        is_required=_read_flag(value, "required", path),
        doc=doc,
        initial_default=value.get("initial-default", UNSET),
        write_default=value.get("write-default", UNSET),
    )


def _parse_list(value: dict[str, Any], path: str, depth: int) -> Type:
    return ListType(
        element_id=_read_id(value, "element-id", path),
        element=_parse(value.get("element"), f"{path}.element", depth),
        is_element_required=_read_flag(value, "element-required", path),
    )


def _parse_map(value: dict[str, Any], path: str, depth: int) -> Type:
    return MapType(
        key_id=_read_id(value, "key-id", path),
        key=_parse(value.get("key"), f"{path}.key", depth),
        value_id=_read_id(value, "value-id", path),
        value=_parse(value.get("value"), f"{path}.value", depth),
        is_value_required=_read_flag(value, "value-required", path),
    )


_NESTED: Final[Mapping[str, Callable[[dict[str, Any], str, int], Type]]] = {
    "struct": _parse_struct,
    "list": _parse_list,
    "map": _parse_map,
}

_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)", re.IGNORECASE | re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d{1,10})\s*\]", re.IGNORECASE | re.ASCII)
_GEOMETRY = re.compile(r"geometry\s*(?:\(([^(),]*)\))?", re.IGNORECASE | re.ASCII)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(([^(),]*)(?:,([^(),]*))?\))?", re.IGNORECASE | re.ASCII)


def _parse_text(text: str, path: str) -> PrimitiveType:
    # A wide table repeats a few parameterised types thousands of times; an error is not kept.
    found = _match_text(text) if len(text) <= 200 else None
    if found is None:
        _refuse("No such type", path, "Send a type of Iceberg's format versions 1 to 3.", type=text[:100])
    return found


@lru_cache(maxsize=1024)
def _match_text(text: str) -> PrimitiveType | None:
    if plain := PLAIN.get(text.lower()):
        return plain
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        return DecimalType(precision, scale) if scale <= precision <= 38 else None
    if match := _FIXED.fullmatch(text):
        return FixedType(int(match[1])) if int(match[1]) <= MAX_INT else None
    if match := _GEOMETRY.fullmatch(text):
        return GeometryType(_other_than(DEFAULT_CRS, match[1]))
    if match := _GEOGRAPHY.fullmatch(text):
        algorithm = _other_than(DEFAULT_ALGORITHM, match[2] and match[2].lower())
        if algorithm is None or algorithm in EDGE_ALGORITHMS:
            return GeographyType(_other_than(DEFAULT_CRS, match[1]), algorithm)
    return None


def _other_than(default: str, given: str | None) -> str | None:
    given = given and given.strip()
    return given if given and given.lower() != default.lower() else None


def _read_id(value: dict[str, Any], key: str, path: str) -> int:
    number = value.get(key)
    if type(number) is not int or not -MAX_INT <= number <= MAX_INT:
        _refuse("A field id is a 32-bit integer", f"{path}.{key}", "Send the id.")
    return number


def _read_flag(value: dict[str, Any], key: str, path: str) -> bool:
    flag = value.get(key)
    if not isinstance(flag, bool):
        _refuse("The value is true or false", f"{path}.{key}", "Say whether the value may be missing.")
    return flag


def _refuse(message: str, path: str, fix: str, **details: Any) -> NoReturn:
    raise BadInput(message, field=path, fix=fix, **details)
