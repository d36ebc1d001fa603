"""The operations that change a catalog's contents, as one port: by the store, or by another catalog first.

`NATIVE_WRITES` are the operations of `operations/`. A federated catalog has others (`cynosure.federation`),
with the same parameters, answers and errors, so that whoever calls them need not know which.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from cynosure.auth.caller import Caller
from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.view_state import ViewState
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.register_view import register_view
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.rename_view import rename_view
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    PropertiesUpdated,
    update_namespace_properties,
)
from cynosure.catalog.table_changes import TableChange


class Writes(Protocol):
    """What changes the contents of a catalog. Each is described where it is done, in `operations/`."""

    async def create_namespace(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, properties: Mapping[str, str], /
    ) -> NamespaceEntity:
        """See the operation."""
        ...

    async def update_namespace_properties(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, wanted: PropertiesUpdate, /
    ) -> PropertiesUpdated:
        """See the operation."""
        ...

    async def drop_namespace(self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, /) -> None:
        """See the operation."""
        ...

    async def create_table(
        self,
        catalog: OpenCatalog,
        caller: Caller,
        wanted: CreateTable,
        /,
        *,
        delegation: Delegation = NOT_ASKED,
    ) -> CreatedTable:
        """See the operation."""
        ...

    async def register_table(
        self,
        catalog: OpenCatalog,
        caller: Caller,
        table: Identifier,
        metadata_location: str,
        /,
        *,
        is_overwrite: bool = False,
        delegation: Delegation = NOT_ASKED,
    ) -> CreatedTable:
        """See the operation."""
        ...

    async def commit_table(self, catalog: OpenCatalog, caller: Caller, change: TableChange, /) -> TableAnswer:
        """See the operation."""
        ...

    async def commit_transaction(
        self, catalog: OpenCatalog, caller: Caller, changes: Sequence[TableChange], /
    ) -> None:
        """See the operation."""
        ...

    async def drop_table(
        self,
        catalog: OpenCatalog,
        caller: Caller,
        table: Identifier,
        /,
        *,
        is_purge_requested: bool = False,
    ) -> None:
        """See the operation."""
        ...

    async def rename_table(
        self, catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier, /
    ) -> None:
        """See the operation."""
        ...

    async def unregister_table(
        self, catalog: OpenCatalog, caller: Caller, table: Identifier, /
    ) -> TableAnswer:
        """See the operation."""
        ...

    async def create_view(self, catalog: OpenCatalog, caller: Caller, wanted: CreateView, /) -> ViewState:
        """See the operation."""
        ...

    async def replace_view(self, catalog: OpenCatalog, caller: Caller, change: ViewChange, /) -> ViewState:
        """See the operation."""
        ...

    async def drop_view(self, catalog: OpenCatalog, caller: Caller, name: Identifier, /) -> None:
        """See the operation."""
        ...

    async def rename_view(
        self, catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier, /
    ) -> None:
        """See the operation."""
        ...

    async def register_view(
        self, catalog: OpenCatalog, caller: Caller, name: Identifier, metadata_location: str, /
    ) -> ViewState:
        """See the operation."""
        ...


class _Native:
    """Each is the operation itself: nothing stands between a native catalog and it."""

    create_namespace = staticmethod(create_namespace)
    update_namespace_properties = staticmethod(update_namespace_properties)
    drop_namespace = staticmethod(drop_namespace)
    create_table = staticmethod(create_table)
    register_table = staticmethod(register_table)
    commit_table = staticmethod(commit_table)
    commit_transaction = staticmethod(commit_transaction)
    drop_table = staticmethod(drop_table)
    rename_table = staticmethod(rename_table)
    unregister_table = staticmethod(unregister_table)
    create_view = staticmethod(create_view)
    replace_view = staticmethod(replace_view)
    drop_view = staticmethod(drop_view)
    rename_view = staticmethod(rename_view)
    register_view = staticmethod(register_view)


NATIVE_WRITES: Final[Writes] = _Native()
"""Of catalogs that own their tables."""
