"""The operator command on catalogs that no client may ask for: opening one again that was half dropped.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.caller import Caller, operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.drop_catalog import reopen_catalog
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.common.progress import Report
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId

OpenDirectory = Callable[[bool], AbstractAsyncContextManager[Directory]]
"""Opens the catalogs of a store, or hands out the open ones. The argument: initialise it if it is empty."""


class InRealm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of commands on a catalog, which is in some realm."""

    realm: str = DEFAULT_REALM

    @property
    def operator(self) -> Caller:
        """Who runs the command."""
        return operator_caller(realm=RealmId(self.realm))


class ReopenParams(InRealm, frozen=True):
    """For `catalogs.reopen`."""

    name: str


class Reopened(Struct, frozen=True):
    """A catalog that is open."""

    name: str
    version: int


def catalog_commands(open_directory: OpenDirectory) -> list[OperatorCommand[Any]]:
    """The commands, on the catalogs that `open_directory` gives."""

    async def reopen(params: ReopenParams, report: Report) -> Reopened:
        async with open_directory(False) as directory:
            await reopen_catalog(directory, params.operator, params.name)
            entity = await load_catalog(directory, params.operator, params.name)
            return Reopened(entity.name, entity.version)

    return [
        OperatorCommand("catalogs.reopen", ReopenParams, reopen, "Open a catalog again that was half dropped")
    ]
