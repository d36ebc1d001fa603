"""SHOW and DESCRIBE: names and columns, with the headings that Spark gives them, and no engine.

A maintainer must not break: lists are the catalog's answers to the user; nothing is added from memory.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.query.catalog_access.port import CatalogSession, Listed, OpenedTable, OpenedView
from cynosure.query.coordinator.names import namespace_candidates
from cynosure.query.coordinator.opening import RUNTIME, Found, Opener, Readable, Runtime, is_runtime
from cynosure.query.coordinator.table_texts import (
    find_comment,
    find_order,
    find_partitioning,
    find_properties,
    quote,
    write_create,
)
from cynosure.query.errors import NoSuchRelation, NotAllowed
from cynosure.query.spark_types import to_spark_sql
from cynosure.query.sql.bound import TableMention
from cynosure.query.sql.functions import ALLOWED, TABLE_FUNCTIONS
from cynosure.query.sql.statements import Describe, Show

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW: Final = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
    "null": "void",
}


_OF_GATEWAY: Final = ("queries", "tasks", "workers")
_Row = tuple[str, str, str | None]


class Shower:
    """Answers SHOW and DESCRIBE for one user."""

    def __init__(
        self, session: CatalogSession, catalog: str, namespace: tuple[str, ...], *, runtime: Runtime
    ) -> None:
        self._session = session
        self._runtime = runtime
        self._catalog = catalog
        self._namespace = namespace

    async def show(self, wanted: Show) -> "pa.Table":
        """Names of things."""
        match wanted.what:
            case "catalogs":
                names = [".".join(each.name) async for each in self._session.list_catalogs()]
                return _table({"catalog": await _like(names, wanted.like)})
            case "namespaces":
                return await self._namespaces(wanted)
            case "tables" | "views":
                return await self._tables(wanted)
            case "columns":
                found = await self._open(wanted.within)
                if isinstance(found, OpenedView):
                    return _table({"col_name": list(found.columns)})
                return _table({"col_name": [each.name for each in _schema_of(found).fields]})
            case "functions":
                return _table({"function": await _like(sorted(ALLOWED | TABLE_FUNCTIONS), wanted.like)})
            case "create-table":
                return _table({"createtab_stmt": [write_create(await self._open_table(wanted.within))]})
            case "tblproperties":
                return _properties(await self._open_table(wanted.within), wanted.key)
            case "current-namespace":
                namespace = _quoted(self._namespace) if self._namespace else None
                return _table({"catalog": [self._catalog or None], "namespace": [namespace]})

    async def describe(self, wanted: Describe) -> "pa.Table | OpenedView":
        """What one thing is made of; a view itself, whose columns are those of its query."""
        if wanted.what == "namespace":
            return await self._describe_namespace(wanted)
        found = await self._open(wanted.name)
        if isinstance(found, OpenedView):
            return found
        rows: list[_Row] = [
            (each.name, to_spark_sql(each.type), each.doc) for each in _schema_of(found).fields
        ]
        if isinstance(found, OpenedTable):
            rows += _partitioning(found)
        if wanted.is_extended:
            rows += _details(found)
        return _table(
            {
                "col_name": [each[0] for each in rows],
                "data_type": [each[1] for each in rows],
                "comment": [each[2] for each in rows],
            }
        )

    async def _namespaces(self, wanted: Show) -> "pa.Table":
        readings: list[tuple[str, tuple[str, ...]]] = [(self._catalog, ())]
        if wanted.within:
            # `IN a` is a catalog, or a namespace of the session's.
            readings = [(wanted.within[0], wanted.within[1:])]
            if self._catalog:
                readings.append((self._catalog, wanted.within))
        found = await _first(
            [self._session.list_namespaces(catalog, parent) for catalog, parent in readings if catalog]
        )
        return _table({"namespace": await _like([_quoted(each.name) for each in found], wanted.like)})

    async def _tables(self, wanted: Show) -> "pa.Table":
        readings = namespace_candidates(wanted.within, self._catalog, self._namespace)
        session = self._session
        lists = session.list_tables if wanted.what == "tables" else session.list_views
        if is_runtime(wanted.within):
            has = [
                each for each in _OF_GATEWAY if wanted.what == "tables" and self._runtime(each) is not None
            ]
            found = [Listed((*RUNTIME, each), "table") for each in has]
        else:
            found = await _first([lists(catalog, ns) for catalog, ns in readings if catalog and ns])
        by_name = {each.name[-1]: each for each in found}
        kept = [by_name[name] for name in await _like(list(by_name), wanted.like)]
        name = "tableName" if wanted.what == "tables" else "viewName"
        return _table(
            {
                "namespace": [_quoted(each.name[:-1]) for each in kept],
                name: [each.name[-1] for each in kept],
                "isTemporary": [False for _ in kept],
            }
        )

    async def _describe_namespace(self, wanted: Describe) -> "pa.Table":
        readings = namespace_candidates(wanted.name, self._catalog, self._namespace)
        missing: NoSuchRelation | None = None
        for catalog, namespace in readings:
            if not catalog or not namespace:
                continue
            try:
                properties = await self._session.load_namespace(catalog, namespace)
            except NoSuchRelation as error:
                missing = missing or error
                continue
            rows = [
                ("Catalog Name", catalog),
                ("Namespace Name", ".".join(namespace)),
                *([("Comment", properties["comment"])] if "comment" in properties else []),
            ]
            if wanted.is_extended:
                rows.append(("Properties", ", ".join(sorted(properties))))
            return _table({"info_name": [each[0] for each in rows], "info_value": [each[1] for each in rows]})
        raise missing or _nothing_named()

    async def _open(self, parts: tuple[str, ...]) -> Found:
        opener = Opener(self._session, self._runtime)
        try:
            return await opener.open(TableMention(0, parts), self._catalog, self._namespace)
        finally:
            await opener.close()

    async def _open_table(self, parts: tuple[str, ...]) -> OpenedTable:
        found = await self._open(parts)
        if not isinstance(found, OpenedTable):
            raise NotAllowed(
                "This is a view" if isinstance(found, OpenedView) else "This is no table that is stored",
                fix="DESCRIBE it to see its columns.",
                name=".".join(parts),
            )
        return found


def lines_table(lines: list[str], heading: str = "plan") -> "pa.Table":
    """Text as one column."""
    return _table({heading: lines})


def columns_table(names: Sequence[str], schema: "pa.Schema") -> "pa.Table":
    """The columns of a query, as DESCRIBE QUERY has them."""
    types = [_arrow_type(each) for each in schema.types]
    return _table({"col_name": list(names), "data_type": types, "comment": [None for _ in types]})


def _arrow_type(type_: "pa.DataType") -> str:
    """A type of a result as Spark writes it."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{each.name}:{_arrow_type(each.type)}' for each in type_)}>"
    if pa.types.is_map(type_):
        return f"map<{_arrow_type(type_.key_type)},{_arrow_type(type_.item_type)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"array<{_arrow_type(type_.value_type)}>"
    return _ARROW.get(str(type_), str(type_))


async def _first(lists: list[AsyncIterator[Listed]]) -> list[Listed]:
    """The first of several readings of a name that the catalog knows."""
    missing: NoSuchRelation | None = None
    for each in lists:
        try:
            return [one async for one in each]
        except NoSuchRelation as error:
            missing = missing or error
    raise missing or _nothing_named()


def _schema_of(found: Readable) -> Schema:
    return decode_schema(found.schema) if isinstance(found, OpenedTable) else found.schema


def _partitioning(table: OpenedTable) -> list[_Row]:
    """As Spark shows it: columns where they are nothing but columns, else what is made of them."""
    parts = find_partitioning(table)
    if not parts:
        return []
    columns = [(text, field) for text, field in parts if field is not None]
    if len(columns) < len(parts):
        shown: list[_Row] = [(f"Part {at}", text, "") for at, (text, _) in enumerate(parts)]
        return [("", "", ""), ("# Partitioning", "", ""), *shown]
    return [
        ("# Partition Information", "", ""),
        ("# col_name", "data_type", "comment"),
        *((text, to_spark_sql(field.type), field.doc) for text, field in columns),
    ]


def _details(found: Readable) -> list[_Row]:
    rows: list[_Row] = [("", "", ""), ("# Detailed Table Information", "", "")]
    if not isinstance(found, OpenedTable):
        return [*rows, ("Name", found.shown, ""), ("Type", "METADATA", "")]
    metadata, properties = found.metadata, find_properties(found)
    facts = {
        "Name": str(found.name),
        "Type": "MANAGED",
        "Comment": find_comment(found),
        "Location": "" if found.is_restricted else str(metadata.get("location", "")),
        "Provider": "iceberg",
        "Format Version": str(metadata.get("format-version", "")),
        "Current Snapshot": str(found.snapshot_id or "none"),
        "Sort Order": find_order(found),
        "Table Properties": f"[{','.join(f'{name}={value}' for name, value in properties.items())}]"
        if properties
        else "",
        "Policies": ", ".join(found.policies),
    }
    return [*rows, *((name, value, "") for name, value in facts.items() if value)]


def _properties(table: OpenedTable, key: str | None) -> "pa.Table":
    """With those that Iceberg adds for Spark: what the metadata says elsewhere."""
    if table.is_restricted:
        raise NotAllowed(
            "Policies of this table do not allow its properties",
            fix="Write DESCRIBE EXTENDED table: properties may tell about rows that are hidden.",
            table=str(table.name),
            policies=", ".join(table.policies),
        )
    own = find_properties(table)
    added = {
        "current-snapshot-id": str(table.snapshot_id or "none"),
        "format": f"iceberg/{own.get('write.format.default', 'parquet')}",
        "format-version": str(table.metadata.get("format-version", "")),
        "sort-order": find_order(table),
    }
    shown = dict(sorted({**own, **{name: value for name, value in added.items() if value}}.items()))
    if key is not None:
        shown = {key: shown.get(key, f"Table {table.name} does not have property: {key}")}
    return _table({"key": list(shown), "value": list(shown.values())})


def _quoted(levels: tuple[str, ...]) -> str:
    return ".".join(quote(each) for each in levels)


async def _like(names: list[str], pattern: str | None) -> list[str]:
    """Those that a pattern of Spark matches: `*` for anything, `|` between alternatives, any case."""
    if pattern is None:
        return names
    return await asyncio.to_thread(filter_names, names, pattern)


def filter_names(names: list[str], pattern: str) -> list[str]:
    """See `_like`."""
    choices = [each.strip().lower().split("*") for each in dict.fromkeys(pattern.split("|"))]
    return [name for name in names if any(_matches(name.lower(), parts) for parts in choices)]


def _matches(name: str, parts: list[str]) -> bool:
    """Whether a name is these parts, in this order, with anything between them. No way is tried twice."""
    first, *middle = parts
    if not middle:
        return name == first
    last = middle.pop()
    end = len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last):
        return False
    at = len(first)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end


def _table(columns: dict[str, list[Any]]) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.table(
        {
            name: pa.array(values, pa.bool_() if name == "isTemporary" else pa.string())
            for name, values in columns.items()
        }
    )


def _nothing_named() -> NoSuchRelation:
    return NoSuchRelation(
        "Neither the statement nor the session names a catalog and namespace",
        fix="Name one, as in SHOW TABLES IN catalog.namespace (SHOW NAMESPACES lists them); or send both "
        "with the statement, as USE catalog.namespace does at the prompt.",
    )
