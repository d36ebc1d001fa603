"""A remote catalog in memory, for tests of what is before one: it counts what it is asked, and can be down.

Held to the promises of the port by `remote_kit`, as every other remote.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import structs

from cynosure.catalog.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.common.errors import BadInput
from cynosure.federation.errors import RemoteConflict, RemoteUnavailable
from cynosure.federation.remote import (
    UNCHANGED,
    Abilities,
    NamesPage,
    NewTable,
    RemoteTable,
    RemoteView,
    TableCommit,
    Tag,
    Unchanged,
    ViewCommit,
)
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import check_requirements
from cynosure.iceberg.updates import apply_updates
from cynosure.iceberg.views import ViewMetadata, apply_view_updates
from cynosure.iceberg.views.requirements import check_view_requirements

T = TypeVar("T", RemoteTable, RemoteView)


class MemoryRemote:
    """A remote catalog. What tests may do behind everybody's back: change `tables`, `views`, `namespaces`."""

    def __init__(self, abilities: Abilities | None = None, *, name: str = "memory") -> None:
        self.abilities = abilities or Abilities(
            has_views=True, has_nested_namespaces=True, has_transactions=True, registers_views=True
        )
        self.name = name
        self.namespaces: dict[Namespace, dict[str, str]] = {}
        self.tables: dict[Identifier, RemoteTable] = {}
        self.views: dict[Identifier, RemoteView] = {}
        self.asked: list[str] = []
        """What it was asked, in order."""
        self.is_down = False
        """Whether it does not answer."""
        self.gate: asyncio.Event | None = None
        """Every answer waits for this, if it is set."""
        self.home = ""
        """Where it puts what is given no location."""
        self.files: dict[str, TableMetadata] = {}
        """What it finds in metadata files of tables, by where they are."""
        self.view_files: dict[str, ViewMetadata] = {}
        """The same of views."""
        self._numbers = 0

    def put(self, table: Identifier, metadata: TableMetadata, **more: object) -> RemoteTable:
        """Have this version of a table, as if somebody had committed it here."""
        for depth in range(1, len(table.namespace) + 1):
            self.namespaces.setdefault(table.namespace[:depth], {})
        tag = Tag(metadata_location=self._new_file(metadata.location))
        self.files[tag.metadata_location or ""] = metadata
        found = self.tables[table] = RemoteTable(metadata, tag, **more)  # type: ignore[arg-type]
        return found

    def put_view(self, view: Identifier, metadata: ViewMetadata) -> RemoteView:
        """Have this version of a view."""
        self.namespaces.setdefault(view.namespace, {})
        tag = Tag(metadata_location=self._new_file(metadata.location))
        self.view_files[tag.metadata_location or ""] = metadata
        found = self.views[view] = RemoteView(metadata, tag)
        return found

    def _new_file(self, location: str) -> str:
        self._numbers += 1
        return f"{location}/metadata/{self._numbers:05}-memory.metadata.json"

    async def _ask(self, what: str) -> None:
        self.asked.append(what)
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down:
            raise RemoteUnavailable(self.name, reason="it is down")

    async def check(self) -> None:
        """See `RemoteCatalog`."""
        await self._ask("check")

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        await self._ask("list-namespaces")
        if parent:
            self._require_namespace(parent)
        depth = len(parent)
        return _page(
            (each[-1] for each in self.namespaces if len(each) == depth + 1 and each[:depth] == parent),
            token,
            size,
        )

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        await self._ask("load-namespace")
        return dict(self._require_namespace(namespace))

    async def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str], *, key: str | None = None
    ) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        await self._ask("create-namespace")
        if namespace in self.namespaces:
            raise NamespaceExists(namespace_text(namespace))
        if namespace[:-1]:
            self._require_namespace(namespace[:-1])
        self.namespaces[namespace] = dict(properties)
        return dict(properties)

    async def update_namespace(
        self,
        namespace: Namespace,
        *,
        removals: Sequence[str],
        updates: Mapping[str, str],
        key: str | None = None,
    ) -> None:
        """See `RemoteCatalog`."""
        await self._ask("update-namespace")
        properties = self._require_namespace(namespace)
        properties.update(updates)
        for name in removals:
            properties.pop(name, None)

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("drop-namespace")
        self._require_namespace(namespace)
        held = [*self.tables, *self.views]
        below = [each for each in self.namespaces if each[:-1] == namespace]
        if below or any(each.namespace == namespace for each in held):
            raise NamespaceNotEmpty(namespace_text(namespace))
        del self.namespaces[namespace]

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        await self._ask("list-tables")
        self._require_namespace(namespace)
        return _page((each.name for each in self.tables if each.namespace == namespace), token, size)

    async def load_table(self, table: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:
        """See `RemoteCatalog`."""
        await self._ask("load-table")
        found = self._require_table(table)
        return UNCHANGED if known is not None and known == found.tag else found

    async def create_table(self, wanted: NewTable, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        await self._ask("create-table")
        self._require_free(wanted.table)
        if wanted.is_staged:
            return RemoteTable(wanted.metadata, Tag())
        return self.put(wanted.table, wanted.metadata)

    async def register_table(
        self, table: Identifier, metadata_location: str, *, is_overwrite: bool, key: str | None = None
    ) -> RemoteTable:
        """See `RemoteCatalog`."""
        await self._ask("register-table")
        if not is_overwrite:
            self._require_free(table)
        metadata = self.files.get(metadata_location)
        if metadata is None:
            raise BadInput("There is no such file", field="metadata-location", fix="Name one.")
        found = self.tables[table] = RemoteTable(metadata, Tag(metadata_location=metadata_location))
        return found

    async def commit_table(self, change: TableCommit, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        await self._ask("commit-table")
        return self.put(change.table, self._changed(change))

    async def commit_transaction(self, changes: Sequence[TableCommit], *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("commit-transaction")
        changed = [(each.table, self._changed(each)) for each in changes]
        for table, metadata in changed:
            self.put(table, metadata)

    async def drop_table(self, table: Identifier, *, is_purge: bool, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("drop-table")
        self._require_table(table)
        del self.tables[table]

    async def rename_table(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("rename-table")
        found = self._require_table(source)
        self._require_free(target)
        self.tables[target] = found
        del self.tables[source]

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        await self._ask("list-views")
        self._require_namespace(namespace)
        return _page((each.name for each in self.views if each.namespace == namespace), token, size)

    async def load_view(self, view: Identifier, known: Tag | None = None) -> RemoteView | Unchanged:
        """See `RemoteCatalog`."""
        await self._ask("load-view")
        found = self._require_view(view)
        return UNCHANGED if known is not None and known == found.tag else found

    async def create_view(
        self, view: Identifier, metadata: ViewMetadata, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        await self._ask("create-view")
        self._require_free(view)
        location = metadata.location or "/".join((self.home, *view.namespace, view.name))
        return self.put_view(view, structs.replace(metadata, location=location))

    async def register_view(
        self, view: Identifier, metadata_location: str, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        await self._ask("register-view")
        self._require_free(view)
        metadata = self.view_files.get(metadata_location)
        if metadata is None:
            raise BadInput("There is no such file", field="metadata-location", fix="Name one.")
        found = self.views[view] = RemoteView(metadata, Tag(metadata_location=metadata_location))
        return found

    async def commit_view(self, change: ViewCommit, *, key: str | None = None) -> RemoteView:
        """See `RemoteCatalog`."""
        await self._ask("commit-view")
        base = self._require_view(change.view)
        try:
            check_view_requirements(base.metadata, change.requirements)
        except RequirementFailed as error:
            raise RemoteConflict("A requirement does not hold") from error
        self._numbers += 1
        return self.put_view(
            change.view, apply_view_updates(base.metadata, change.updates, now_ms=self._numbers)
        )

    async def drop_view(self, view: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("drop-view")
        self._require_view(view)
        del self.views[view]

    async def rename_view(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._ask("rename-view")
        found = self._require_view(source)
        self._require_free(target)
        self.views[target] = found
        del self.views[source]

    async def close(self) -> None:
        """See `RemoteCatalog`."""

    def _changed(self, change: TableCommit) -> TableMetadata:
        base = self.tables.get(change.table)
        if base is None and change.base is not None:
            raise NoSuchTable(str(change.table))
        metadata = None if base is None else base.metadata
        try:
            check_requirements(metadata, change.requirements)
        except RequirementFailed as error:
            raise RemoteConflict("A requirement does not hold") from error
        now_ms = (0 if metadata is None else metadata.last_updated_ms) + 1
        return apply_updates(metadata, change.updates, now_ms=now_ms)

    def _require_namespace(self, namespace: Namespace) -> dict[str, str]:
        if namespace not in self.namespaces:
            raise NoSuchNamespace(namespace_text(namespace))
        return self.namespaces[namespace]

    def _require_table(self, table: Identifier) -> RemoteTable:
        if table not in self.tables:
            raise NoSuchTable(str(table))
        return self.tables[table]

    def _require_view(self, view: Identifier) -> RemoteView:
        if view not in self.views:
            raise NoSuchView(str(view))
        return self.views[view]

    def _require_free(self, name: Identifier) -> None:
        self._require_namespace(name.namespace)
        if name in self.tables:
            raise TableExists(str(name))
        if name in self.views:
            raise ViewExists(str(name))


def _page(names: Iterable[str], token: str | None, size: int) -> NamesPage:
    found = sorted(names)
    start = 0 if token is None else int(token)
    end = start + size
    return NamesPage(found[start:end], str(end) if end < len(found) else None)
