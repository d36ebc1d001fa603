"""How a table is laid out, in Spark's words: partitioning, order, properties, the statement that makes it.

A maintainer must not break: definitions may be told to everybody who sees the table, values may not. So
properties and the location are for users whom no policy restricts on it: engines and owners write counts,
bounds and names of partitions there (`numRows`, `spark.sql.statistics…`). Nobody is told a secret.
"""

import re
from typing import Any, Final

import msgspec

from cynosure.common.secrets import looks_secret
from cynosure.iceberg.partitioning import decode_spec
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.sorting import decode_order
from cynosure.iceberg.transforms import IDENTITY, VOID
from cynosure.iceberg.types import ListType, MapType, NestedField, StructType, Type, children
from cynosure.query.catalog_access.port import OpenedTable
from cynosure.query.coordinator.manifest_tables import own_json
from cynosure.query.spark_types import to_spark_sql

REDACTED: Final = "*********(redacted)"
"""As Spark writes it."""
_COMMENT: Final = "comment"
_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d+)\]", re.ASCII)
_SPARKS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def quote(name: str) -> str:
    """A name as it must be written."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f"`{name.replace('`', '``')}`"


def find_partitioning(table: OpenedTable) -> list[tuple[str, NestedField | None]]:
    """Each part as Spark writes it, with its column if it is nothing but that."""
    metadata, schema = table.metadata, _current_schema(table)
    spec = _find(metadata.get("partition-specs"), "spec-id", metadata.get("default-spec-id", 0))
    if spec is None:
        return []
    found: list[tuple[str, NestedField | None]] = []
    for field in decode_spec(msgspec.json.encode(spec)).fields:
        if field.transform == VOID:
            continue
        place = schema.places.get(field.sources[0]) if field.transform == IDENTITY else None
        found.append(
            (_term(field.transform, field.sources, schema), place.field if place is not None else None)
        )
    return found


def find_order(table: OpenedTable) -> str:
    """The order that writers keep, as Iceberg describes it to Spark; empty if there is none."""
    metadata, schema = table.metadata, _current_schema(table)
    order = _find(metadata.get("sort-orders"), "order-id", metadata.get("default-sort-order-id", 0))
    if order is None:
        return ""
    return ", ".join(
        f"{_term(each.transform, each.sources, schema)} {each.direction.upper()} "
        f"{each.null_order.replace('-', ' ').upper()}"
        for each in decode_order(msgspec.json.encode(order)).fields
    )


def find_comment(table: OpenedTable) -> str:
    """What its owner says of it. Like the comments of columns: written to be read."""
    return str((table.metadata.get("properties") or {}).get(_COMMENT, ""))


def find_properties(table: OpenedTable) -> dict[str, str]:
    """Its own properties without secrets, sorted; none for users who do not see everything."""
    if table.is_restricted:
        return {}
    properties = table.metadata.get("properties") or {}
    return {
        name: REDACTED if looks_secret(name, str(value)) else str(value)
        for name, value in sorted(properties.items())
        if name != _COMMENT
    }


def write_create(table: OpenedTable) -> str:
    """The statement that makes such a table, as Spark writes it; without its location, which is taken."""
    columns = ",\n".join(f"  {_write_field(each, ' ')}" for each in decode_schema(table.schema).fields)
    name = ".".join(quote(each) for each in (table.name.catalog, *table.name.namespace, table.name.name))
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING iceberg"]
    if parts := find_partitioning(table):
        lines.append(f"PARTITIONED BY ({', '.join(text for text, _ in parts)})")
    if comment := find_comment(table):
        lines.append(f"COMMENT {_text(comment)}")
    properties = {
        "format-version": str(table.metadata.get("format-version", 2)),
        **{name: value for name, value in find_properties(table).items() if value != REDACTED},
    }
    pairs = ",\n".join(f"  {_text(name)} = {_text(value)}" for name, value in sorted(properties.items()))
    lines.append(f"TBLPROPERTIES (\n{pairs})")
    return "\n".join(lines)


def _current_schema(table: OpenedTable) -> Schema:
    return decode_schema(msgspec.json.encode(own_json(table)))


def _find(these: Any, key: str, wanted: Any) -> dict[str, Any] | None:
    return next((each for each in these or () if each.get(key, 0) == wanted), None)


def _term(transform: str, sources: tuple[int, ...], schema: Schema) -> str:
    """`days(ts)`, `bucket(16, id)`, `region`."""
    columns = ", ".join(_column(id_, schema) for id_ in sources)
    if transform == IDENTITY:
        return columns
    if match := _WITH_WIDTH.fullmatch(transform):
        return f"{match[1]}({match[2]}, {columns})"
    return f"{_SPARKS.get(transform, transform)}({columns})"


def _column(id_: int, schema: Schema) -> str:
    place = schema.places.get(id_)
    if place is None:
        return f"`#{id_}`"
    return ".".join(quote(each.name) for each in (*place.around, place.field))


def _write_field(field: NestedField, between: str) -> str:
    needed = " NOT NULL" if field.is_required else ""
    comment = f" COMMENT {_text(field.doc)}" if field.doc else ""
    return f"{quote(field.name)}{between}{_write_type(field.type)}{needed}{comment}"


def _write_type(type_: Type) -> str:
    """A type as it is written in statements; unlike in DESCRIBE, names of fields are quoted where needed."""
    match type_:
        case StructType(fields):
            return f"STRUCT<{', '.join(_write_field(each, ': ') for each in fields)}>"
        case ListType():
            return f"ARRAY<{_write_type(children(type_)[0].type)}>"
        case MapType():
            key, value = children(type_)
            return f"MAP<{_write_type(key.type)}, {_write_type(value.type)}>"
    return to_spark_sql(type_).upper()


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"
