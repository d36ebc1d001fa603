"""How the remote of a federated catalog is: asked now, and remembered of earlier requests of this process."""

from typing import Protocol

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import CynosureError
from cynosure.federation.diagnosing import Advice, advise
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.guard.health import Health
from cynosure.federation.reconcile import require_federated
from cynosure.federation.remotes.opening import require_connection


class Remotes(Protocol):
    """Who has the clients of remotes: `federation.clients.Clients`."""

    def get(self, catalog: OpenCatalog) -> GuardedRemote:
        """The client of a catalog's remote."""
        ...


class RemoteStatus(Struct, frozen=True):
    """A remote, as this process sees it."""

    catalog: str
    connection_type: str
    uri: str
    is_reachable: bool
    problem: str | None
    """The kind of error when it is not, never the remote's words."""
    advice: Advice | None
    """What is wrong then, and what to do about it."""
    health: Health
    mark: str
    """What metrics call the catalog."""


async def load_remote_status(
    directory: Directory, remotes: Remotes, caller: Caller, name: str
) -> RemoteStatus:
    """Ask the remote of a catalog something cheap; one that does not answer is an answer too."""
    await directory.authorize_on(await directory.read(caller.realm), caller, ops.LOAD_CATALOG, name)
    catalog = await directory.open(caller.realm, name)
    require_federated(catalog)
    connection, client = require_connection(catalog), remotes.get(catalog)
    problem: str | None = None
    advice: Advice | None = None
    try:
        await client.check()
    except CynosureError as error:
        problem, advice = type(error).__name__, advise(error, connection)
    is_well, health = problem is None, client.health()
    return RemoteStatus(name, connection.type, connection.uri, is_well, problem, advice, health, client.mark)
