"""Connections of federated catalogs: from what a client wrote to what is stored, and back without secrets.

Must not break: an empty text is the same as none, because clients write one where they mean the other.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cynosure.api.management import wire_connections as wire
from cynosure.catalog.check_connection import FIELD
from cynosure.catalog.connection import (
    Authentication,
    Bearer,
    Connection,
    ConnectionSecrets,
    ConnectionType,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.federation.remotes.extras import require_extras

_AUTHENTICATION: Final = f"{FIELD}.authenticationParameters"
_INFOS: Final[Mapping[ConnectionType, type[wire.ConnectionConfigInfo]]] = {
    "ICEBERG_REST": wire.IcebergRestConnectionConfigInfo,
    "HIVE": wire.HiveConnectionConfigInfo,
    "GLUE": wire.GlueConnectionConfigInfo,
    "SQL": wire.SqlConnectionConfigInfo,
}
"""The kinds that this server connects to."""
_TYPES: Final[Mapping[type, ConnectionType]] = {info: kind for kind, info in _INFOS.items()}


class ReadConnection(NamedTuple):
    """What a client's words come to."""

    connection: Connection
    secrets: ConnectionSecrets | None
    """`None` when none were given."""


def read_connection(info: wire.ConnectionConfigInfo) -> ReadConnection:
    """A connection, as a client wrote it. What makes sense in it is checked where it is stored."""
    given = info.authentication_parameters
    if given is None:
        raise BadInput(
            "A connection says how it is authenticated",
            field=_AUTHENTICATION,
            fix="Give authenticationParameters with an authenticationType: OAUTH, BEARER, SIGV4 or PASSWORD.",
        )
    kind = _TYPES.get(type(info))
    if kind is None:
        raise BadInput(
            "This server does not connect to catalogs of this kind",
            field=f"{FIELD}.connectionType",
            fix="Use ICEBERG_REST, HIVE, GLUE or SQL.",
        )
    is_glue = kind == "GLUE"
    authentication = _read_authentication(given, signing_name="glue" if is_glue else "execute-api")
    usual = _find_glue(authentication) if is_glue else None
    connection = Connection(
        type=kind,
        uri=_require(info.uri or usual, f"{FIELD}.uri"),
        authentication=authentication,
        # Not all kinds have these.
        remote_name=getattr(info, "remote_catalog_name", None) or None,
        warehouse=getattr(info, "warehouse", None) or None,
        properties=info.properties or {},
    )
    require_extras(connection.type)
    return ReadConnection(connection, _read_secrets(given))


def _read_authentication(given: wire.AuthenticationParameters, *, signing_name: str) -> Authentication:
    match given:
        case wire.OAuthParameters():
            return OAuth(
                client_id=_require(given.client_id, f"{_AUTHENTICATION}.clientId"),
                token_uri=given.token_uri or None,
                scopes=tuple(given.scopes or ()),
            )
        case wire.BearerParameters():
            return Bearer()
        case wire.SigV4Parameters():
            return SigV4(
                signing_region=given.signing_region,
                role_arn=given.role_arn or None,
                role_session_name=given.role_session_name or None,
                external_id=given.external_id or None,
                signing_name=given.signing_name or signing_name,
                session_policy=given.session_policy or None,
                sts_endpoint=given.sts_endpoint or None,
            )
        case wire.PasswordParameters():
            return Password(user=_require(given.user, f"{_AUTHENTICATION}.user"))
        case wire.ImplicitParameters():
            return Implicit()
        case wire.GcpParameters():
            raise BadInput(
                "This server does not authenticate in this way",
                field=f"{_AUTHENTICATION}.authenticationType",
                fix="Use OAUTH, BEARER, SIGV4 or PASSWORD.",
            )


def _read_secrets(given: wire.AuthenticationParameters) -> ConnectionSecrets | None:
    found = {
        name: Secret(value)
        for name in ConnectionSecrets.__struct_fields__
        if (value := getattr(given, name, None))
    }
    return ConnectionSecrets(**found) if found else None


def _find_glue(authentication: Authentication) -> str | None:
    """Amazon's address of the region."""
    if not isinstance(authentication, SigV4):
        return None
    region = authentication.signing_region
    return f"https://glue.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def _require(text: str | None, field: str) -> str:
    if not text:
        raise BadInput("A part of the connection is missing", field=field, fix="Give it.")
    return text


def describe_connection(connection: Connection) -> wire.ConnectionConfigInfo:
    """A stored connection as it is answered: without secrets."""
    kind = _INFOS[connection.type]
    parts: dict[str, Any] = {"remote_catalog_name": connection.remote_name, "warehouse": connection.warehouse}
    return kind(
        uri=connection.uri,
        authentication_parameters=_describe_authentication(connection.authentication),
        properties=connection.properties or None,
        **{name: value for name, value in parts.items() if name in kind.__struct_fields__},
    )


def _describe_authentication(authentication: Authentication) -> wire.AuthenticationParameters:
    match authentication:
        case OAuth():
            return wire.OAuthParameters(
                client_id=authentication.client_id,
                token_uri=authentication.token_uri,
                scopes=list(authentication.scopes) or None,
            )
        case Bearer():
            return wire.BearerParameters()
        case SigV4():
            return wire.SigV4Parameters(
                signing_region=authentication.signing_region,
                role_arn=authentication.role_arn,
                role_session_name=authentication.role_session_name,
                external_id=authentication.external_id,
                signing_name=authentication.signing_name,
                session_policy=authentication.session_policy,
                sts_endpoint=authentication.sts_endpoint,
            )
        case Password():
            return wire.PasswordParameters(user=authentication.user)
        case Implicit():
            return wire.ImplicitParameters()
