"""Operator commands on catalogs that no client may ask for.

`catalogs.reopen` opens one again that was half dropped; `catalogs.rewrap` puts the sealed keys and secrets of
all of them under the primary master key.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.caller import Caller, operator_caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchCatalog
from cynosure.catalog.operations.drop_catalog import reopen_catalog
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.update_catalog import rewrap_catalog
from cynosure.common.progress import Progress, Report
from cynosure.persistence.references import DEFAULT_REALM, REALMS
from cynosure.persistence.scopes import list_realms
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


class RewrapParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `catalogs.rewrap`: all realms."""

    dry_run: bool = False


class Rewrapped(Struct, frozen=True):
    """What `catalogs.rewrap` did, or would do."""

    catalogs: list[str]
    """`REALM/NAME` of those whose keys or secrets were under another master key."""
    looked_at: int


def catalog_commands(open_directory: OpenDirectory) -> list[OperatorCommand[Any]]:
    """The commands, on the catalogs that `open_directory` gives."""

    async def reopen(params: ReopenParams, report: Report) -> Reopened:
        async with open_directory(False) as directory:
            await reopen_catalog(directory, params.operator, params.name)
            entity = await load_catalog(directory, params.operator, params.name)
            return Reopened(entity.name, entity.version)

    async def rewrap(params: RewrapParams, report: Report) -> Rewrapped:
        async with open_directory(False) as directory:
            return await _rewrap_all(directory, report, is_rehearsal=params.dry_run)

    return [
        OperatorCommand(
            "catalogs.reopen", ReopenParams, reopen, "Open a catalog again that was half dropped"
        ),
        OperatorCommand(
            "catalogs.rewrap", RewrapParams, rewrap, "Protect keys of all catalogs by the primary master key"
        ),
    ]


async def _rewrap_all(directory: Directory, report: Report, *, is_rehearsal: bool) -> Rewrapped:
    found: list[str] = []
    looked_at = 0
    for realm in await list_realms(directory.shared.persistence.committer(REALMS)):
        caller = operator_caller(realm=realm)
        catalogs = (await list_catalogs(directory, caller)).catalogs
        for done, each in enumerate(catalogs):
            report(Progress(f"Rewrapping {realm}", done=done, total=len(catalogs)))
            # One that goes meanwhile needs no keys any more.
            with suppress(NoSuchCatalog):
                if await rewrap_catalog(directory, caller, each.name, each.id, is_rehearsal=is_rehearsal):
                    found.append(f"{realm}/{each.name}")
        looked_at += len(catalogs)
    return Rewrapped(found, looked_at)
