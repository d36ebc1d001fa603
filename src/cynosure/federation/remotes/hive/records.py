"""Tables and databases as a Hive Metastore keeps them, by the numbers of their fields in Thrift.

A maintainer must not break: what is in a record and not ours stays as it was.
"""

from collections.abc import Mapping
from typing import Any, Final

from cynosure.federation.pointers import Pointer
from cynosure.federation.remotes.hive.thrift import (
    BOOL,
    INT32,
    STRUCT,
    Fields,
    Pairs,
    Value,
    structs,
    text,
    text_map,
    texts,
)

TABLE_NAME: Final = 1
TABLE_DATABASE: Final = 2
_OWNER: Final = 3
_CREATED: Final = 4
_ACCESSED: Final = 5
_STORAGE: Final = 7
_PARTITION_KEYS: Final = 8
_PARAMETERS: Final = 9
_TABLE_TYPE: Final = 12

_COLUMNS: Final = 1
_LOCATION: Final = 2

_DATABASE_NAME: Final = 1
_DESCRIPTION: Final = 2
_DATABASE_LOCATION: Final = 3
_DATABASE_PARAMETERS: Final = 4

METADATA_LOCATION: Final = "metadata_location"
_PREVIOUS: Final = "previous_metadata_location"
_FORMAT: Final = "table_type"
_ICEBERG: Final = "ICEBERG"
_OUTDATED: Final = frozenset(
    {
        "current-schema",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "default-partition-spec",
        "default-sort-order",
        "numFiles",
        "numRows",
        "rawDataSize",
        "snapshot-count",
        "totalSize",
    }
)
"""What engines note beside the pointer about the version that it named; gone with that version."""
_COMMENT: Final = "comment"
_LOCATION_PROPERTY: Final = "location"
_OURS: Final = "cynosure"


def read_texts(value: Any) -> dict[str, str]:
    """A map of strings; nothing, where there is none."""
    items = value.items if isinstance(value, Pairs) else ()
    return {key: each for key, each in items if isinstance(key, str) and isinstance(each, str)}


def read_parameters(table: Fields) -> dict[str, str]:
    """The parameters of a table."""
    found = table.get(_PARAMETERS)
    return {} if found is None else read_texts(found.value)


def read_name(table: Fields) -> str:
    """The name of a table."""
    found = table.get(TABLE_NAME)
    return found.value if found is not None and isinstance(found.value, str) else ""


def is_iceberg(table: Fields) -> bool:
    """Whether it is a table of Iceberg's: one with a pointer."""
    parameters = read_parameters(table)
    return parameters.get(_FORMAT, "").upper() == _ICEBERG and bool(parameters.get(METADATA_LOCATION))


def read_pointer(table: Fields) -> Pointer:
    """Where the metadata of a table of Iceberg's is."""
    storage = table.get(_STORAGE)
    place = storage.value.get(_LOCATION) if storage is not None and storage.type == STRUCT else None
    return Pointer(read_parameters(table)[METADATA_LOCATION], location=place.value if place else None)


def make_table(
    database: str, name: str, pointer: Pointer, columns: Mapping[str, str], *, now_s: int
) -> dict[int, Value]:
    """A new table of Iceberg's, as engines expect it: external, without partitions of Hive's own."""
    return {
        TABLE_NAME: text(name),
        TABLE_DATABASE: text(database),
        _OWNER: text(_OURS),
        _CREATED: Value(INT32, now_s),
        _ACCESSED: Value(INT32, now_s),
        _STORAGE: Value(STRUCT, _storage({}, pointer, columns)),
        _PARTITION_KEYS: structs([]),
        _PARAMETERS: text_map(
            {_FORMAT: _ICEBERG, METADATA_LOCATION: pointer.metadata_location, "EXTERNAL": "TRUE"}
        ),
        _TABLE_TYPE: text("EXTERNAL_TABLE"),
    }


def point_to(table: Fields, pointer: Pointer, columns: Mapping[str, str]) -> dict[int, Value]:
    """A table with another pointer, and the columns and place that go with it."""
    before = read_parameters(table)
    parameters = {name: value for name, value in before.items() if name not in _OUTDATED}
    parameters[_PREVIOUS] = before[METADATA_LOCATION]
    parameters[METADATA_LOCATION] = pointer.metadata_location
    storage = table.get(_STORAGE)
    known = storage.value if storage is not None and storage.type == STRUCT else {}
    return {
        **table,
        _PARAMETERS: text_map(parameters),
        _STORAGE: Value(STRUCT, _storage(known, pointer, columns)),
    }


def rename(table: Fields, database: str, name: str) -> dict[int, Value]:
    """A table with another name."""
    return {**table, TABLE_NAME: text(name), TABLE_DATABASE: text(database)}


def _storage(known: Fields, pointer: Pointer, columns: Mapping[str, str]) -> dict[int, Value]:
    listed = [{1: text(name), 2: text(kind), 3: text("")} for name, kind in columns.items()]
    serde = {
        1: text(""),
        2: text("org.apache.iceberg.mr.hive.HiveIcebergSerDe"),
        3: text_map({}),
    }
    found = {
        3: text("org.apache.iceberg.mr.hive.HiveIcebergInputFormat"),
        4: text("org.apache.iceberg.mr.hive.HiveIcebergOutputFormat"),
        5: Value(BOOL, False),
        6: Value(INT32, 0),
        7: Value(STRUCT, serde),
        8: texts([]),
        9: structs([]),
        10: text_map({}),
        **known,
        _COLUMNS: structs(listed),
    }
    if pointer.location is not None:
        found[_LOCATION] = text(pointer.location)
    return found


def make_database(name: str, properties: Mapping[str, str]) -> dict[int, Value]:
    """A new database."""
    return set_properties({_DATABASE_NAME: text(name)}, properties)


def read_database_name(database: Fields) -> str:
    """What a database is called; nothing when it does not say."""
    found = database.get(_DATABASE_NAME)
    return found.value if found is not None and isinstance(found.value, str) else ""


def read_properties(database: Fields) -> dict[str, str]:
    """The properties of a database, its place and comment among them."""
    found = database.get(_DATABASE_PARAMETERS)
    properties = {} if found is None else read_texts(found.value)
    for name, number in ((_LOCATION_PROPERTY, _DATABASE_LOCATION), (_COMMENT, _DESCRIPTION)):
        value = database.get(number)
        if value is not None and isinstance(value.value, str) and value.value:
            properties[name] = value.value
    return properties


def set_properties(database: Fields, properties: Mapping[str, str]) -> dict[int, Value]:
    """A database with other properties."""
    apart = {_LOCATION_PROPERTY: _DATABASE_LOCATION, _COMMENT: _DESCRIPTION}
    changed = dict(database)
    changed[_DATABASE_PARAMETERS] = text_map(
        {name: value for name, value in properties.items() if name not in apart}
    )
    for name, number in apart.items():
        if name in properties:
            changed[number] = text(properties[name])
        elif number == _DESCRIPTION:
            changed.pop(number, None)
    return changed
