"""The flags that say which remote catalog is behind an external one, and how it is reached.

A command takes `connection: ConnectionFlags` as a keyword and is decorated with `with_connection`, innermost.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from cynosure.cli.flag_tables import (
    Flag,
    Row,
    SecretFlag,
    find_flag,
    list_flags,
    make_parameter,
    read_fields,
    take_given,
)
from cynosure.cli.names import parse_properties
from cynosure.common.errors import BadInput

_PANEL: Final = "Remote catalog"
_PARTS: Final = (
    Flag("connection_type", "connectionType", "TYPE", "`ICEBERG_REST`, `HIVE`, `GLUE` or `SQL`.", str.upper),
    Flag("connection_uri", "uri", "URI", "`https://…`, `thrift://…`, `postgresql://…`."),
    Flag("remote_name", "remoteCatalogName", "NAME", "The catalog there: its warehouse, catalog id or name."),
    Flag("remote_warehouse", "warehouse", "LOCATION", "Hive, Glue, SQL: must be `--location`, if given."),
    Flag(
        "connection_property",
        "properties",
        "KEY=VALUE",
        "`header.NAME=VALUE`; may be repeated.",
        parse_properties,
        is_repeated=True,
    ),
)
_PROOF: Final[tuple[Row, ...]] = (
    Flag(
        "remote_auth",
        "authenticationType",
        "TYPE",
        "`OAUTH`, `BEARER`, `SIGV4`, `PASSWORD` or `IMPLICIT` (none).",
        str.upper,
    ),
    Flag("remote_client_id", "clientId", "ID", "OAUTH: our client id there."),
    SecretFlag("remote_client_secret", "clientSecret", "its secret", "Client secret at the remote"),
    Flag("remote_token_uri", "tokenUri", "URI", "OAUTH: where tokens are, if not at the catalog."),
    Flag("remote_scope", "scopes", "SCOPE", "OAUTH: asked for; may be repeated.", is_repeated=True),
    SecretFlag("remote_token", "bearerToken", "the token (BEARER)", "Token for the remote"),
    Flag("remote_region", "signingRegion", "REGION", "SIGV4: region of the service."),
    Flag("remote_access_key_id", "accessKeyId", "ID", "SIGV4: key that signs."),
    SecretFlag("remote_secret_key", "secretAccessKey", "its secret", "Secret access key for the remote"),
    Flag("remote_role_arn", "roleArn", "ARN", "SIGV4: role that is assumed with the key."),
    Flag("remote_role_session_name", "roleSessionName", "NAME", "SIGV4: what the session is called."),
    Flag("remote_external_id", "externalId", "ID", "SIGV4: what the role's owner demands."),
    Flag("remote_session_policy", "sessionPolicy", "JSON", "SIGV4: what the role may do at most."),
    Flag("remote_sts_endpoint", "stsEndpoint", "URL", "SIGV4: instead of Amazon's token service."),
    Flag("remote_signing_name", "signingName", "NAME", "SIGV4: the service; `glue`, else `execute-api`."),
    Flag("remote_user", "user", "NAME", "PASSWORD: user of the database."),
    SecretFlag("remote_password", "password", "the password", "Password at the remote"),
)
_ALL: Final = (*_PARTS[:-1], *_PROOF, _PARTS[-1])
"""In the order of the help: properties are said last."""
_USUAL: Final = {"ICEBERG_REST": "OAUTH", "HIVE": "IMPLICIT", "GLUE": "SIGV4", "SQL": "PASSWORD"}
"""How remotes of each type are usually asked."""


class ConnectionFlags:
    """What was said about the remote; all of it may be left out."""

    __slots__ = ("_given",)

    def __init__(self, **given: Any) -> None:
        self._given = take_given(_ALL, given)

    def to_info(self) -> dict[str, Any] | None:
        """A new connection as the management API takes it; nothing when nothing was said."""
        if not self._given:
            return None
        if "connection_type" not in self._given:
            raise BadInput(
                "A connection needs its type",
                field="--connection-type",
                fix="Give --connection-type ICEBERG_REST, HIVE, GLUE or SQL.",
            )
        parts, proof = read_fields(_PARTS, self._given), read_fields(_PROOF, self._given)
        way = proof.get("authenticationType") or _USUAL.get(parts["connectionType"], "OAUTH")
        return {**parts, "authenticationParameters": {**proof, "authenticationType": way}}

    def change(self, current: Mapping[str, Any]) -> dict[str, Any] | None:
        """The connection of a catalog with what was said put into it; nothing when nothing was said."""
        if not self._given:
            return None
        if not current:
            raise BadInput(
                "The catalog has no connection",
                field="--connection-type",
                fix="Create another external catalog with this connection.",
            )
        before: Mapping[str, Any] = current.get("authenticationParameters") or {}
        parts, proof = read_fields(_PARTS, self._given), read_fields(_PROOF, self._given)
        way = proof.get("authenticationType") or before.get("authenticationType", "")
        kept = before if way == before.get("authenticationType") else {}
        return {
            **current,
            **parts,
            "authenticationParameters": {**kept, **proof, "authenticationType": way},
        }


@contextmanager
def naming_connection_flags() -> Iterator[None]:
    """What a server refuses of a connection is told by the flag that said it."""
    try:
        yield
    except BadInput as error:
        flag = name_connection_flag(str(error.details.get("field", "")))
        if flag is not None:
            error.details["field"] = flag
        raise


def name_connection_flag(field: str) -> str | None:
    """The flag that says a field of the management API, if it is one of a connection."""
    _, is_ours, named = field.rpartition("connectionConfigInfo.")
    last = named.rpartition(".")[2].partition("[")[0]
    return (
        find_flag(_ALL, "authenticationType" if last == "authenticationParameters" else last)
        if is_ours
        else None
    )


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a connection; it gets them as `connection`."""
    signature = inspect.signature(command, eval_str=True)
    own = [each for each in signature.parameters.values() if each.name != "connection"]
    flags = [make_parameter(each, _PANEL) for each in list_flags(_ALL)]

    @functools.wraps(command)
    def call(*arguments: Any, **given: Any) -> None:
        connection = ConnectionFlags(**{flag.name: given.pop(flag.name) for flag in flags})
        command(*arguments, connection=connection, **given)

    call.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]
    return call
