"""The operations that change a federated catalog: those of any catalog, each asked of its remote first.

How each goes is in `writes/`; what is not passed on to remotes at all is refused by the native operations
(`catalog.facade`).

A maintainer must not break: these stand for the native operations, so parameters, answers and errors are the
same (`catalog.writing.Writes`).
"""

from collections.abc import Mapping, Sequence

from cynosure.auth.caller import Caller
from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.view_state import ViewState
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable
from cynosure.catalog.operations.create_view import CreateView
from cynosure.catalog.operations.replace_view import ViewChange
from cynosure.catalog.operations.update_namespace_properties import PropertiesUpdate, PropertiesUpdated
from cynosure.catalog.table_changes import TableChange
from cynosure.federation.seeing import Federation
from cynosure.federation.writes.commit_table import commit_table
from cynosure.federation.writes.commit_transaction import commit_transaction
from cynosure.federation.writes.create_namespace import create_namespace
from cynosure.federation.writes.create_table import create_table
from cynosure.federation.writes.create_view import create_view
from cynosure.federation.writes.drop import drop_table, drop_view, unregister_table
from cynosure.federation.writes.drop_namespace import drop_namespace
from cynosure.federation.writes.register_table import register_table
from cynosure.federation.writes.register_view import register_view
from cynosure.federation.writes.rename import rename_table, rename_view
from cynosure.federation.writes.replace_view import replace_view
from cynosure.federation.writes.update_namespace_properties import update_namespace_properties
from cynosure.federation.writes.write import Scene


class FederatedOperations:
    """Each is described where it is done natively, in `catalog/operations/`."""

    __slots__ = ("_federation",)

    def __init__(self, federation: Federation) -> None:
        self._federation = federation

    async def create_namespace(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, properties: Mapping[str, str]
    ) -> NamespaceEntity:
        """See the operation."""
        return await create_namespace(self._scene(catalog, caller), namespace, properties)

    async def update_namespace_properties(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, wanted: PropertiesUpdate
    ) -> PropertiesUpdated:
        """See the operation."""
        return await update_namespace_properties(self._scene(catalog, caller), namespace, wanted)

    async def drop_namespace(self, catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
        """See the operation."""
        await drop_namespace(self._scene(catalog, caller), namespace)

    async def create_table(
        self, catalog: OpenCatalog, caller: Caller, wanted: CreateTable, *, delegation: Delegation = NOT_ASKED
    ) -> CreatedTable:
        """See the operation."""
        return await create_table(self._scene(catalog, caller), wanted, delegation=delegation)

    async def register_table(
        self,
        catalog: OpenCatalog,
        caller: Caller,
        table: Identifier,
        metadata_location: str,
        *,
        is_overwrite: bool = False,
        delegation: Delegation = NOT_ASKED,
    ) -> CreatedTable:
        """See the operation."""
        scene = self._scene(catalog, caller)
        return await register_table(
            scene, table, metadata_location, is_overwrite=is_overwrite, delegation=delegation
        )

    async def commit_table(self, catalog: OpenCatalog, caller: Caller, change: TableChange) -> TableAnswer:
        """See the operation."""
        return await commit_table(self._scene(catalog, caller), change)

    async def commit_transaction(
        self, catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange]
    ) -> None:
        """See the operation."""
        await commit_transaction(self._scene(catalog, caller), changes)

    async def drop_table(
        self, catalog: OpenCatalog, caller: Caller, table: Identifier, *, is_purge_requested: bool = False
    ) -> None:
        """See the operation."""
        await drop_table(self._scene(catalog, caller), table, is_purge_requested=is_purge_requested)

    async def rename_table(
        self, catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier
    ) -> None:
        """See the operation."""
        await rename_table(self._scene(catalog, caller), source, destination)

    async def unregister_table(self, catalog: OpenCatalog, caller: Caller, table: Identifier) -> TableAnswer:
        """See the operation."""
        return await unregister_table(self._scene(catalog, caller), table)

    async def create_view(self, catalog: OpenCatalog, caller: Caller, wanted: CreateView) -> ViewState:
        """See the operation."""
        return await create_view(self._scene(catalog, caller), wanted)

    async def replace_view(self, catalog: OpenCatalog, caller: Caller, change: ViewChange) -> ViewState:
        """See the operation."""
        return await replace_view(self._scene(catalog, caller), change)

    async def drop_view(self, catalog: OpenCatalog, caller: Caller, name: Identifier) -> None:
        """See the operation."""
        await drop_view(self._scene(catalog, caller), name)

    async def rename_view(
        self, catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier
    ) -> None:
        """See the operation."""
        await rename_view(self._scene(catalog, caller), source, destination)

    async def register_view(
        self, catalog: OpenCatalog, caller: Caller, name: Identifier, metadata_location: str
    ) -> ViewState:
        """See the operation."""
        return await register_view(self._scene(catalog, caller), name, metadata_location)

    def _scene(self, catalog: OpenCatalog, caller: Caller) -> Scene:
        federation = self._federation
        return Scene(catalog.passing_on(), caller, federation.clients.get(catalog), federation)
