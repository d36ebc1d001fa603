"""The client of a SQL catalog, which must be refused in plain words where the driver is not installed."""

from cynosure.catalog.connection import Connection, ConnectionSecrets
from cynosure.common.clock import Clock
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remotes.extras import require_extras
from cynosure.federation.settings import FederationSettings


def open_sql(
    connection: Connection,
    secrets: ConnectionSecrets,
    settings: FederationSettings,
    clock: Clock,
    name: str,
) -> PointerCatalog:
    """A client of the catalog in the database that a connection names. Opens no socket yet."""
    require_extras(connection.type)
    from cynosure.federation.remotes.sql.database import Database  # noqa: PLC0415 - needs the driver
    from cynosure.federation.remotes.sql.pointers import SqlPointers  # noqa: PLC0415 - the same

    return SqlPointers(Database(connection, secrets, settings, name), connection.remote_name or name, name)
