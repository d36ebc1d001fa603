"""Tables and databases as Glue keeps them.

An update replaces a whole record, so it is made from the one that is there. Glue shows more than it takes;
only what it takes is sent back.

A maintainer must not break: what is in a record and not ours stays as it was.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from cynosure.federation.pointers import Pointer

_TABLE_INPUT: Final = frozenset(
    {
        "Name",
        "Description",
        "Owner",
        "LastAccessTime",
        "LastAnalyzedTime",
        "Retention",
        "StorageDescriptor",
        "PartitionKeys",
        "ViewOriginalText",
        "ViewExpandedText",
        "TableType",
        "Parameters",
        "TargetTable",
    }
)
_DATABASE_INPUT: Final = frozenset(
    {
        "Name",
        "Description",
        "LocationUri",
        "Parameters",
        "CreateTableDefaultPermissions",
        "TargetDatabase",
        "FederatedDatabase",
    }
)
_APART: Final = {"location": "LocationUri", "comment": "Description"}
_POINTER: Final = "metadata_location"
_PREVIOUS: Final = "previous_metadata_location"
_FORMAT: Final = "table_type"
_ICEBERG: Final = "ICEBERG"


class _Parameters(Struct, gc=False):
    table_type: str = ""
    metadata_location: str = ""


class ListedTable(Struct, rename="pascal", gc=False):
    """What counts of a table in a list; there, Glue shows all of it."""

    name: str
    parameters: _Parameters | None = None

    @property
    def is_iceberg(self) -> bool:
        """Whether it is a table of Iceberg's."""
        known = self.parameters
        return known is not None and _is_iceberg(known.table_type, known.metadata_location)


class ListedDatabase(Struct, rename="pascal", gc=False):
    """What counts of a database in a list."""

    name: str


def read_texts(found: Any) -> dict[str, str]:
    """A map of strings; nothing, where there is none."""
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def is_iceberg(table: Mapping[str, Any]) -> bool:
    """Whether it is a table of Iceberg's: one with a pointer."""
    parameters = read_texts(table.get("Parameters"))
    return _is_iceberg(parameters.get(_FORMAT, ""), parameters.get(_POINTER, ""))


def _is_iceberg(table_type: str, metadata_location: str) -> bool:
    return table_type.upper() == _ICEBERG and bool(metadata_location)


def read_pointer(table: Mapping[str, Any]) -> Pointer:
    """Where the metadata of a table of Iceberg's is."""
    storage = read_texts(table.get("StorageDescriptor"))
    version = table.get("VersionId")
    return Pointer(
        read_texts(table.get("Parameters"))[_POINTER],
        version=version if isinstance(version, str) else None,
        location=storage.get("Location"),
    )


def make_table(name: str, pointer: Pointer, columns: Mapping[str, str]) -> dict[str, Any]:
    """A new table of Iceberg's, as engines expect it."""
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {_FORMAT: _ICEBERG, _POINTER: pointer.metadata_location},
        "StorageDescriptor": _storage({}, pointer, columns),
    }


def point_to(table: Mapping[str, Any], pointer: Pointer, columns: Mapping[str, str]) -> dict[str, Any]:
    """A table with another pointer, and the columns and place that go with it."""
    parameters = read_texts(table.get("Parameters"))
    before = parameters[_POINTER]
    storage = table.get("StorageDescriptor")
    return {
        **take_input(table),
        "Parameters": {**parameters, _PREVIOUS: before, _POINTER: pointer.metadata_location},
        "StorageDescriptor": _storage(storage if isinstance(storage, dict) else {}, pointer, columns),
    }


def take_input(table: Mapping[str, Any]) -> dict[str, Any]:
    """What of a table can be sent back."""
    return {name: value for name, value in table.items() if name in _TABLE_INPUT}


def _storage(known: Mapping[str, Any], pointer: Pointer, columns: Mapping[str, str]) -> dict[str, Any]:
    listed = [{"Name": name, "Type": kind} for name, kind in columns.items()]
    place = {} if pointer.location is None else {"Location": pointer.location}
    return {**known, "Columns": listed, **place}


def read_properties(database: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a database, its place and comment among them."""
    properties = read_texts(database.get("Parameters"))
    for name, field in _APART.items():
        if isinstance(value := database.get(field), str) and value:
            properties[name] = value
    return properties


def set_properties(database: Mapping[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    """A database with other properties, as it is sent."""
    kept = {name: value for name, value in database.items() if name in _DATABASE_INPUT}
    for name, field in _APART.items():
        kept.pop(field, None)
        if name in properties:
            kept[field] = properties[name]
    kept["Parameters"] = {name: value for name, value in properties.items() if name not in _APART}
    return kept
