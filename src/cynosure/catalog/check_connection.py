"""What makes sense in a connection, and what a server may be told to talk to.

Errors name fields as the management API does (`connectionConfigInfo.uri` …).

A maintainer must not break: whatever the secrets of a connection are sent to is checked here, and an address
is written once, in a field of its own: properties hold no secrets, and none that is a header with one.
"""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

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
from cynosure.catalog.properties import is_secret
from cynosure.common.addresses import is_loopback
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.storage.check_config import is_metadata_service
from cynosure.storage.location import Location

FIELD: Final = "connectionConfigInfo"
SECRETS_OF: Final[dict[type[Authentication], tuple[str, ...]]] = {
    OAuth: ("client_secret",),
    Bearer: ("bearer_token",),
    SigV4: ("access_key_id", "secret_access_key"),
    Password: ("password",),
    Implicit: (),
}
"""The secrets that each way of authentication has; all of them or none."""

_WAYS: Final[dict[ConnectionType, tuple[type[Authentication], ...]]] = {
    "ICEBERG_REST": (OAuth, Bearer, SigV4, Implicit),
    "HIVE": (Implicit,),
    "GLUE": (SigV4,),
    "SQL": (Password,),
}
_SCHEMES: Final[dict[ConnectionType, tuple[tuple[str, ...], str]]] = {
    "ICEBERG_REST": (("https", "http"), "https://HOST/PATH"),
    "HIVE": (("thrift",), "thrift://HOST:9083"),
    "GLUE": (("https", "http"), "https://HOST"),
    "SQL": (("postgresql",), "postgresql://HOST:5432/DATABASE"),
}
_INSECURE: Final = {
    "http": "Use https://, or have federation.allow_insecure set in the server's settings.",
    "thrift": "Have federation.allow_insecure set in the server's settings: there is no TLS for metastores.",
}
_URI: Final = re.compile(r"[A-Za-z0-9._~:/%\[\]-]{1,2048}")
"""Without `@`, `?`, `#`, spaces and control characters."""
_WORD: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?")
_REGION: Final = re.compile(r"[a-z0-9-]{2,40}")
_MAX_POLICY_CHARS: Final = 2048
_MAX_NAME_CHARS: Final = 1024
_ODD: Final = re.compile(r"[\x00-\x1f\x7f]|(?s:.{65536})")
_MAX_SHOWN_CHARS: Final = 100
_HEADER: Final = re.compile(r"header\.([A-Za-z0-9-]{1,64})")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?")
_OURS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "idempotency-key",
        "if-none-match",
        "keep-alive",
        "proxy-authorization",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-iceberg-access-delegation",
    }
)
"""Headers that are not for a connection to say."""


class ConnectionRules(Struct, frozen=True, kw_only=True):
    """What an operator lets connections do."""

    is_enabled: bool = True
    is_implicit_allowed: bool = False
    is_insecure_allowed: bool = False


def check_connection(connection: Connection, rules: ConnectionRules) -> None:
    """Refuse a connection that cannot work or must not be made."""
    if not rules.is_enabled:
        raise BadInput(
            "This server does not connect to other catalogs",
            field=FIELD,
            fix="Leave it out, or have federation.enabled set in the server's settings.",
        )
    _check_way(connection, rules)
    schemes, example = _SCHEMES[connection.type]
    parts = _check_uri(connection.uri, f"{FIELD}.uri", schemes, example, rules)
    if connection.type == "SQL" and not re.fullmatch(r"/[^/]+", parts.path):
        raise BadInput("The URI names no database", field=f"{FIELD}.uri", fix=f"Write it as {example}.")
    if connection.type == "HIVE" and (parts.port is None or parts.path not in ("", "/")):
        raise BadInput(
            "The URI of a Hive Metastore has a port and no path",
            field=f"{FIELD}.uri",
            fix=f"Write it as {example}.",
        )
    _check_name(connection.remote_name, f"{FIELD}.remoteCatalogName")
    if connection.type == "SQL" and connection.remote_name is None:
        raise BadInput(
            "A SQL catalog has a name in its tables",
            field=f"{FIELD}.remoteCatalogName",
            fix="Give the name that its clients use: column catalog_name of iceberg_tables.",
        )
    _check_name(connection.warehouse, f"{FIELD}.warehouse")
    _check_authentication(connection.authentication, rules)
    _check_properties(connection)


def check_warehouse(connection: Connection, base_location: str) -> None:
    """Refuse another place for new tables than the catalog's own: two would not both be what counts."""
    given = connection.warehouse
    if given is not None and Location.parse(given, field=f"{FIELD}.warehouse") != Location.parse(
        base_location
    ):
        raise BadInput(
            "The warehouse is where the catalog's new tables go",
            field=f"{FIELD}.warehouse",
            fix="Leave it out, or make it the same as default-base-location.",
        )


def check_secrets(authentication: Authentication, secrets: ConnectionSecrets) -> None:
    """Refuse secrets that are not exactly those of the authentication."""
    wanted = SECRETS_OF[type(authentication)]
    for name in ConnectionSecrets.__struct_fields__:
        given: Secret | None = getattr(secrets, name)
        if given is not None and _ODD.search(given.reveal()):
            raise BadInput(
                "The secret is too long or holds control characters",
                field=_field_of(name),
                fix="Give it without line ends.",
            )
        is_given = given is not None
        if is_given and name not in wanted:
            raise BadInput(
                "The secret is for another way of authentication",
                field=_field_of(name),
                fix="Leave it out, or choose the authenticationType that has it.",
            )
        if not is_given and name in wanted:
            raise BadInput(
                "A secret of the connection is missing",
                field=_field_of(name),
                fix=f"Give {' and '.join(map(_camel, wanted))}. The server's own environment is never used.",
            )


def _check_way(connection: Connection, rules: ConnectionRules) -> None:
    field = f"{FIELD}.authenticationParameters.authenticationType"
    ways = _WAYS[connection.type]
    if not isinstance(connection.authentication, ways):
        names = ", ".join(str(each.__struct_config__.tag) for each in ways)
        raise BadInput(
            f"A connection of type {connection.type} is not authenticated in this way",
            field=field,
            fix=f"Use {names}.",
        )
    if isinstance(connection.authentication, Implicit) and not rules.is_implicit_allowed:
        raise BadInput(
            "Connections without authentication are not allowed on this server",
            field=field,
            fix="Have federation.allow_implicit set in the server's settings, or authenticate. The server's "
            "own environment is never used.",
        )


def _check_uri(
    uri: str, field: str, schemes: tuple[str, ...], example: str, rules: ConnectionRules
) -> SplitResult:
    parts = _split(uri)
    if parts is None or parts.scheme not in schemes or not parts.hostname:
        # Its text is not shown: what is wrong with it may be that it holds a password.
        raise BadInput(
            "The URI cannot be used",
            field=field,
            fix=f"Write it as {example}, without user, password, query and fragment.",
        )
    host = parts.hostname
    if is_metadata_service(host):
        raise BadInput(
            "No catalog is there, but what a cloud tells its machines",
            field=field,
            fix="Give the address of the catalog.",
        )
    if parts.scheme in ("http", "thrift") and not is_loopback(host) and not rules.is_insecure_allowed:
        raise BadInput(
            "Secrets and tables would cross a network that others can listen to",
            field=field,
            fix=_INSECURE[parts.scheme],
        )
    return parts


def _split(uri: str) -> SplitResult | None:
    if _URI.fullmatch(uri) is None:
        return None
    try:
        parts = urlsplit(uri)
        is_port = parts.port is None or parts.port > 0
    except ValueError:
        return None
    return parts if is_port else None


def _check_authentication(given: Authentication, rules: ConnectionRules) -> None:
    field = f"{FIELD}.authenticationParameters"
    web = ("https", "http")
    match given:
        case OAuth():
            _check_word(given.client_id, f"{field}.clientId")
            if ":" in given.client_id:
                raise BadInput(
                    "A client id has no colon", field=f"{field}.clientId", fix="Give the secret on its own."
                )
            if given.token_uri is not None:
                _check_uri(given.token_uri, f"{field}.tokenUri", web, "https://HOST/PATH", rules)
            for scope in given.scopes:
                _check_word(scope, f"{field}.scopes")
        case SigV4():
            _check_sigv4(given, field)
            if given.sts_endpoint is not None:
                _check_uri(given.sts_endpoint, f"{field}.stsEndpoint", web, "https://HOST", rules)
        case Password():
            _check_word(given.user, f"{field}.user")
        case Bearer() | Implicit():
            pass


def _check_sigv4(given: SigV4, field: str) -> None:
    if _REGION.fullmatch(given.signing_region) is None:
        raise BadInput("The region is none", field=f"{field}.signingRegion", fix="Write it as in us-east-1.")
    _check_word(given.signing_name, f"{field}.signingName")
    if given.role_arn is not None and not re.fullmatch(r"arn:[\x21-\x7e]{8,2040}", given.role_arn):
        raise BadInput(
            "The role is no ARN", field=f"{field}.roleArn", fix="Write it as arn:aws:iam::ACCOUNT:role/NAME."
        )
    for name in ("role_session_name", "external_id"):
        if (value := getattr(given, name)) is not None:
            _check_word(value, f"{field}.{_camel(name)}")
    only_with_role = [
        _camel(name)
        for name in ("role_session_name", "external_id", "session_policy", "sts_endpoint")
        if getattr(given, name) is not None
    ]
    if only_with_role and given.role_arn is None:
        raise BadInput(
            "No role is assumed, so nothing more is said about it",
            field=f"{field}.{only_with_role[0]}",
            fix="Give roleArn too, or leave it out.",
        )
    if given.session_policy is not None and len(given.session_policy) > _MAX_POLICY_CHARS:
        raise BadInput(
            "The session policy is too long", field=f"{field}.sessionPolicy", fix="Write a shorter one."
        )


def _check_properties(connection: Connection) -> None:
    for name, value in connection.properties.items():
        if is_secret(name, value):
            raise BadInput(
                "The property looks like a secret, and whoever may look at the catalog would see it",
                field=f"{FIELD}.properties",
                fix="Put secrets into authenticationParameters.",
                property=name[:_MAX_SHOWN_CHARS],
            )
        header = _HEADER.fullmatch(name)
        if connection.type != "ICEBERG_REST" or header is None or header[1].lower() in _OURS:
            raise BadInput(
                "A connection has no such property",
                field=f"{FIELD}.properties",
                fix="Leave it out; only header.NAME of ICEBERG_REST is known, for headers that say who asks.",
                property=name[:_MAX_SHOWN_CHARS],
            )
        if _VALUE.fullmatch(value) is None:
            raise BadInput(
                "The header has no value that can be sent",
                field=f"{FIELD}.properties",
                fix="Write a short plain text.",
                property=name,
            )


def _check_name(text: str | None, field: str) -> None:
    if text is not None and (not text.isprintable() or len(text) > _MAX_NAME_CHARS):
        raise BadInput(
            "The name is too long or holds control characters", field=field, fix="Write a short plain text."
        )


def _check_word(text: str, field: str) -> None:
    if _WORD.fullmatch(text) is None:
        raise BadInput(
            "The text is empty, too long, or has characters that are not ASCII",
            field=field,
            fix="Write plain letters.",
        )


def _field_of(secret: str) -> str:
    return f"{FIELD}.authenticationParameters.{_camel(secret)}"


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
