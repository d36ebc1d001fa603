"""Partition specs: typed values and the rules that bind one to a schema.

A maintainer must not break: two specs are the same when their fields agree in source, name and transform;
field ids do not count, because a client that writes the same spec again must get the one that data files
refer to.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.transforms import IDENTITY, VOID, can_apply, find_fault, result_type
from cynosure.iceberg.types import StructType, Type

FIRST_FIELD_ID: Final = 1000
NO_FIELD_ID: Final = FIRST_FIELD_ID - 1
"""`last-partition-id` of a table that never had a partition field."""


class PartitionField(Struct, frozen=True, rename="kebab"):
    """One value by which files are grouped."""

    name: str
    transform: str
    source_id: Int32 | None = None
    source_ids: tuple[Int32, ...] = ()
    """Format version 3 allows several sources; one is written as `source-id` too."""
    field_id: Int32 | None = None
    """None only in requests: the table assigns it."""

    @property
    def sources(self) -> tuple[int, ...]:
        """The columns the value is computed from."""
        return self.source_ids if self.source_id is None else (self.source_id,)


class PartitionSpec(Struct, frozen=True, rename="kebab"):
    """How files are grouped at some time."""

    fields: tuple[PartitionField, ...]
    spec_id: Int32 = 0

    @property
    def is_unpartitioned(self) -> bool:
        """Whether all files are in one group: there are no fields, or only void ones."""
        return all(field.transform == VOID for field in self.fields)

    @property
    def highest_field_id(self) -> int:
        """The largest field id in use, or the one before the first."""
        return max([NO_FIELD_ID, *(field.field_id or 0 for field in self.fields)])


def read_spec(raw: bytes | Raw, *, field: str = "spec") -> Document[PartitionSpec]:
    """A spec from JSON, checked for everything that does not depend on a schema."""
    spec = Document(compact_json(raw, field=field), partial(decode_spec, field=field))
    names: set[str] = set()
    ids: set[int] = set()
    for at, one in enumerate(spec.value.fields):
        path = f"{field}.fields[{at}]"
        if not one.sources:
            raise InvalidMetadata(
                "A partition field needs a source", field=f"{path}.source-id", fix="Send the column's id."
            )
        if fault := find_fault(one.transform):
            raise InvalidMetadata(
                fault, field=f"{path}.transform", fix="Send e.g. bucket[16].", transform=one.transform
            )
        if not one.name or one.name in names:
            raise InvalidMetadata(
                "Partition fields need names, each its own",
                field=f"{path}.name",
                fix="Choose another name.",
                name=one.name,
            )
        if one.field_id is not None and one.field_id in ids:
            raise InvalidMetadata(
                "Two partition fields have the same id",
                field=f"{path}.field-id",
                fix="Choose another id, or leave it out.",
                id=one.field_id,
            )
        names.add(one.name)
        if one.field_id is not None:
            ids.add(one.field_id)
    return spec


def decode_spec(json: bytes, *, field: str = "spec") -> PartitionSpec:
    """The typed view of a spec's JSON."""
    return decode_json(json, _SPEC, field=field)


def check_spec(spec: PartitionSpec, schema: Schema, *, format_version: int, field: str = "spec") -> None:
    """Refuse a spec that a table with this current schema may not get."""
    check_sources(spec, schema, field=field)
    for at, one in enumerate(spec.fields):
        clash = schema.ids_by_path.get(one.name)
        # A void field may have it too: format version 1 makes one of an identity field that is dropped.
        if clash is not None and not (one.transform in (IDENTITY, VOID) and one.sources == (clash,)):
            raise InvalidMetadata(
                "A partition field has the name of a column that it is not a copy of",
                field=f"{field}.fields[{at}].name",
                fix="Choose another name.",
                name=one.name,
            )
        if format_version == 1 and one.field_id != FIRST_FIELD_ID + at:
            raise InvalidMetadata(
                "Format version 1 numbers partition fields without gaps from 1000",
                field=f"{field}.fields[{at}].field-id",
                fix="Replace dropped fields by void transforms, or upgrade the table to version 2.",
                id=one.field_id,
            )


def check_sources(spec: PartitionSpec, schema: Schema, *, field: str) -> None:
    """Refuse a spec whose columns are missing or cannot be transformed so. A void field needs no column."""
    for at, one in enumerate(spec.fields):
        path = f"{field}.fields[{at}]"
        for source in one.sources:
            if one.transform == VOID:
                continue
            place = schema.places.get(source)
            if place is None:
                raise InvalidMetadata(
                    "The source column of a partition field does not exist",
                    field=f"{path}.source-id",
                    fix="Name a column of the current schema.",
                    source_id=source,
                    name=one.name,
                )
            if any(not isinstance(outer.type, StructType) for outer in place.around):
                raise InvalidMetadata(
                    "A table cannot be partitioned by a value inside a list or map",
                    field=f"{path}.source-id",
                    fix="Name a column that is in structs only.",
                    column=place.path,
                )
            if not can_apply(one.transform, place.field.type):
                raise InvalidMetadata(
                    "The transform does not apply to the column's type",
                    field=f"{path}.transform",
                    fix="Choose a transform that the Iceberg specification allows for this type.",
                    transform=one.transform,
                    column=place.path,
                    type=str(place.field.type),
                )


def partition_types(spec: PartitionSpec, schema: Schema) -> tuple[Type | None, ...]:
    """The type of each field's values; None where the column is no longer in the schema."""
    types: list[Type | None] = []
    for field in spec.fields:
        source = schema.find_type(field.sources[0]) if field.sources else None
        types.append(None if source is None else result_type(field.transform, source))
    return tuple(types)


def with_field_ids(
    spec: Document[PartitionSpec],
    *,
    known: Mapping[tuple[tuple[int, ...], str], int] | None = None,
    last: int = NO_FIELD_ID,
) -> Document[PartitionSpec]:
    """The spec with an id for every field that came without.

    A field gets the id that `known` has for its source and transform, else the next one after `last` and
    after every id of the spec.
    """
    if all(field.field_id is not None for field in spec.value.fields):
        return spec
    document: dict[str, Any] = msgspec.json.decode(spec.json)
    last = max(last, spec.value.highest_field_id)
    taken = {field.field_id for field in spec.value.fields}
    for field, json in zip(spec.value.fields, document["fields"], strict=True):
        if field.field_id is not None:
            continue
        id_ = known.get((field.sources, field.transform)) if known else None
        if id_ is None or id_ in taken:
            last = id_ = last + 1
        json["field-id"] = id_
        taken.add(id_)
    return Document(msgspec.json.encode(document), decode_spec)


def same_spec(one: PartitionSpec, other: PartitionSpec) -> bool:
    """Whether two specs group files in the same way under the same names."""
    return [(field.sources, field.transform, field.name) for field in one.fields] == [
        (field.sources, field.transform, field.name) for field in other.fields
    ]


_SPEC: Final = msgspec.json.Decoder(PartitionSpec)
