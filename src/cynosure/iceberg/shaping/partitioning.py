"""Another partitioning: fields by column name and transform; ids of fields and spec chosen by the table.

A maintainer must not break: a field that some spec of the table has keeps its id, because files of both specs
are told apart by it. In format version 1 ids are positions, so a field that is dropped stays as a void one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.partitioning import FIRST_FIELD_ID, PartitionField
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.shaping.sources import Source, check_transform, find_source
from cynosure.iceberg.transforms import IDENTITY, VOID
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.draft import LAST_ADDED
from cynosure.iceberg.updates.shape import AddSpec, SetDefaultSpec


class NewPartitionField(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value to group files by."""

    source: str
    """The column, with dots between the names of structs and their fields."""
    transform: str = IDENTITY
    """`identity`, `year`, `month`, `day`, `hour`, `bucket[N]` or `truncate[N]`."""
    name: str | None = None
    """Left out: as the table called it before, else `ts_day`, `id_bucket_16`, `name_trunc_4`."""


class _Chosen(Struct, frozen=True):
    at: str
    source: Source
    name: str
    field_id: int | None
    """None: the next one that is free."""

    def to_json(self, field_id: int) -> dict[str, Any]:
        return {
            "source-id": self.source.column_id,
            "field-id": field_id,
            "name": self.name,
            "transform": self.source.transform,
        }


def read_partition_fields(
    fields: Sequence[NewPartitionField], *, field: str = "fields"
) -> list[NewPartitionField]:
    """Refuse what no table could get; the fields with their transforms as Iceberg writes them."""
    return [_read_field(one, f"{field}[{at}]") for at, one in enumerate(fields)]


def set_partitioning(
    base: TableMetadata, fields: Sequence[NewPartitionField], *, field: str = "fields"
) -> list[TableUpdate]:
    """What makes these the partition fields of this state of the table. No fields: not partitioned."""
    schema = base.current_schema()
    chosen = [_choose(base, schema, one, f"{field}[{at}]") for at, one in enumerate(fields)]
    _check_each_once(chosen)
    _check_names(chosen, schema)
    made = _place_in_v1(base, chosen) if base.format_version == 1 else _number(base, chosen)
    spec = Raw(msgspec.json.encode({"spec-id": 0, "fields": made}))
    return [AddSpec(spec), SetDefaultSpec(LAST_ADDED)]


def _read_field(one: NewPartitionField, at: str) -> NewPartitionField:
    if one.name is not None and not one.name:
        raise BadInput("The name is empty", field=f"{at}.name", fix="Send a name, or leave it out.")
    transform = check_transform(one.transform, field=f"{at}.transform")
    return NewPartitionField(one.source, transform, one.name)


def _choose(base: TableMetadata, schema: Schema, one: NewPartitionField, at: str) -> _Chosen:
    source = find_source(schema, one.source, one.transform, at=at)
    known = [each for each in _known_fields(base) if _is_same(each, source)]
    same_name = (each for each in known if each.name == one.name)
    found = next(same_name, known[0] if known else None)
    name = one.name or (source.make_name() if found is None else found.name)
    return _Chosen(at, source, name, None if found is None else found.field_id)


def _known_fields(base: TableMetadata) -> Iterator[PartitionField]:
    yield from base.default_spec().fields
    if base.format_version > 1:
        for spec in base.partition_specs:
            yield from spec.value.fields


def _is_same(field: PartitionField, source: Source) -> bool:
    return field.sources == (source.column_id,) and field.transform == source.transform


def _check_each_once(chosen: Sequence[_Chosen]) -> None:
    seen: dict[tuple[int, str], _Chosen] = {}
    for one in chosen:
        first = seen.setdefault((one.source.column_id, one.source.kind), one)
        if first is not one:
            raise InvalidUpdate(
                "Two partition fields group files by the same",
                field=one.at,
                fix="Leave one out; of several units of time, send the smallest.",
                source=one.source.column,
                transforms=(first.source.transform, one.source.transform),
            )


def _check_names(chosen: Sequence[_Chosen], schema: Schema) -> None:
    names: set[str] = set()
    for one in chosen:
        column_id = schema.ids_by_path.get(one.name)
        is_copy = one.source.transform == IDENTITY and column_id == one.source.column_id
        if one.name in names or (column_id is not None and not is_copy):
            raise InvalidUpdate(
                "Another partition field or a column has the name of the partition field",
                field=f"{one.at}.name",
                fix="Send another name.",
                name=one.name,
            )
        names.add(one.name)


def _number(base: TableMetadata, chosen: Sequence[_Chosen]) -> list[dict[str, Any]]:
    # Files of other writers that are registered do not always count right.
    last_id = max(base.last_partition_id, *(one.value.highest_field_id for one in base.partition_specs))
    made: list[dict[str, Any]] = []
    for one in chosen:
        field_id = one.field_id
        if field_id is None:
            last_id = field_id = last_id + 1
        made.append(one.to_json(field_id))
    return made


def _place_in_v1(base: TableMetadata, chosen: Sequence[_Chosen]) -> list[dict[str, Any]]:
    """Fields that stay keep their places, those that go become void, and new ones come behind."""
    made: list[dict[str, Any]] = msgspec.json.decode(base.default_spec_document().json)["fields"]
    names = {one.name for one in chosen}
    for field, json in zip(base.default_spec().fields, made, strict=True):
        kept = next((one for one in chosen if _is_same(field, one.source)), None)
        if kept is not None:
            json["name"] = kept.name
            continue
        json["transform"] = VOID
        if field.name in names:
            # As the reference implementation does it, so that the name is free for the new field.
            json["name"] = f"{field.name}_{field.field_id}"
    for one in chosen:
        if one.field_id is None:
            made.append(one.to_json(FIRST_FIELD_ID + len(made)))
    return made
