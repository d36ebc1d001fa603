"""The catalogs that handlers work on: our own, and those behind which there is another one.

Must not break: our own catalogs pay one test of an attribute for federation, and nothing else.
"""

from collections.abc import Mapping

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import InvalidName
from cynosure.catalog.names import Identifier, Namespace, check_name
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.writing import NATIVE_WRITES, Writes
from cynosure.common.errors import Unavailable
from cynosure.federation.circles import require_no_circle
from cynosure.federation.operations import FederatedOperations
from cynosure.federation.seeing import Federation


class Catalogs:
    """The catalogs of a process, and what it asks the remotes of some of them with."""

    __slots__ = ("_federated", "_federation", "directory")

    def __init__(self, directory: Directory, federation: Federation | None = None) -> None:
        self.directory = directory
        self._federation = federation
        self._federated = None if federation is None else FederatedOperations(federation)

    @property
    def federation(self) -> Federation:
        """What asks remotes; `Unavailable` in a process that does not."""
        if self._federation is None:
            raise _no_federation()
        return self._federation

    async def open_for(self, caller: Caller, name: str, params: Mapping[str, str]) -> OpenCatalog:
        """The catalog of this name. What the path names in it is as the remote has it, if there is one."""
        catalog = await self.directory.open_for(caller, name)
        if not catalog.is_federated:
            return catalog
        require_no_circle(catalog)
        await self.federation.see(catalog, caller, params)
        return self.federation.giving(catalog)

    async def open_unseen(self, caller: Caller, name: str) -> OpenCatalog:
        """The catalog of this name, for operations that ask the remote themselves."""
        catalog = await self.directory.open_for(caller, name)
        if not catalog.is_federated:
            return catalog
        require_no_circle(catalog)
        return self.federation.giving(catalog)

    def operations_of(self, catalog: OpenCatalog) -> Writes:
        """What changes the contents of this catalog: its remote first, if there is one."""
        if not catalog.is_federated:
            return NATIVE_WRITES
        if self._federated is None:
            raise _no_federation()
        return self._federated

    async def see(
        self, catalog: OpenCatalog, caller: Caller, namespace: Namespace, *, table: str = "", view: str = ""
    ) -> None:
        """See what a body or query names: a table, a view, else a namespace; nothing for the root."""
        if not catalog.is_federated or not namespace or not _can_be(*namespace, *filter(None, (table, view))):
            return
        federation = self.federation
        if table:
            await federation.see_table(catalog, caller, Identifier(namespace, table))
        elif view:
            await federation.see_view(catalog, caller, Identifier(namespace, view))
        else:
            await federation.see_namespace(catalog, caller, namespace)


def _no_federation() -> Unavailable:
    return Unavailable(
        "This process does not ask remote catalogs", fix="Ask a server: 'cynosure serve' starts one."
    )


def _can_be(*names: str) -> bool:
    """Whether these can be names. What cannot is refused by the operation, which knows where it was said."""
    try:
        for name in names:
            check_name(name, field="name")
    except InvalidName:
        return False
    return True
