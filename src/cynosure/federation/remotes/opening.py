"""The client of a catalog's remote, by the kind of its connection.

A maintainer must not break: nothing is asked of a remote here, and no socket is opened; and only the kind
that is used is imported, so that nobody pays, or needs packages, for the others.
"""

from cynosure.catalog.connection import Connection, ConnectionSecrets
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.clock import Clock
from cynosure.federation.circles import mark_of
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.policy import policy_of
from cynosure.federation.remote import RemoteCatalog
from cynosure.federation.settings import FederationSettings


def open_remote(
    catalog: OpenCatalog, secrets: ConnectionSecrets, settings: FederationSettings, clock: Clock
) -> RemoteCatalog:
    """A client of the remote behind a federated catalog."""
    connection = require_connection(catalog)
    name = catalog.entity.name
    if connection.type == "ICEBERG_REST":
        from cynosure.federation.remotes.rest import open_rest  # noqa: PLC0415

        asks = policy_of(catalog, settings).credentials == "remote"
        return open_rest(
            connection, secrets, settings, clock, name, ask_credentials=asks, mark=mark_of(catalog)
        )
    from cynosure.federation.remotes.pointer_remote import PointerRemote  # noqa: PLC0415

    return PointerRemote(_open_pointers(connection, secrets, settings, clock, name), catalog, name=name)


def require_connection(catalog: OpenCatalog) -> Connection:
    """How the remote of a catalog is reached. Only federated catalogs are asked."""
    connection = catalog.entity.connection
    if connection is None:
        raise RemoteMisbehaved(catalog.entity.name, problem="there is no remote behind this catalog")
    return connection


def _open_pointers(
    connection: Connection, secrets: ConnectionSecrets, settings: FederationSettings, clock: Clock, name: str
) -> PointerCatalog:
    if connection.type == "HIVE":
        from cynosure.federation.remotes.hive import open_hive  # noqa: PLC0415

        return open_hive(connection, secrets, settings, clock, name)
    if connection.type == "GLUE":
        from cynosure.federation.remotes.glue import open_glue  # noqa: PLC0415

        return open_glue(connection, secrets, settings, clock, name)
    from cynosure.federation.remotes.sql import open_sql  # noqa: PLC0415

    return open_sql(connection, secrets, settings, clock, name)
