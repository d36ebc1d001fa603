"""The remote behind an external catalog, in a setup file.

Must not break: no secret has a place in such a file, only where it is: in a variable (`…_env`) or a file
(`…_file`).
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from cynosure.cli.connection_flags import ConnectionFlags
from cynosure.client.management_types import Catalog


class ConnectionPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A connection; as the flags of `cynosure catalogs create` say it."""

    type: str
    uri: str | None = None
    remote_name: str | None = None
    warehouse: str | None = None
    properties: dict[str, str] | None = None
    auth: str | None = None
    client_id: str | None = None
    client_secret_env: str | None = None
    client_secret_file: str | None = None
    token_uri: str | None = None
    scopes: list[str] | None = None
    token_env: str | None = None
    token_file: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key_env: str | None = None
    secret_access_key_file: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None
    external_id: str | None = None
    session_policy: str | None = None
    sts_endpoint: str | None = None
    signing_name: str | None = None
    user: str | None = None
    password_env: str | None = None
    password_file: str | None = None

    def describe(self) -> dict[str, Any] | None:
        """A new connection as the management API takes it. Secrets are read here."""
        return self._flags(self.__struct_fields__).to_info()

    def change(self, found: Catalog) -> dict[str, Any] | None:
        """The connection of a catalog as it should be; nothing when it is that, but for secrets.

        The server never tells a secret, so whether it differs cannot be known: they are sent with a change.
        """
        current = found.connection_config_info
        plain = [name for name in self.__struct_fields__ if not _is_secret(name)]
        if not current or self._flags(plain).change(current) == current:
            return None
        return self._flags(self.__struct_fields__).change(current)

    def _flags(self, names: Any) -> ConnectionFlags:
        given = {_FLAGS.get(name, f"remote_{name}"): getattr(self, name) for name in names}
        if self.properties is not None:
            given["connection_property"] = [f"{name}={value}" for name, value in self.properties.items()]
        return ConnectionFlags(**given)


_FLAGS: Final = {
    "type": "connection_type",
    "uri": "connection_uri",
    "remote_name": "remote_name",
    "properties": "connection_property",
    "scopes": "remote_scope",
    "secret_access_key_env": "remote_secret_key_env",
    "secret_access_key_file": "remote_secret_key_file",
}
_EXPORTED: Final = {
    "connectionType": "type",
    "uri": "uri",
    "remoteCatalogName": "remote_name",
    "warehouse": "warehouse",
    "properties": "properties",
    "authenticationType": "auth",
    "clientId": "client_id",
    "tokenUri": "token_uri",
    "scopes": "scopes",
    "signingRegion": "region",
    "roleArn": "role_arn",
    "roleSessionName": "role_session_name",
    "externalId": "external_id",
    "sessionPolicy": "session_policy",
    "stsEndpoint": "sts_endpoint",
    "signingName": "signing_name",
    "user": "user",
}


def export_connection(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a setup file says of a connection; where its secrets are has to be added by hand."""
    flat = {**info, **(info.get("authenticationParameters") or {})}
    return {ours: flat[theirs] for theirs, ours in _EXPORTED.items() if flat.get(theirs)}


def _is_secret(name: str) -> bool:
    return name.endswith(("_env", "_file")) or name == "access_key_id"
