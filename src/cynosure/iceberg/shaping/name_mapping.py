"""The name mapping of a table, which says what columns of files without ids are, kept up with new columns.

A maintainer must not break: a mapping that cannot be read stays as it is. It is a client's property, and no
reason to refuse a column.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.document import Int32

NAME_MAPPING: Final = "schema.name-mapping.default"
ROOT: Final = None
"""The parent of a column that is in no other."""


class MappedField(Struct, rename="kebab", omit_defaults=True):
    """The names under which files may have a column."""

    names: list[str]
    field_id: Int32 | None = None
    fields: list["MappedField"] = []


class ChangedMapping:
    """The mapping of a table, to which columns are added."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._fields = _read(properties.get(NAME_MAPPING))

    def add(self, parent_id: int | None, column: dict[str, Any]) -> None:
        """Map a new column, in JSON, by its own name, which no sibling is found by any more."""
        siblings = self._fields if parent_id is ROOT else _find(self._fields or [], parent_id)
        if siblings is None:
            return
        name = column["name"]
        for sibling in siblings:
            sibling.names = [each for each in sibling.names if each != name]
        siblings[:] = [each for each in siblings if each.names]
        siblings.append(_map(column["id"], name, column["type"]))

    def find_update(self) -> dict[str, str]:
        """The property to set; none where the table has no mapping."""
        return {} if self._fields is None else {NAME_MAPPING: msgspec.json.encode(self._fields).decode()}


def _read(text: str | None) -> list[MappedField] | None:
    if text is None:
        return None
    try:
        return _MAPPING.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _find(fields: list[MappedField], field_id: int) -> list[MappedField] | None:
    for field in fields:
        found = field.fields if field.field_id == field_id else _find(field.fields, field_id)
        if found is not None:
            return found
    return None


def _map(field_id: int, name: str, type_: str | dict[str, Any]) -> MappedField:
    mapped = MappedField([name], field_id)
    if isinstance(type_, dict):
        if type_["type"] == "struct":
            mapped.fields = [_map(each["id"], each["name"], each["type"]) for each in type_["fields"]]
        else:
            parts = ("element",) if type_["type"] == "list" else ("key", "value")
            mapped.fields = [_map(type_[f"{part}-id"], part, type_[part]) for part in parts]
    return mapped


_MAPPING: Final = msgspec.json.Decoder(list[MappedField])
