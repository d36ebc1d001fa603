"""How the remote behind a federated catalog is reached: the connection of an external catalog's definition.

It is stored with the catalog, so fields only ever get added, with defaults. Secrets are kept in it,
sealed by the keyring for the catalog they belong to, as the keys of storages are
(`storage.config`): sealed secrets that are copied into another catalog's definition do not open there.

A maintainer must not break: nothing here, nor in what is built from it, falls back to environment variables,
instance metadata or files in a home directory when secrets are missing; and secrets never leave this process
but to the remote they are for.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from cynosure.common.errors import CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.config import Owner

ConnectionType = Literal["ICEBERG_REST", "HIVE", "GLUE", "SQL"]
_PURPOSE: Final = "connection"


class OAuth(
    Struct, frozen=True, tag_field="authenticationType", tag="OAUTH", rename="camel", omit_defaults=True
):
    """A token for a client id and secret, renewed before it ends. Secret: `client_secret`."""

    client_id: str
    token_uri: str | None = None
    """Left out: the remote's own `v1/oauth/tokens`."""
    scopes: tuple[str, ...] = ()


class Bearer(
    Struct, frozen=True, tag_field="authenticationType", tag="BEARER", rename="camel", omit_defaults=True
):
    """A token that an operator sets. Secret: `bearer_token`."""


class SigV4(
    Struct, frozen=True, tag_field="authenticationType", tag="SIGV4", rename="camel", omit_defaults=True
):
    """Requests signed as Amazon does it. Secrets: `access_key_id`, `secret_access_key`."""

    signing_region: str
    role_arn: str | None = None
    """Assumed with the keys before anything is signed. Left out: the keys sign themselves."""
    role_session_name: str | None = None
    external_id: str | None = None
    signing_name: str = "execute-api"
    session_policy: str | None = None
    sts_endpoint: str | None = None
    """URL of the token service. Left out: Amazon's of the region."""


class Password(
    Struct, frozen=True, tag_field="authenticationType", tag="PASSWORD", rename="camel", omit_defaults=True
):
    """A user of a database. Secret: `password`. Only for `SQL`."""

    user: str


class Implicit(
    Struct, frozen=True, tag_field="authenticationType", tag="IMPLICIT", rename="camel", omit_defaults=True
):
    """Nothing is proved to the remote. Refused unless `federation.allow_implicit`; never the environment."""


Authentication = OAuth | Bearer | SigV4 | Password | Implicit


class Connection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A remote catalog, and how it is reached."""

    type: ConnectionType
    uri: str
    authentication: Authentication
    remote_name: str | None = None
    """The catalog there: `remoteCatalogName` of a REST remote, catalog id of Glue, catalog name of SQL."""
    warehouse: str | None = None
    """Where a remote that only keeps pointers has its tables: the catalog's base location, said again."""
    properties: dict[str, str] = {}
    """Headers that a REST remote is sent: `header.NAME`."""
    sealed_secrets: bytes | None = None
    """Made by `seal_secrets`."""


class ConnectionSecrets(Struct, frozen=True):
    """Secrets in clear, for as long as a client of the remote needs them: those of its authentication."""

    client_secret: Secret | None = None
    bearer_token: Secret | None = None
    access_key_id: Secret | None = None
    secret_access_key: Secret | None = None
    password: Secret | None = None


def seal_secrets(secrets: ConnectionSecrets, keyring: Keyring, owner: Owner) -> bytes:
    """Secrets as they are stored."""
    clear = {
        name: value.reveal()
        for name in ConnectionSecrets.__struct_fields__
        if (value := getattr(secrets, name)) is not None
    }
    return keyring.encrypt(msgspec.json.encode(clear), (_PURPOSE, *owner))


def rewrap_secrets(sealed: bytes, keyring: Keyring, owner: Owner) -> bytes:
    """The same secrets under the primary master key."""
    return keyring.rewrap(sealed, (_PURPOSE, *owner))


def open_secrets(sealed: bytes | None, keyring: Keyring, owner: Owner) -> ConnectionSecrets:
    """Secrets in clear; none when none were set."""
    if sealed is None:
        return ConnectionSecrets()
    try:
        clear = msgspec.json.decode(keyring.decrypt(sealed, (_PURPOSE, *owner)), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise CorruptObject("The secrets of a connection are damaged", catalog=owner[-1]) from error
    return ConnectionSecrets(**{name: Secret(value) for name, value in clear.items()})
