"""A client of a REST remote, by its connection.

A maintainer must not break: nothing is asked and no socket is opened here; and what the connection does not
say is not known, wherever else it might be found.
"""

import hashlib
import re
from typing import Final, assert_never

import httpx

from cynosure.catalog.connection import (
    Bearer,
    Connection,
    ConnectionSecrets,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.remotes.aws_keys import open_aws_keys
from cynosure.federation.remotes.rest.addresses import below
from cynosure.federation.remotes.rest.asking import Asker
from cynosure.federation.remotes.rest.identity import Fixed, Identity, Proof, bearer, is_token
from cynosure.federation.remotes.rest.oauth import OAuthIdentity
from cynosure.federation.remotes.rest.remote import RestRemote
from cynosure.federation.remotes.rest.sigv4 import SigV4Identity
from cynosure.federation.remotes.transport import Transport
from cynosure.federation.remotes.urls import check_url
from cynosure.federation.settings import FederationSettings

_HEADER: Final = "header."
"""Properties that begin so are headers of every request, as with Iceberg's own clients."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_NOT_TO_BE_SET: Final = frozenset(
    {"authorization", "host", "connection", "content-length", "content-type", "transfer-encoding", "upgrade"}
)


def open_rest(
    connection: Connection,
    secrets: ConnectionSecrets,
    settings: FederationSettings,
    clock: Clock,
    name: str,
    *,
    ask_credentials: bool = False,
    mark: str = "",
) -> RestRemote:
    """A client for the catalog of this name. `ask_credentials`: whether loads ask for the remote's own.

    `mark`: of that catalog (`federation.circles`).
    """
    base = check_url(connection.uri, settings, name)
    transport = Transport(settings)
    identity = _open_identity(connection, secrets, base, transport, settings, clock, name)
    asker = Asker(
        base, connection.remote_name, _headers(connection), identity, transport, clock, name=name, mark=mark
    )
    return RestRemote(asker, origin=_name_origin(connection), ask_credentials=ask_credentials)


def _name_origin(connection: Connection) -> str:
    named = f"{connection.uri}\n{connection.remote_name or ''}"
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _open_identity(
    connection: Connection,
    secrets: ConnectionSecrets,
    base: httpx.URL,
    transport: Transport,
    settings: FederationSettings,
    clock: Clock,
    name: str,
) -> Identity:
    authentication = connection.authentication
    match authentication:
        case OAuth():
            secret = _require(secrets.client_secret, name)
            own = below(base, "v1", "oauth", "tokens")
            uri = authentication.token_uri
            url = own if uri is None else check_url(uri, settings, name)
            return OAuthIdentity(authentication, secret, url, transport, clock, name)
        case Bearer():
            token = _require(secrets.bearer_token, name)
            if not is_token(token.reveal()):
                raise RemoteUnavailable(name, reason="the connection's token cannot be sent")
            return Fixed(bearer(token))
        case SigV4():
            keys = open_aws_keys(authentication, secrets, settings, clock, name)
            return SigV4Identity(authentication, keys, clock)
        case Implicit() if settings.allow_implicit:
            return Fixed(Proof())
        case Implicit() | Password():
            raise RemoteUnavailable(name, reason="this kind of authentication is not allowed here")
        case _:
            assert_never(authentication)


def _require(secret: Secret | None, name: str) -> Secret:
    if secret is None:
        raise RemoteUnavailable(name, reason="the connection has no secret")
    return secret


def _headers(connection: Connection) -> dict[str, str]:
    found = {
        name.removeprefix(_HEADER).lower(): value
        for name, value in connection.properties.items()
        if name.startswith(_HEADER)
    }
    return {
        name: value
        for name, value in found.items()
        if _HEADER_NAME.fullmatch(name)
        and name not in _NOT_TO_BE_SET
        and value.isascii()
        and value.isprintable()
    }
