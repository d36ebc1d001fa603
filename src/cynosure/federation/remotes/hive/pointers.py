"""What a Hive Metastore does for tables of Iceberg's.

The pointer is a parameter of the table. It is swapped as Iceberg's own engines do it: take the table's lock,
look, alter, give the lock back. The alteration also names the pointer that it expects: metastores since
HIVE-26882 then refuse it themselves, older ones (3.1.3) pass over that.

A maintainer must not break: databases and tables are never dropped with their files.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from cynosure.catalog.connection import Connection, ConnectionSecrets
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
from cynosure.federation.errors import NotIceberg, RemoteConflict, RemoteMisbehaved, RemoteRefused
from cynosure.federation.pointers import Pointer
from cynosure.federation.remote import Abilities, NamesPage
from cynosure.federation.remotes.hive.client import HiveClient, HiveRefused, refusal, unknown
from cynosure.federation.remotes.hive.locks import TableLock
from cynosure.federation.remotes.hive.records import (
    METADATA_LOCATION,
    is_iceberg,
    make_database,
    make_table,
    point_to,
    read_database_name,
    read_name,
    read_pointer,
    read_properties,
    rename,
    set_properties,
)
from cynosure.federation.remotes.hive.thrift import (
    BOOL,
    INT32,
    LIST,
    STRUCT,
    Fields,
    Value,
    Values,
    text,
    text_map,
    texts,
)
from cynosure.federation.remotes.levels import require_level
from cynosure.federation.remotes.paging import page_after
from cynosure.federation.settings import FederationSettings

_ABILITIES: Final = Abilities(
    has_views=False,
    has_nested_namespaces=False,
    has_transactions=False,
    names="lower",
    # Only writers that take locks wait for one another: metastores before 4 compare nothing.
    refuses_late_swaps=False,
)
_AT_ONCE: Final = 100
"""Tables that are looked at in one request."""
_KNOWS_INSERT_ONLY: Final = Value(STRUCT, {1: Value(LIST, Values(INT32, [2]))})
"""Said by a client, or a metastore refuses to show a list that holds a table of Hive's own transactions."""
_MODIFIED: Final = "has been modified"
_NO_STATISTICS: Final = {"DO_NOT_UPDATE_STATS": "true"}
_REFUSED: Final = 400
_NOBODYS: Final = "cynosure_asks"
"""A name that no table has, or whose table is of no interest."""


def open_hive(
    connection: Connection,
    secrets: ConnectionSecrets,
    settings: FederationSettings,
    clock: Clock,
    name: str,
) -> "HivePointers":
    """A client of the metastore that a connection names. Opens no socket yet.

    Without secrets: a metastore over plain Thrift asks nobody who they are.
    """
    return HivePointers(HiveClient(connection.uri, settings, clock, name), clock, name)


class HivePointers:
    """One metastore. See `PointerCatalog`."""

    def __init__(self, client: HiveClient, clock: Clock, name: str) -> None:
        self._client = client
        self._clock = clock
        self._name = name

    @property
    def abilities(self) -> Abilities:
        """See `PointerCatalog`."""
        return _ABILITIES

    async def check(self) -> None:
        """See `PointerCatalog`."""
        # That there is none is an answer too. And a metastore of another version knows databases, but not
        # the way in which tables are asked for.
        with suppress(NoSuchNamespace):
            await self._load_database(("default",))
        await self._find_record(Identifier(("default",), _NOBODYS))

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`."""
        if parent:
            await self._load_database(parent)
            return NamesPage(())
        return page_after(self._names(await self._read("get_all_databases", {})), token, size)

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `PointerCatalog`."""
        return read_properties(await self._load_database(namespace))

    async def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        """See `PointerCatalog`."""
        wanted = make_database(require_level(namespace), properties)
        await self._change(
            "create_database", {1: Value(STRUCT, wanted)}, taken=NamespaceExists(namespace_text(namespace))
        )

    async def update_namespace(
        self, namespace: Namespace, *, removals: Sequence[str], updates: Mapping[str, str]
    ) -> None:
        """See `PointerCatalog`. Not conditional: a metastore has nothing to compare."""
        database = await self._load_database(namespace)
        properties = {**read_properties(database), **updates}
        for name in removals:
            properties.pop(name, None)
        arguments = {
            1: text(require_level(namespace)),
            2: Value(STRUCT, set_properties(database, properties)),
        }
        await self._change("alter_database", arguments, missing=NoSuchNamespace(namespace_text(namespace)))

    async def drop_namespace(self, namespace: Namespace) -> None:
        """See `PointerCatalog`."""
        # Asked first: for one that is missing, a metastore answers with a failure that says nothing.
        await self._load_database(namespace)
        shown = namespace_text(namespace)
        arguments = {1: text(require_level(namespace)), 2: Value(BOOL, False), 3: Value(BOOL, False)}
        await self._change(
            "drop_database", arguments, missing=NoSuchNamespace(shown), invalid=NamespaceNotEmpty(shown)
        )

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `PointerCatalog`. All names are asked for; which are of Iceberg's, by some at a time."""
        if len(namespace) != 1:
            raise NoSuchNamespace(namespace_text(namespace))
        names = sorted(self._names(await self._read("get_all_tables", {1: text(namespace[0])})))
        if not names:
            await self._load_database(namespace)
        left = [each for each in names if token is None or each > token]
        found: list[str] = []
        while left and len(found) < size:
            wanted = min(_AT_ONCE, size - len(found) + 10)
            found += await self._choose_iceberg(namespace, left[:wanted])
            left = left[wanted:]
        has_more = bool(left) or len(found) > size
        found = found[:size]
        return NamesPage(found, found[-1] if has_more and found else None)

    async def find(self, table: Identifier) -> Pointer:
        """See `PointerCatalog`."""
        return read_pointer(await self._load_table(table))

    async def create(self, table: Identifier, pointer: Pointer, columns: Mapping[str, str]) -> Pointer:
        """See `PointerCatalog`."""
        now_s = self._clock.now_us() // 1_000_000
        wanted = make_table(require_level(table.namespace), table.name, pointer, columns, now_s=now_s)
        try:
            await self._change(
                "create_table",
                {1: Value(STRUCT, wanted)},
                taken=TableExists(str(table)),
                missing=NoSuchNamespace(namespace_text(table.namespace)),
            )
        except RemoteRefused:
            # A metastore says that an object is invalid also when its database is missing.
            await self._load_database(table.namespace)
            raise
        return pointer

    async def swap(
        self, table: Identifier, expected: Pointer, wanted: Pointer, columns: Mapping[str, str]
    ) -> Pointer:
        """See `PointerCatalog`."""
        async with TableLock(
            self._client, self._clock, self._name, require_level(table.namespace), table.name
        ) as lock:
            record = await self._load_table(table)
            if read_pointer(record).metadata_location != expected.metadata_location:
                raise _moved()
            context = {
                **_NO_STATISTICS,
                "expected_parameter_key": METADATA_LOCATION,
                "expected_parameter_value": expected.metadata_location,
            }
            async with self._keeping(lock, table, wanted):
                try:
                    await self._alter(table, point_to(record, wanted, columns), context)
                except RemoteConflict as conflict:
                    await self._require_own(table, wanted, conflict)
        return wanted

    async def drop(self, table: Identifier) -> None:
        """See `PointerCatalog`. Of another format's table nothing is done."""
        await self._load_table(table)
        arguments = {1: text(require_level(table.namespace)), 2: text(table.name), 3: Value(BOOL, False)}
        await self._change("drop_table", arguments, missing=NoSuchTable(str(table)))

    async def rename(self, source: Identifier, target: Identifier) -> None:
        """See `PointerCatalog`."""
        database = require_level(target.namespace)
        async with TableLock(
            self._client, self._clock, self._name, require_level(source.namespace), source.name
        ) as lock:
            record = await self._load_table(source)
            await self._load_database(target.namespace)
            if await self._find_record(target) is not None:
                raise TableExists(str(target))
            async with self._keeping(lock, target, read_pointer(record)):
                await self._alter(source, rename(record, database, target.name), _NO_STATISTICS)

    async def close(self) -> None:
        """See `PointerCatalog`."""
        await self._client.close()

    @asynccontextmanager
    async def _keeping(self, lock: TableLock, table: Identifier, wanted: Pointer) -> AsyncIterator[None]:
        """Around an alteration: keep the lock if it may still be carried out, afterwards."""
        try:
            yield
        except OutcomeUnknown:
            try:
                is_done = (await self.find(table)).metadata_location == wanted.metadata_location
            except CynosureError:
                is_done = False
            if not is_done:
                lock.keep()
            raise
        except CynosureError:
            raise
        except BaseException:
            lock.keep()
            raise

    async def _require_own(self, table: Identifier, wanted: Pointer, conflict: RemoteConflict) -> None:
        """Refuse, unless it is our own change: a metastore that repeats what failed inside of it finds that.

        The file of a change that is refused is deleted.
        """
        try:
            found = await self.find(table)
        except CynosureError:
            raise unknown(self._name, "it could not be looked at") from conflict
        if found.metadata_location != wanted.metadata_location:
            raise conflict

    async def _alter(self, table: Identifier, record: Fields, context: Mapping[str, str]) -> None:
        arguments = {
            1: text(require_level(table.namespace)),
            2: text(table.name),
            3: Value(STRUCT, record),
            4: Value(STRUCT, {1: text_map(context)}),
        }
        try:
            await self._client.change("alter_table_with_environment_context", arguments)
        except HiveRefused as refused:
            if refused.kind == "InvalidOperation":
                raise RemoteRefused(self._name, status=_REFUSED) from refused
            if _MODIFIED in refused.message:
                raise _moved() from refused
            # What failed inside the metastore may have failed behind the change.
            raise unknown(self._name, refused.kind, status=refused.kind) from refused

    async def _choose_iceberg(self, namespace: Namespace, names: Sequence[str]) -> list[str]:
        request = {1: text(require_level(namespace)), 2: texts(names), 3: _KNOWS_INSERT_ONLY}
        found = await self._read(
            "get_table_objects_by_name_req",
            {1: Value(STRUCT, request)},
            NoSuchNamespace(namespace_text(namespace)),
        )
        listed = found.get(1)
        tables = listed.value.items if listed is not None and listed.type == LIST else ()
        return sorted(read_name(each) for each in tables if is_iceberg(each))

    async def _load_table(self, table: Identifier) -> Fields:
        record = await self._find_record(table)
        if record is None:
            raise NoSuchTable(str(table))
        if not is_iceberg(record):
            raise NotIceberg(str(table))
        return record

    async def _find_record(self, table: Identifier) -> Fields | None:
        if len(table.namespace) != 1:
            return None
        request = {1: text(require_level(table.namespace)), 2: text(table.name), 3: _KNOWS_INSERT_ONLY}
        try:
            found = await self._read(
                "get_table_req", {1: Value(STRUCT, request)}, missing=NoSuchTable(str(table))
            )
        except NoSuchTable:
            return None
        record = found.get(1) if isinstance(found, dict) else None
        if record is None or record.type != STRUCT or read_name(record.value) != table.name:
            raise RemoteMisbehaved(self._name, problem="another table than the one asked for")
        return cast(Fields, record.value)

    async def _load_database(self, namespace: Namespace) -> Fields:
        missing = NoSuchNamespace(namespace_text(namespace))
        if len(namespace) != 1:
            raise missing
        found = await self._read("get_database", {1: text(namespace[0])}, missing=missing)
        if not isinstance(found, dict) or read_database_name(found) != namespace[0]:
            raise RemoteMisbehaved(self._name, problem="another database than the one asked for")
        return found

    async def _read(self, method: str, arguments: Fields, missing: CynosureError | None = None) -> Any:
        try:
            return await self._client.read(method, arguments)
        except HiveRefused as refused:
            if missing is not None and refused.kind in ("NoSuchObject", "UnknownDB"):
                raise missing from refused
            raise refusal(self._name, refused) from refused

    async def _change(
        self,
        method: str,
        arguments: Fields,
        *,
        taken: CynosureError | None = None,
        missing: CynosureError | None = None,
        invalid: CynosureError | None = None,
    ) -> None:
        """A change; the metastore's errors become those named here, where there is one."""
        known = {"AlreadyExists": taken, "NoSuchObject": missing, "InvalidOperation": invalid}
        try:
            await self._client.change(method, arguments)
        except HiveRefused as refused:
            error = known.get(refused.kind)
            if error is not None:
                raise error from refused
            if refused.kind in ("Meta", "Application"):
                raise unknown(self._name, refused.kind, status=refused.kind) from refused
            raise RemoteRefused(self._name, status=_REFUSED) from refused

    def _names(self, found: Any) -> list[str]:
        if not isinstance(found, Values) or not all(isinstance(each, str) for each in found.items):
            raise RemoteMisbehaved(self._name, problem="no list of names")
        return list(found.items)


def _moved() -> RemoteConflict:
    return RemoteConflict(
        "The table was changed in the remote catalog meanwhile", fix="Load it and try again."
    )
