"""New columns, anywhere in a schema, numbered from the last id that the table has assigned.

A maintainer must not break: the new schema is the current one with the new columns put in, and keeps what
this version does not know of its JSON. A column gets its id before the parts of its type do, and those level
by level: the numbering of other implementations.
"""

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import ColumnExists, InvalidUpdate
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.schema import Place, check_column, renumber_type
from cynosure.iceberg.shaping.name_mapping import ROOT, ChangedMapping
from cynosure.iceberg.types import (
    MAX_DEPTH,
    NestedField,
    StructType,
    encode_field,
    parse_type,
    walk_fields,
)
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.basics import SetProperties
from cynosure.iceberg.updates.draft import LAST_ADDED
from cynosure.iceberg.updates.shape import AddSchema, SetCurrentSchema

TypeDocument = Annotated[Any, Meta(extra_json_schema={"type": ["string", "object"]})]
"""An Iceberg type in JSON. Ids of its parts may be left out, and do not count."""


class NewColumn(
    Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True
):
    """A column to add."""

    name: str | tuple[str, ...]
    """With dots between a parent's name and its own; as a list, where a name itself holds a dot."""
    type: TypeDocument
    required: bool = False
    """Needs an `initial-default`, because rows that are there have no value."""
    doc: str | None = None
    initial_default: Any | UnsetType = UNSET
    """What rows that are there read as; format version 3."""
    write_default: Any | UnsetType = UNSET
    """What writers that do not know the column write; left out, the same as `initial-default`."""
    after: str | None = None
    """The column of the same struct that it comes behind; left out, it is the last."""
    first: bool = False
    """Whether it comes before all others of its struct."""


class ReadColumn(Struct, frozen=True):
    """A column to add, checked for everything that does not depend on the table."""

    at: str
    """Its place in the request, for errors."""
    path: tuple[str, ...]
    field: NestedField
    """Its ids are only there to be replaced."""
    after: str | None
    is_first: bool


def read_columns(columns: Sequence[NewColumn], *, field: str = "columns") -> list[ReadColumn]:
    """Refuse what no table could get."""
    if not columns:
        raise BadInput("There is no column to add", field=field, fix="Send at least one.")
    return [_read_column(one, f"{field}[{at}]") for at, one in enumerate(columns)]


def add_columns(base: TableMetadata, columns: Sequence[ReadColumn]) -> list[TableUpdate]:
    """What adds the columns to this state of the table."""
    schema = base.current_schema_document()
    document: dict[str, Any] = msgspec.json.decode(schema.json)
    # Files of other writers that are registered do not always count right.
    last_id = max(base.last_column_id, *(one.value.highest_field_id for one in base.schemas))
    ids = count(last_id + 1)
    partitions = {field.name for spec in base.partition_specs for field in spec.value.fields}
    taken = _Paths(set(schema.value.ids_by_path), partitions)
    mapping = ChangedMapping(base.properties)
    for one in columns:
        struct, parent, parent_id = _find_struct(document, one)
        taken.add(one, parent)
        for path, part in walk_fields(StructType((one.field,))):
            below = path.removeprefix(one.field.name)
            is_part = part is not one.field
            check_column(
                Place(f"{parent}{path}", part, ()),
                format_version=base.format_version,
                field=f"{one.at}.type",
                part=f"{one.at}.type{below}" if is_part else one.at,
            )
        json = encode_field(one.field)
        json["id"] = next(ids)
        renumber_type(json["type"], lambda _: next(ids))
        struct["fields"].insert(_position(struct["fields"], one), json)
        mapping.add(parent_id, json)
    updates: list[TableUpdate] = [AddSchema(Raw(msgspec.json.encode(document))), SetCurrentSchema(LAST_ADDED)]
    if mapped := mapping.find_update():
        updates.append(SetProperties(mapped))
    return updates


class _Paths:
    """Dotted paths that are in use: by the table, by names of its partition fields, by this request."""

    def __init__(self, table: set[str], partitions: set[str]) -> None:
        self._table = table
        self._partitions = partitions
        self._added: set[str] = set()

    def add(self, one: ReadColumn, parent: str) -> None:
        for path, part in walk_fields(StructType((one.field,)), parent):
            field = f"{one.at}.name" if part is one.field else f"{one.at}.type"
            if path in self._table:
                raise ColumnExists(path, field=field)
            if path in self._added:
                raise InvalidUpdate(
                    "Two of the new columns have the same name", field=field, fix="Rename one.", column=path
                )
            if path in self._partitions:
                raise InvalidUpdate(
                    "A partition field of the table has this name",
                    field=field,
                    fix="Choose another name.",
                    column=path,
                )
            self._added.add(path)


def _read_column(column: NewColumn, at: str) -> ReadColumn:
    path = tuple(column.name.split(".")) if isinstance(column.name, str) else column.name
    if not path or not all(path):
        raise BadInput(
            "A column needs a name, and so does each of its parents",
            field=f"{at}.name",
            fix="Send the name; behind its parent's and a dot, if it is a part of a struct.",
        )
    if column.first and column.after is not None:
        raise BadInput(
            "A column cannot be first and behind another one", field=f"{at}.after", fix="Send one of the two."
        )
    initial = _given(column.initial_default)
    if column.required and initial is UNSET:
        raise BadInput(
            "A new column that is required needs a default, because rows that are there have no value",
            field=f"{at}.required",
            fix="Make it optional, or send initial-default, which needs format version 3.",
            column=".".join(path),
        )
    # A default of the writers that is null is one, unlike one that is left out.
    write = initial if column.write_default is UNSET else _given(column.write_default)
    if column.required and write is UNSET:
        raise BadInput(
            "A required column cannot be written as null",
            field=f"{at}.write-default",
            fix="Send a value, or leave it out.",
        )
    type_ = parse_type(_with_ids(column.type, count(1), 0), field=f"{at}.type")
    field = NestedField(
        id=0,
        name=path[-1],
        type=type_,
        is_required=column.required,
        doc=column.doc,
        initial_default=initial,
        write_default=write,
    )
    for below, part in walk_fields(type_):
        if not part.name:
            raise BadInput(
                "A field needs a name", field=f"{at}.type", fix="Name all fields of the struct.", path=below
            )
    return ReadColumn(at, path, field, column.after, column.first)


def _given(default: Any | UnsetType) -> Any | UnsetType:
    return UNSET if default is None else default


_PARTS: Final = {"list": ("element",), "map": ("key", "value")}


def _with_ids(type_: Any, ids: "count[int]", depth: int) -> Any:
    """A copy with an id for every part, so that it can be read; what is no type, the reader refuses."""
    if not isinstance(type_, dict) or depth > MAX_DEPTH:
        return type_
    kind = type_.get("type")
    if kind == "struct" and isinstance(type_.get("fields"), list):
        return {**type_, "fields": [_field_with_id(each, ids, depth) for each in type_["fields"]]}
    made = dict(type_)
    for part in _PARTS.get(kind, ()) if isinstance(kind, str) else ():
        made[f"{part}-id"] = next(ids)
        made[part] = _with_ids(type_.get(part), ids, depth + 1)
    return made


def _field_with_id(field: Any, ids: "count[int]", depth: int) -> Any:
    if not isinstance(field, dict):
        return field
    return {**field, "id": next(ids), "type": _with_ids(field.get("type"), ids, depth + 1)}


def _find_struct(document: dict[str, Any], one: ReadColumn) -> tuple[dict[str, Any], str, int | None]:
    """The struct that the column goes into, how paths of its fields begin, and the id of what has it as type.

    Inside a list or map the struct is its element or value, whether or not the request says so.
    """
    struct, prefix, id_ = document, "", ROOT
    rest = list(one.path[:-1])
    while rest:
        name = rest.pop(0)
        found = next((each for each in struct["fields"] if each["name"] == name), None)
        if found is None:
            raise InvalidUpdate(
                "The column's parent does not exist",
                field=f"{one.at}.name",
                fix="Name a struct of the table, or add it first.",
                parent=prefix + name,
            )
        type_, prefix, id_ = found["type"], f"{prefix}{name}.", found["id"]
        while isinstance(type_, dict) and type_["type"] in ("list", "map"):
            inner = "element" if type_["type"] == "list" else "value"
            if rest and rest[0] == inner:
                rest.pop(0)
            type_, prefix, id_ = type_[inner], f"{prefix}{inner}.", type_[f"{inner}-id"]
        if not isinstance(type_, dict):
            raise InvalidUpdate(
                "The column's parent has no fields",
                field=f"{one.at}.name",
                fix="Name a struct, or a list or map of structs.",
                parent=prefix.rstrip("."),
                type=type_,
            )
        struct = type_
    return struct, prefix, id_


def _position(siblings: list[dict[str, Any]], one: ReadColumn) -> int:
    if one.is_first:
        return 0
    if one.after is None:
        return len(siblings)
    for at, each in enumerate(siblings):
        if each["name"] == one.after:
            return at + 1
    raise InvalidUpdate(
        "The column to come behind is not in the same struct",
        field=f"{one.at}.after",
        fix="Name a column of the same struct, without its parents.",
        after=one.after,
    )
