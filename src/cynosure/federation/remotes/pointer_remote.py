"""A remote catalog made of one that only keeps pointers, and of the catalog's own storage.

To load is to find the pointer and read its file; to commit is to check and apply the change here, write the
next file and swap the pointer.

A maintainer must not break: files are read and written with the catalog's own storage and nothing else; and a
file that a pointer names, or may yet name, is never deleted.
"""

from collections.abc import Mapping, Sequence

from cynosure.catalog.errors import NoSuchTable, NoSuchView, TableExists
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput, Conflict, CynosureError, OutcomeUnknown
from cynosure.federation.errors import NotOffered, RemoteConflict, RemoteMisbehaved
from cynosure.federation.pointers import Pointer, PointerCatalog
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
from cynosure.federation.remotes.column_types import describe_columns
from cynosure.federation.remotes.metadata_files import MetadataFiles
from cynosure.federation.remotes.settling import Outcome, settle
from cynosure.iceberg.metadata import TableMetadata, with_previous_file
from cynosure.iceberg.requirements import check_requirements
from cynosure.iceberg.updates import apply_updates
from cynosure.iceberg.views import ViewMetadata


class PointerRemote:
    """See `RemoteCatalog`."""

    def __init__(self, pointers: PointerCatalog, catalog: OpenCatalog, *, name: str | None = None) -> None:
        self._pointers = pointers
        self._catalog = catalog
        self._files = MetadataFiles(catalog)
        self._name = name or catalog.entity.name

    @property
    def abilities(self) -> Abilities:
        """See `RemoteCatalog`."""
        return self._pointers.abilities

    async def check(self) -> None:
        """See `RemoteCatalog`."""
        await self._pointers.check()

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await self._pointers.list_namespaces(parent, token=token, size=size)

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        return await self._pointers.load_namespace(namespace)

    async def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str], *, key: str | None = None
    ) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        await self._pointers.create_namespace(namespace, properties)
        try:
            return await self._pointers.load_namespace(namespace)
        except CynosureError:
            # It is made, whatever became of it since; what was asked for is the best answer there is.
            return properties

    async def update_namespace(
        self,
        namespace: Namespace,
        *,
        removals: Sequence[str],
        updates: Mapping[str, str],
        key: str | None = None,
    ) -> None:
        """See `RemoteCatalog`."""
        await self._pointers.update_namespace(namespace, removals=removals, updates=updates)

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._pointers.drop_namespace(namespace)

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await self._pointers.list_tables(namespace, token=token, size=size)

    async def load_table(self, table: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:
        """See `RemoteCatalog`."""
        pointer = await self._pointers.find(table)
        if _is_known(pointer, known):
            return UNCHANGED
        try:
            return _remote_table(await self._files.read(pointer.metadata_location), pointer)
        except BadInput:
            # A table that is committed to meanwhile may lose the file that its pointer named before.
            again = await self._pointers.find(table)
            return _remote_table(await self._read_believed(again), again)

    async def create_table(self, wanted: NewTable, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        if wanted.is_staged:
            await self._require_free(wanted.table)
            return RemoteTable(wanted.metadata, Tag())
        return await self._create(wanted.table, wanted.metadata)

    async def register_table(
        self, table: Identifier, metadata_location: str, *, is_overwrite: bool, key: str | None = None
    ) -> RemoteTable:
        """See `RemoteCatalog`."""
        metadata = await self._files.read(metadata_location)
        wanted, columns = Pointer(metadata_location, location=metadata.location), describe_columns(metadata)
        expected = await self._find(table) if is_overwrite else None
        try:
            if expected is None:
                pointer = await self._pointers.create(table, wanted, columns)
            else:
                pointer = await self._pointers.swap(table, expected, wanted, columns)
        except OutcomeUnknown as error:
            # Not by the log: the file may have been this table's before.
            found = await self._find_quietly(table)
            if found is None or found.metadata_location != metadata_location:
                raise error from error.__cause__
            pointer = found
        return _remote_table(metadata, pointer)

    async def commit_table(self, change: TableCommit, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        base = change.base
        metadata = self._apply(change)
        if base is None:
            try:
                return await self._create(change.table, metadata)
            except TableExists as error:
                raise RemoteConflict("Requirement failed: table already exists") from error
        if metadata is base.metadata:
            return base
        before = base.tag.metadata_location
        if before is None:
            raise RemoteMisbehaved(self._name, problem="a table without a metadata file")
        logged, outdated = with_previous_file(metadata, before, base.metadata.last_updated_ms)
        location = await self._files.write(logged, previous=before)
        wanted = Pointer(location, location=logged.location)
        expected = Pointer(before, version=base.tag.version)
        try:
            pointer = await self._pointers.swap(change.table, expected, wanted, describe_columns(logged))
        except OutcomeUnknown as error:
            await self._settle(change.table, before, location, error)
            pointer = wanted
        except CynosureError:
            self._files.discard(location)
            raise
        self._files.discard_outdated(logged, outdated)
        return _remote_table(logged, pointer)

    async def commit_transaction(self, changes: Sequence[TableCommit], *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        raise NotOffered(self._name, operation="COMMIT_TRANSACTION", fix="Commit to each table by itself.")

    async def drop_table(self, table: Identifier, *, is_purge: bool, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        if is_purge:
            raise NotOffered(
                self._name,
                operation="DROP_TABLE_WITH_PURGE",
                fix="Drop the table without purging it, and delete its files with the engine that owns them.",
            )
        await self._pointers.drop(table)

    async def rename_table(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        await self._pointers.rename(source, target)

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        await self._pointers.load_namespace(namespace)
        return NamesPage(())

    async def load_view(self, view: Identifier, known: Tag | None = None) -> RemoteView | Unchanged:
        """See `RemoteCatalog`."""
        raise NoSuchView(str(view))

    async def create_view(
        self, view: Identifier, metadata: ViewMetadata, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        raise NotOffered(self._name, operation="CREATE_VIEW", fix="Keep views in another catalog.")

    async def register_view(
        self, view: Identifier, metadata_location: str, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        raise NotOffered(self._name, operation="REGISTER_VIEW", fix="Keep views in another catalog.")

    async def commit_view(self, change: ViewCommit, *, key: str | None = None) -> RemoteView:
        """See `RemoteCatalog`."""
        raise NoSuchView(str(change.view))

    async def drop_view(self, view: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        raise NoSuchView(str(view))

    async def rename_view(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        raise NoSuchView(str(source))

    async def close(self) -> None:
        """See `RemoteCatalog`."""
        await self._pointers.close()

    def _apply(self, change: TableCommit) -> TableMetadata:
        base = None if change.base is None else change.base.metadata
        now_ms = self._catalog.shared.persistence.clock.now_us() // 1000
        try:
            check_requirements(base, change.requirements)
            return apply_updates(base, change.updates, now_ms=now_ms, limits=self._catalog.limits)
        except Conflict as error:
            raise RemoteConflict(error.message, fix=error.fix, **error.details) from error

    async def _create(self, table: Identifier, metadata: TableMetadata) -> RemoteTable:
        # Before a file is written: most refusals need no storage.
        await self._require_free(table)
        location = await self._files.write(metadata, previous=None)
        wanted = Pointer(location, location=metadata.location)
        try:
            pointer = await self._pointers.create(table, wanted, describe_columns(metadata))
        except OutcomeUnknown as error:
            await self._settle(table, None, location, error)
            pointer = wanted
        except CynosureError:
            self._files.discard(location)
            raise
        return _remote_table(metadata, pointer)

    async def _settle(
        self, table: Identifier, before: str | None, written: str, error: OutcomeUnknown
    ) -> None:
        """Come back if the pointer is, or was, what was written; else raise what is known."""
        found, metadata = await self._look(table)
        outcome = settle(found, metadata, written=written, before=before)
        if outcome is Outcome.LOST and not self._pointers.abilities.refuses_late_swaps:
            # Ours may still come, and then the table needs its file.
            outcome = Outcome.OPEN
        if outcome is Outcome.LOST:
            self._files.discard(written)
            raise RemoteConflict(
                "The table was changed in the remote catalog meanwhile", fix="Load it and try again."
            ) from error
        if outcome is Outcome.OPEN:
            raise error from error.__cause__

    async def _look(self, table: Identifier) -> tuple[str | None, TableMetadata | None]:
        """The pointer of a table now and what its file says, as far as they can be had."""
        pointer = await self._find_quietly(table)
        if pointer is None:
            return None, None
        try:
            return pointer.metadata_location, await self._files.read(pointer.metadata_location)
        except CynosureError:
            return pointer.metadata_location, None

    async def _find(self, table: Identifier) -> Pointer | None:
        try:
            return await self._pointers.find(table)
        except NoSuchTable:
            return None

    async def _find_quietly(self, table: Identifier) -> Pointer | None:
        """For those who have an error to raise already."""
        try:
            return await self._pointers.find(table)
        except CynosureError:
            return None

    async def _require_free(self, table: Identifier) -> None:
        await self._pointers.load_namespace(table.namespace)
        if await self._find(table) is not None:
            raise TableExists(str(table))

    async def _read_believed(self, pointer: Pointer) -> TableMetadata:
        try:
            return await self._files.read(pointer.metadata_location)
        except BadInput as error:
            raise RemoteMisbehaved(
                self._name, problem="a pointer to a metadata file that is missing or damaged"
            ) from error


def _is_known(pointer: Pointer, known: Tag | None) -> bool:
    """Whether a tag names this version. A tag of our own change has no version of the entry yet."""
    return (
        known is not None
        and known.metadata_location == pointer.metadata_location
        and known.version in (None, pointer.version)
    )


def _remote_table(metadata: TableMetadata, pointer: Pointer) -> RemoteTable:
    return RemoteTable(metadata, Tag(metadata_location=pointer.metadata_location, version=pointer.version))
