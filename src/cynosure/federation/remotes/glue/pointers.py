"""What Glue does for tables of Iceberg's.

The pointer is a parameter of the table. An update names the version of the table that it was made from, and
Glue refuses it when there is another by now.

Glue renames nothing: the table is made anew under the other name, then the old entry is deleted. Whoever
changes the table between the last look and that deletion loses the change; there is no condition for it.

A maintainer must not break: an update always names a `VersionId`; and a database is deleted only when it was
seen to be empty, because Glue deletes its tables with it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct

from cynosure.catalog.connection import Connection, ConnectionSecrets, SigV4
from cynosure.catalog.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import NotIceberg, RemoteConflict, RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.pointers import Pointer
from cynosure.federation.remote import Abilities, NamesPage
from cynosure.federation.remotes.aws_keys import open_aws_keys
from cynosure.federation.remotes.glue.client import GlueClient, GlueRefused, translate
from cynosure.federation.remotes.glue.records import (
    ListedDatabase,
    ListedTable,
    is_iceberg,
    make_table,
    point_to,
    read_pointer,
    read_properties,
    set_properties,
    take_input,
)
from cynosure.federation.remotes.levels import require_level
from cynosure.federation.remotes.paging import is_own_token, page_of_all
from cynosure.federation.remotes.transport import ENTRY_BYTES, LIST_BYTES
from cynosure.federation.settings import FederationSettings

T = TypeVar("T")

_ABILITIES: Final = Abilities(
    has_views=False, has_nested_namespaces=False, has_transactions=False, names="lower"
)
_MOST_AT_ONCE: Final = 100
"""Glue gives no longer pages."""
_MOST_REQUESTS: Final = 20
"""For one page: a database may hold a hundred thousand tables of other formats."""
_MISSING: Final = "EntityNotFoundException"
_TAKEN: Final = "AlreadyExistsException"
_MOVED: Final = ("ConcurrentModificationException", "VersionMismatchException")


class _Databases(Struct, rename="pascal"):
    database_list: list[ListedDatabase] = []
    next_token: str | None = None


class _Tables(Struct, rename="pascal"):
    table_list: list[ListedTable] = []
    next_token: str | None = None


class _FoundDatabase(Struct, rename="pascal"):
    database: dict[str, Any]


class _FoundTable(Struct, rename="pascal"):
    table: dict[str, Any]


def open_glue(
    connection: Connection,
    secrets: ConnectionSecrets,
    settings: FederationSettings,
    clock: Clock,
    name: str,
) -> "GluePointers":
    """A client of the Glue that a connection names. Opens no socket yet."""
    authentication = connection.authentication
    if not isinstance(authentication, SigV4):
        raise RemoteUnavailable(name, reason="the connection signs no requests")
    keys = open_aws_keys(authentication, secrets, settings, clock, name)
    client = GlueClient(
        connection.uri,
        authentication.signing_region,
        keys,
        connection.remote_name,
        settings,
        clock,
        name,
    )
    return GluePointers(client, name)


class GluePointers:
    """One data catalog of Glue. See `PointerCatalog`."""

    def __init__(self, client: GlueClient, name: str) -> None:
        self._client = client
        self._name = name

    @property
    def abilities(self) -> Abilities:
        """See `PointerCatalog`."""
        return _ABILITIES

    async def check(self) -> None:
        """See `PointerCatalog`."""
        await self._page(_Databases, "GetDatabases", {}, None, 1)

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`."""
        if parent:
            await self._load_database(parent)
            return NamesPage(())
        asked = None if is_own_token(token) else token
        page = await self._page(_Databases, "GetDatabases", {}, asked, size)
        names = [each.name for each in page.database_list]
        if len(names) > size or is_own_token(token):
            return page_of_all(names, token, size)
        return NamesPage(names, page.next_token or None)

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `PointerCatalog`."""
        return read_properties(await self._load_database(namespace))

    async def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """See `PointerCatalog`."""
        wanted = set_properties({"Name": require_level(namespace)}, properties)
        await self._change(
            "CreateDatabase", {"DatabaseInput": wanted}, {_TAKEN: NamespaceExists(namespace_text(namespace))}
        )

    async def update_namespace(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """See `PointerCatalog`. Not conditional: Glue has nothing to compare."""
        database = await self._load_database(namespace)
        properties = {**read_properties(database), **updates}
        for name in removals:
            properties.pop(name, None)
        arguments = {"Name": namespace[0], "DatabaseInput": set_properties(database, properties)}
        await self._change("UpdateDatabase", arguments, _no_namespace(namespace))

    async def drop_namespace(self, namespace: Namespace) -> None:
        """See `PointerCatalog`."""
        await self._load_database(namespace)
        asked = {"DatabaseName": namespace[0]}
        page = await self._page(_Tables, "GetTables", asked, None, 1, _no_namespace(namespace))
        if page.table_list or page.next_token:
            raise NamespaceNotEmpty(namespace_text(namespace))
        await self._change("DeleteDatabase", {"Name": namespace[0]}, _no_namespace(namespace))

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`. A page may be shorter than there are tables, or empty, and go on."""
        missing = _no_namespace(namespace)
        if len(namespace) != 1:
            raise missing[_MISSING]
        asked = {"DatabaseName": namespace[0]}
        names: list[str] = []
        after = None if is_own_token(token) else token
        for _ in range(_MOST_REQUESTS):
            page = await self._page(_Tables, "GetTables", asked, after, size - len(names), missing)
            names += [each.name for each in page.table_list if each.is_iceberg]
            after = page.next_token or None
            if after is None or len(names) >= size:
                break
        if len(names) > size or is_own_token(token):
            return page_of_all(names, token, size)
        return NamesPage(names, after)

    async def find(self, table: Identifier) -> Pointer:
        """See `PointerCatalog`."""
        return read_pointer(await self._load_table(table))

    async def create(self, table: Identifier, pointer: Pointer, columns: Mapping[str, str]) -> Pointer:
        """See `PointerCatalog`. Its version is seen with the next look at it."""
        await self._create(table, make_table(table.name, pointer, columns))
        return Pointer(pointer.metadata_location, location=pointer.location)

    async def swap(
        self, table: Identifier, expected: Pointer, wanted: Pointer, columns: Mapping[str, str]
    ) -> Pointer:
        """See `PointerCatalog`."""
        record = await self._load_table(table)
        found = read_pointer(record)
        is_expected = found.metadata_location == expected.metadata_location
        if not is_expected or expected.version not in (None, found.version):
            raise _moved()
        if found.version is None:
            raise RemoteMisbehaved(self._name, problem="a table without a version")
        arguments = {
            "DatabaseName": require_level(table.namespace),
            "TableInput": point_to(record, wanted, columns),
            "VersionId": found.version,
            "SkipArchive": True,
        }
        known: dict[str, CynosureError] = dict.fromkeys(_MOVED, _moved())
        await self._change("UpdateTable", arguments, {**known, _MISSING: NoSuchTable(str(table))})
        return Pointer(wanted.metadata_location, location=wanted.location)

    async def drop(self, table: Identifier) -> None:
        """See `PointerCatalog`. Of another format's table nothing is done."""
        await self._load_table(table)
        await self._delete(table)

    async def rename(self, source: Identifier, target: Identifier) -> None:
        """See `PointerCatalog`."""
        record = await self._load_table(source)
        await self._create(target, {**take_input(record), "Name": target.name})
        try:
            if read_pointer(await self._load_table(source)) != read_pointer(record):
                raise _moved()
            await self._delete(source)
        except OutcomeUnknown:
            # It may be gone, and the other name is all that is left of it.
            raise
        except CynosureError as error:
            # Somebody else's rename or drop may have been faster: one table must not have two names.
            await self._take_back(target, error)
            raise

    async def close(self) -> None:
        """See `PointerCatalog`."""
        await self._client.close()

    async def _create(self, table: Identifier, wanted: Mapping[str, Any]) -> None:
        arguments = {"DatabaseName": require_level(table.namespace), "TableInput": wanted}
        known = {_TAKEN: TableExists(str(table)), **_no_namespace(table.namespace)}
        await self._change("CreateTable", arguments, known)

    async def _delete(self, table: Identifier) -> None:
        arguments = {"DatabaseName": require_level(table.namespace), "Name": table.name}
        await self._change("DeleteTable", arguments, {_MISSING: NoSuchTable(str(table))})

    async def _take_back(self, target: Identifier, error: CynosureError) -> None:
        """Delete what a rename made. `OutcomeUnknown` when it may stay: then the rename is done by half."""
        try:
            with suppress(NoSuchTable):
                await self._delete(target)
        except CynosureError:
            raise OutcomeUnknown(
                "The remote catalog may have the table under both names",
                fix="Look at it there, and drop one of them without a purge.",
                catalog=self._name,
            ) from error

    async def _load_table(self, table: Identifier) -> Mapping[str, Any]:
        missing = NoSuchTable(str(table))
        if len(table.namespace) != 1:
            raise missing
        asked = {"DatabaseName": table.namespace[0], "Name": table.name}
        record = (await self._read(_FoundTable, "GetTable", asked, {_MISSING: missing})).table
        if record.get("Name") != table.name:
            raise RemoteMisbehaved(self._name, problem="another table than the one asked for")
        if not is_iceberg(record):
            raise NotIceberg(str(table))
        return record

    async def _load_database(self, namespace: Namespace) -> Mapping[str, Any]:
        missing = _no_namespace(namespace)
        if len(namespace) != 1:
            raise missing[_MISSING]
        return (await self._read(_FoundDatabase, "GetDatabase", {"Name": namespace[0]}, missing)).database

    async def _page(
        self,
        page_type: type[T],
        action: str,
        asked: Mapping[str, Any],
        token: str | None,
        size: int,
        known: Mapping[str, CynosureError] | None = None,
    ) -> T:
        arguments = {**asked, "MaxResults": min(size, _MOST_AT_ONCE)}
        if token is not None:
            arguments["NextToken"] = token
        return await self._read(page_type, action, arguments, known or {}, limit=LIST_BYTES)

    async def _read(
        self,
        answer_type: type[T],
        action: str,
        arguments: Mapping[str, Any],
        known: Mapping[str, CynosureError],
        *,
        limit: int = ENTRY_BYTES,
    ) -> T:
        try:
            return await self._client.read(action, arguments, answer_type, limit=limit)
        except GlueRefused as refused:
            raise translate(refused, self._name, known) from refused

    async def _change(
        self, action: str, arguments: Mapping[str, Any], known: Mapping[str, CynosureError]
    ) -> None:
        try:
            await self._client.change(action, arguments)
        except GlueRefused as refused:
            raise translate(refused, self._name, known) from refused


def _no_namespace(namespace: Namespace) -> dict[str, CynosureError]:
    return {_MISSING: NoSuchNamespace(namespace_text(namespace))}


def _moved() -> RemoteConflict:
    return RemoteConflict(
        "The table was changed in the remote catalog meanwhile", fix="Load it and try again."
    )
