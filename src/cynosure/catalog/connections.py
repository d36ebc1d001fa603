"""Connections as they come to be stored: checked, and their secrets sealed for the catalog.

A maintainer must not break: stored secrets are used only where they were given for. Whoever changes what the
server speaks to, or as whom, gives them again; else the right to change a catalog would be the right to have
its secrets sent to another host.
"""

from collections.abc import Callable

from msgspec import structs

from cynosure.catalog.check_connection import (
    FIELD,
    SECRETS_OF,
    ConnectionRules,
    check_connection,
    check_secrets,
)
from cynosure.catalog.connection import Connection, ConnectionSecrets, rewrap_secrets, seal_secrets
from cynosure.common.errors import BadInput
from cynosure.common.keyring import Keyring
from cynosure.storage.config import Owner


class Connections:
    """What may be connected to, and the keyring for it."""

    def __init__(self, keyring: Callable[[], Keyring], rules: ConnectionRules) -> None:
        self._keyring = keyring
        """Asked only where secrets are sealed: looking at catalogs must not make a key file."""
        self._rules = rules

    def seal(self, wanted: Connection, secrets: ConnectionSecrets | None, owner: Owner) -> Connection:
        """The connection of a new catalog. `BadInput` when it cannot be made, or secrets are missing."""
        check_connection(wanted, self._rules)
        secrets = secrets or ConnectionSecrets()
        check_secrets(wanted.authentication, secrets)
        if not SECRETS_OF[type(wanted.authentication)]:
            return structs.replace(wanted, sealed_secrets=None)
        return structs.replace(wanted, sealed_secrets=seal_secrets(secrets, self._keyring(), owner))

    def change(
        self, old: Connection | None, wanted: Connection, secrets: ConnectionSecrets | None, owner: Owner
    ) -> Connection:
        """The connection that replaces another one; its secrets stay when none are given."""
        if old is None:
            raise BadInput(
                "A connection cannot be given to a catalog that was created without one",
                field=FIELD,
                fix="Create another EXTERNAL catalog with this connection.",
            )
        if old.type != wanted.type:
            raise BadInput(
                "The kind of a remote cannot be changed",
                field=f"{FIELD}.connectionType",
                fix="Create another catalog.",
            )
        if secrets is not None:
            return self.seal(wanted, secrets, owner)
        check_connection(wanted, self._rules)
        if moved := _list_moved(old, wanted):
            if not SECRETS_OF[type(wanted.authentication)]:
                return structs.replace(wanted, sealed_secrets=None)
            raise BadInput(
                "Stored secrets are not used with another address or as somebody else",
                field=f"{FIELD}.authenticationParameters",
                fix="Give the secrets together with what changes.",
                changed=", ".join(moved),
            )
        return structs.replace(wanted, sealed_secrets=old.sealed_secrets)

    def rewrap(self, connection: Connection, owner: Owner) -> Connection:
        """A connection with its secrets, if it has any, under the primary master key."""
        if connection.sealed_secrets is None:
            return connection
        rewrapped = rewrap_secrets(connection.sealed_secrets, self._keyring(), owner)
        return structs.replace(connection, sealed_secrets=rewrapped)


def _list_moved(old: Connection, new: Connection) -> list[str]:
    """What the server would speak to, or as whom, that is not as it was, by the fields that say it."""
    pairs = {
        "uri": (old.uri, new.uri),
        "authenticationParameters": (old.authentication, new.authentication),
        # A client may read an address or a header from them.
        "properties": (old.properties, new.properties),
    }
    return [name for name, (before, after) in pairs.items() if before != after]
