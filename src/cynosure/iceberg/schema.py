"""Schemas: typed columns with ids, what makes one valid, and how a new table's columns are numbered.

A maintainer must not break: `same_schema` decides whether a commit adds a schema. It sees every field of the
JSON, known or not, except the id, so that nothing a client sent is dropped as "already there".
"""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from cynosure.iceberg.document import Document, compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.single_value import check_default
from cynosure.iceberg.types import (
    UNKNOWN,
    NestedField,
    StructType,
    Type,
    children,
    is_floating,
    is_primitive,
    min_format_version,
    parse_fields,
)

MIN_VERSION_OF_DEFAULTS: Final = 3


class Place(Struct, frozen=True):
    """A field and how to get to it: the dotted path, and the fields around it from the outermost in."""

    path: str
    field: NestedField
    around: tuple[NestedField, ...]


class Schema(Struct, frozen=True, dict=True):
    """The columns of a table at some time."""

    schema_id: int
    fields: tuple[NestedField, ...]
    identifier_field_ids: tuple[int, ...] = ()

    @cached_property
    def places(self) -> dict[int, Place]:
        """Every field, nested ones included, by id."""
        return {place.field.id: place for place in _places(StructType(self.fields), "", ())}

    @cached_property
    def ids_by_path(self) -> dict[str, int]:
        """Field ids by dotted path."""
        return {place.path: id_ for id_, place in self.places.items()}

    @property
    def highest_field_id(self) -> int:
        """The largest id in use, or 0."""
        return max(self.places, default=0)

    def find_type(self, field_id: int) -> Type | None:
        """The type of a column."""
        place = self.places.get(field_id)
        return place.field.type if place else None


def read_schema(raw: bytes | Raw, *, field: str = "schema") -> Document[Schema]:
    """A schema from JSON, checked for everything that does not depend on the table."""
    schema = Document(compact_json(raw, field=field), partial(decode_schema, field=field))
    _check_names_and_ids(schema.value, field)
    _check_identifier_fields(schema.value, field)
    return schema


def decode_schema(json: bytes, *, field: str = "schema") -> Schema:
    """The typed view of a schema's JSON."""
    document = decode_json(json, _ANY, field=field)
    if not isinstance(document, dict) or document.get("type") != "struct":
        raise InvalidMetadata("A schema is a struct", field=f"{field}.type", fix='Send "type": "struct".')
    identifier_ids = document.get("identifier-field-ids")
    return Schema(
        schema_id=_read_int(document.get("schema-id", 0), f"{field}.schema-id"),
        fields=parse_fields(document.get("fields"), field=f"{field}.fields"),
        identifier_field_ids=_read_ints(identifier_ids or [], f"{field}.identifier-field-ids"),
    )


def check_schema(schema: Schema, *, format_version: int, limits: SizeLimits, field: str = "schema") -> None:
    """Refuse a schema that a table of this format version may not get."""
    check_width(schema, limits=limits, field=field)
    for place in schema.places.values():
        check_column(
            place, format_version=format_version, field=f"{field}.fields", part=f"{field}.{place.path}"
        )


def check_column(place: Place, *, format_version: int, field: str, part: str) -> None:
    """Refuse a column that a table of this format version may not get; parts of its type are not looked at.

    `field` is what an error about its type names, `part` where its defaults are.
    """
    column = place.field
    # Parts of a nested type are places of their own.
    if not children(column.type) and min_format_version(column.type) > format_version:
        raise InvalidMetadata(
            "The type needs a newer format version",
            field=field,
            fix="Upgrade the table's format version first, or use another type.",
            column=place.path,
            type=str(column.type),
            format_version=format_version,
        )
    if format_version < MIN_VERSION_OF_DEFAULTS and _has_default(column):
        raise InvalidMetadata(
            "Default values need a newer format version",
            field=field,
            fix="Upgrade the table to format version 3 first, or leave the defaults out.",
            column=place.path,
            format_version=format_version,
        )
    check_default(column.type, _or_null(column.initial_default), field=f"{part}.initial-default")
    check_default(column.type, _or_null(column.write_default), field=f"{part}.write-default")
    if column.type == UNKNOWN and column.is_required:
        raise InvalidMetadata(
            "A column of unknown type is always optional",
            field=field,
            fix='Send "required": false.',
            column=place.path,
        )


def check_width(schema: Schema, *, limits: SizeLimits, field: str) -> None:
    """Refuse a schema of too many columns."""
    if len(schema.places) > limits.max_columns:
        raise InvalidMetadata(
            "The schema has too many columns",
            field=f"{field}.fields",
            fix="Split the table or use a map or variant column.",
            columns=len(schema.places),
            limit=limits.max_columns,
        )


def same_schema(one: Document[Schema], other: Document[Schema]) -> bool:
    """Whether two schemas differ in nothing but their id."""
    if {*one.value.identifier_field_ids} != {*other.value.identifier_field_ids}:
        return False
    return _comparable(one.json) == _comparable(other.json)


def assign_fresh_ids(schema: Document[Schema]) -> tuple[Document[Schema], dict[int, int]]:
    """A new table's schema, numbered from 1 level by level, and which old id became which.

    All fields of a struct get their ids before the fields inside them do: the numbering that other
    implementations choose, so that a client that predicts ids is right.
    """
    document: dict[str, Any] = msgspec.json.decode(schema.json)
    renumbered: dict[int, int] = {}

    def number(old: int) -> int:
        renumbered[old] = new = len(renumbered) + 1
        return new

    _renumber_fields(document, number)
    document["schema-id"] = 0
    if document.get("identifier-field-ids"):
        document["identifier-field-ids"] = [renumbered[id_] for id_ in schema.value.identifier_field_ids]
    return Document(msgspec.json.encode(document), decode_schema), renumbered


_ANY: Final = msgspec.json.Decoder()


def _places(type_: Type, prefix: str, around: tuple[NestedField, ...]) -> Iterator[Place]:
    for field in children(type_):
        yield Place(prefix + field.name, field, around)
        yield from _places(field.type, f"{prefix}{field.name}.", (*around, field))


def _has_default(field: NestedField) -> bool:
    return _or_null(field.initial_default) is not None or _or_null(field.write_default) is not None


def _or_null(value: object) -> object:
    return None if value is UNSET else value


def _check_names_and_ids(schema: Schema, field: str) -> None:
    ids: set[int] = set()
    paths: set[str] = set()
    for place in _places(StructType(schema.fields), "", ()):
        if place.field.id in ids:
            raise InvalidMetadata(
                "Two fields have the same id",
                field=f"{field}.fields",
                fix="Give every field, element, key and value an id of its own.",
                id=place.field.id,
                column=place.path,
            )
        if place.path in paths:
            raise InvalidMetadata(
                "Two fields have the same name",
                field=f"{field}.fields",
                fix="Rename one of them; a nested field's name includes its parents', joined by dots.",
                column=place.path,
            )
        ids.add(place.field.id)
        paths.add(place.path)


def _check_identifier_fields(schema: Schema, field: str) -> None:
    for id_ in schema.identifier_field_ids:
        place = schema.places.get(id_)
        if place is None:
            problem = "An identifier field does not exist"
        elif not is_primitive(place.field.type) or is_floating(place.field.type):
            problem = "An identifier field has a type whose values do not identify rows"
        elif not place.field.is_required:
            problem = "An identifier field may be null"
        elif any(not isinstance(outer.type, StructType) or not outer.is_required for outer in place.around):
            problem = "An identifier field is inside a list, a map or an optional struct"
        else:
            continue
        raise InvalidMetadata(
            problem,
            field=f"{field}.identifier-field-ids",
            fix="Name only required columns of primitive types other than float and double.",
            id=id_,
        )


def _comparable(json: bytes) -> object:
    document: dict[str, Any] = msgspec.json.decode(json)
    document.pop("schema-id", None)
    document.pop("identifier-field-ids", None)
    return _without_nulls(document)


def _without_nulls(value: object) -> object:
    # "doc": null and no doc mean the same; some writers send one, some the other.
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _renumber_fields(struct: dict[str, Any], number: Callable[[int], int]) -> None:
    for field in struct["fields"]:
        field["id"] = number(field["id"])
    for field in struct["fields"]:
        renumber_type(field["type"], number)


def renumber_type(type_: str | dict[str, Any], number: Callable[[int], int]) -> None:
    """Give the parts of a valid type, in JSON, new ids in place: `number` tells them, from the old ones."""
    if isinstance(type_, str):
        return
    if type_["type"] == "struct":
        _renumber_fields(type_, number)
        return
    parts = ("element",) if type_["type"] == "list" else ("key", "value")
    for part in parts:
        type_[f"{part}-id"] = number(type_[f"{part}-id"])
    for part in parts:
        renumber_type(type_[part], number)


def _read_int(value: object, field: str) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise InvalidMetadata("An id is a 32-bit integer", field=field, fix="Send the id as a number.")
    return value


def _read_ints(value: object, field: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise InvalidMetadata("Identifier fields are a list of ids", field=field, fix="Send a list.")
    return tuple(_read_int(one, f"{field}[{at}]") for at, one in enumerate(value))
