"""What a SQL catalog does: a row for a table, rows for the properties of a namespace.

A namespace is its levels joined by dots; it is there when it has a property, or a table, in it or below.

A maintainer must not break: the swap is one statement that names the pointer it expects; one row is success.
And every text that is asked for is cut by the database (`_short`): its columns may hold anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cynosure.catalog.errors import (
    InvalidName,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.federation.errors import NotIceberg, RemoteConflict
from cynosure.federation.pointers import Pointer
from cynosure.federation.remote import Abilities, NamesPage
from cynosure.federation.remotes.sql.database import MOST_CHARACTERS, MOST_ROWS, Database

_ABILITIES: Final = Abilities(has_views=False, has_nested_namespaces=True, has_transactions=False)
_EXISTS: Final = "exists"
"""The property that a namespace without others has: without a row it would not be there."""


def _short(column: str) -> str:
    """A text, or so much of it that it is seen to be too long."""
    return f"left({column}, {MOST_CHARACTERS + 1})"


# Older tables have no column `iceberg_type`, and views have their pointers in the same table.
_IS_TABLE: Final = "coalesce(to_jsonb(t) ->> 'iceberg_type', 'TABLE') = 'TABLE'"
_ALL_NAMESPACES: Final = """
    SELECT table_namespace AS name FROM iceberg_tables WHERE catalog_name = $1
    UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1
"""
_CHILDREN: Final = f"""
    SELECT DISTINCT {_short("split_part(substr(name, length($2) + 1), '.', 1)")} COLLATE "C" AS child
    FROM ({_ALL_NAMESPACES}) AS n
    WHERE left(name, length($2)) = $2
      AND split_part(substr(name, length($2) + 1), '.', 1) COLLATE "C" > $3
    ORDER BY child LIMIT $4
"""  # noqa: S608 - constants
_IS_THERE: Final = f"""
    SELECT 1 FROM ({_ALL_NAMESPACES}) AS n
    WHERE name = $2 OR left(name, length($2) + 1) = $2 || '.' LIMIT 1
"""  # noqa: S608 - constants
_IS_USED: Final = """
    SELECT 1 FROM iceberg_tables WHERE catalog_name = $1
      AND (table_namespace = $2 OR left(table_namespace, length($2) + 1) = $2 || '.')
    UNION ALL SELECT 1 FROM iceberg_namespace_properties
    WHERE catalog_name = $1 AND left(namespace, length($2) + 1) = $2 || '.' LIMIT 1
"""
_PROPERTIES: Final = f"""
    SELECT {_short("property_key")}, {_short("property_value")} FROM iceberg_namespace_properties
    WHERE catalog_name = $1 AND namespace = $2 LIMIT {MOST_ROWS + 1}
"""  # noqa: S608 - constants
_PUT_PROPERTY: Final = """
    INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
    VALUES ($1, $2, $3, $4)
"""
_SET_PROPERTY: Final = f"""{_PUT_PROPERTY}
    ON CONFLICT (catalog_name, namespace, property_key) DO UPDATE SET property_value = excluded.property_value
"""
_REMOVE_PROPERTIES: Final = """
    DELETE FROM iceberg_namespace_properties
    WHERE catalog_name = $1 AND namespace = $2 AND property_key = ANY($3::text[])
"""
_REMOVE_NAMESPACE: Final = """
    DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 AND namespace = $2
"""
_TABLES: Final = f"""
    SELECT {_short("table_name")} FROM iceberg_tables AS t
    WHERE catalog_name = $1 AND table_namespace = $2 AND {_IS_TABLE} AND metadata_location IS NOT NULL
      AND table_name COLLATE "C" > $3
    ORDER BY table_name COLLATE "C" LIMIT $4
"""  # noqa: S608 - constants
_FIND: Final = f"""
    SELECT {_short("metadata_location")} AS metadata_location, {_IS_TABLE} AS is_table
    FROM iceberg_tables AS t
    WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 LIMIT 1
"""  # noqa: S608 - constants
_HAS_TYPES: Final = """
    SELECT 1 FROM pg_attribute
    WHERE attrelid = to_regclass('iceberg_tables') AND attname = 'iceberg_type' AND NOT attisdropped
"""
_CREATE: Final = """
    INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)
    VALUES ($1, $2, $3, $4)
"""
_CREATE_TYPED: Final = """
    INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
    VALUES ($1, $2, $3, $4, 'TABLE')
"""
_SWAP: Final = f"""
    UPDATE iceberg_tables AS t SET metadata_location = $4, previous_metadata_location = $5
    WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND metadata_location = $5
      AND {_IS_TABLE}
"""  # noqa: S608 - constants
_DROP: Final = f"""
    DELETE FROM iceberg_tables AS t
    WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND {_IS_TABLE}
"""  # noqa: S608 - constants
_RENAME: Final = f"""
    UPDATE iceberg_tables AS t SET table_namespace = $4, table_name = $5
    WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND {_IS_TABLE}
"""  # noqa: S608 - constants


class SqlPointers:
    """One catalog in a database. See `PointerCatalog`."""

    def __init__(self, database: Database, catalog: str, name: str) -> None:
        """`catalog` is its name there, `name` ours."""
        self._database = database
        self._catalog = catalog
        self._name = name

    @property
    def abilities(self) -> Abilities:
        """See `PointerCatalog`."""
        return _ABILITIES

    async def check(self) -> None:
        """See `PointerCatalog`."""
        await self._fetch(_TABLES, "", "", 0)

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`."""
        if parent:
            await self._require_namespace(parent)
        prefix = f"{_text(parent)}." if parent else ""
        return _page(await self._fetch(_CHILDREN, prefix, token or "", size + 1), size)

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `PointerCatalog`."""
        await self._require_namespace(namespace)
        found = dict(await self._fetch(_PROPERTIES, _text(namespace)))
        found.pop(_EXISTS, None)
        return found

    async def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """See `PointerCatalog`."""
        if any("." in level for level in namespace):
            raise InvalidName(
                "This remote catalog separates the levels of a namespace by dots",
                field="namespace",
                fix="Use names without dots.",
            )
        taken = NamespaceExists(namespace_text(namespace))
        if await self._fetch(_IS_THERE, _text(namespace)):
            raise taken
        # With the mark: of two who create it at once, one finds its row.
        rows = {_EXISTS: "true", **properties}
        async with self._database.changing(taken=taken) as connection:
            for key, value in rows.items():
                await connection.execute(_PUT_PROPERTY, self._catalog, _text(namespace), key, value)

    async def update_namespace(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """See `PointerCatalog`."""
        await self._require_namespace(namespace)
        text = _text(namespace)
        removed = [each for each in removals if each not in updates and each != _EXISTS]
        async with self._database.changing() as connection:
            # A namespace whose last property goes would go with it.
            for key, value in {_EXISTS: "true", **updates}.items():
                await connection.execute(_SET_PROPERTY, self._catalog, text, key, value)
            await connection.execute(_REMOVE_PROPERTIES, self._catalog, text, removed)

    async def drop_namespace(self, namespace: Namespace) -> None:
        """See `PointerCatalog`."""
        await self._require_namespace(namespace)
        if await self._fetch(_IS_USED, _text(namespace)):
            raise NamespaceNotEmpty(namespace_text(namespace))
        await self._database.change(_REMOVE_NAMESPACE, self._catalog, _text(namespace))

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`."""
        rows = await self._fetch(_TABLES, _text(namespace), token or "", size + 1)
        if not rows:
            await self._require_namespace(namespace)
        return _page(rows, size)

    async def find(self, table: Identifier) -> Pointer:
        """See `PointerCatalog`."""
        rows = await self._database.fetch(_FIND, *self._row(table))
        if not rows:
            raise NoSuchTable(str(table))
        if not rows[0]["is_table"] or not rows[0]["metadata_location"]:
            raise NotIceberg(str(table))
        return Pointer(rows[0]["metadata_location"])

    async def create(self, table: Identifier, pointer: Pointer, columns: Mapping[str, str]) -> Pointer:
        """See `PointerCatalog`. The columns are in the metadata file alone."""
        await self._require_namespace(table.namespace)
        # Asked each time: another tool may have brought the tables up to date meanwhile.
        statement = _CREATE_TYPED if await self._database.fetch(_HAS_TYPES) else _CREATE
        values = (*self._row(table), pointer.metadata_location)
        await self._database.change(statement, *values, taken=TableExists(str(table)))
        return pointer

    async def swap(
        self, table: Identifier, expected: Pointer, wanted: Pointer, columns: Mapping[str, str]
    ) -> Pointer:
        """See `PointerCatalog`."""
        pointers = (wanted.metadata_location, expected.metadata_location)
        if await self._database.change(_SWAP, *self._row(table), *pointers) != 1:
            await self.find(table)
            raise RemoteConflict(
                "The table was changed in the remote catalog meanwhile", fix="Load it and try again."
            )
        return wanted

    async def drop(self, table: Identifier) -> None:
        """See `PointerCatalog`."""
        if await self._database.change(_DROP, *self._row(table)) != 1:
            raise NoSuchTable(str(table))

    async def rename(self, source: Identifier, target: Identifier) -> None:
        """See `PointerCatalog`."""
        await self._require_namespace(target.namespace)
        after = (_text(target.namespace), target.name)
        taken = TableExists(str(target))
        if await self._database.change(_RENAME, *self._row(source), *after, taken=taken) != 1:
            raise NoSuchTable(str(source))

    async def close(self) -> None:
        """See `PointerCatalog`."""
        await self._database.close()

    async def _fetch(self, statement: str, *values: Any) -> Sequence[Any]:
        return await self._database.fetch(statement, self._catalog, *values)

    def _row(self, table: Identifier) -> tuple[str, str, str]:
        """The key of a table's row. `NoSuchTable` when it can have none."""
        try:
            return self._catalog, _text(table.namespace), table.name
        except NoSuchNamespace as error:
            raise NoSuchTable(str(table)) from error

    async def _require_namespace(self, namespace: Namespace) -> None:
        if not await self._fetch(_IS_THERE, _text(namespace)):
            raise NoSuchNamespace(namespace_text(namespace))


def _text(namespace: Namespace) -> str:
    """A namespace as it is stored. `a.b` of one level would be read as two, which others have rights to."""
    if not namespace or any("." in level for level in namespace):
        raise NoSuchNamespace(namespace_text(namespace))
    return ".".join(namespace)


def _page(rows: Sequence[Any], size: int) -> NamesPage:
    names = [row[0] for row in rows]
    return NamesPage(names[:size], names[size - 1] if len(names) > size else None)
