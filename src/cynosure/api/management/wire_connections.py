"""Bodies of the connections of federated catalogs.

Must not break: secrets are read here and never written; what is answered is made by `connections.py`, which
does not have them. Kinds that Polaris has and this server has not are described too, so that they are refused
by name.
"""

from typing import Annotated, Any

from msgspec import Meta

from cynosure.api.management.wire import Camel

Secret = Annotated[str, Meta(extra_json_schema={"writeOnly": True, "format": "password"})]
ServiceIdentity = dict[str, Any]
"""Polaris says here as whom it signs. This server signs with keys of the connection, so it is not read."""


class OAuthParameters(Camel, frozen=True, kw_only=True, tag_field="authenticationType", tag="OAUTH"):
    """A token for a client id and its secret."""

    client_id: str | None = None
    client_secret: Secret | None = None
    """Kept encrypted and never answered."""
    token_uri: str | None = None
    """Left out: the remote's own `v1/oauth/tokens`."""
    scopes: list[str] | None = None

    def __repr__(self) -> str:
        return "OAuthParameters(***)"


class BearerParameters(Camel, frozen=True, kw_only=True, tag_field="authenticationType", tag="BEARER"):
    """A token that does not change."""

    bearer_token: Secret | None = None
    """Kept encrypted and never answered."""

    def __repr__(self) -> str:
        return "BearerParameters(***)"


class SigV4Parameters(Camel, frozen=True, kw_only=True, tag_field="authenticationType", tag="SIGV4"):
    """Requests signed as Amazon does it."""

    signing_region: str
    role_arn: str | None = None
    """Assumed with the keys. Left out: the keys sign themselves."""
    role_session_name: str | None = None
    external_id: str | None = None
    signing_name: str | None = None
    """Left out: `glue` for Glue, else `execute-api`."""
    session_policy: str | None = None
    sts_endpoint: str | None = None
    access_key_id: Secret | None = None
    """Kept encrypted and never answered, as is its secret."""
    secret_access_key: Secret | None = None

    def __repr__(self) -> str:
        return "SigV4Parameters(***)"


class PasswordParameters(Camel, frozen=True, kw_only=True, tag_field="authenticationType", tag="PASSWORD"):
    """A user of a database."""

    user: str | None = None
    password: Secret | None = None
    """Kept encrypted and never answered."""

    def __repr__(self) -> str:
        return "PasswordParameters(***)"


class ImplicitParameters(Camel, frozen=True, tag_field="authenticationType", tag="IMPLICIT"):
    """No authentication. Refused unless the server's settings allow it; the environment is never used."""


class GcpParameters(Camel, frozen=True, tag_field="authenticationType", tag="GCP"):
    """Of Google's catalogs; refused."""


AuthenticationParameters = (
    OAuthParameters
    | BearerParameters
    | SigV4Parameters
    | PasswordParameters
    | ImplicitParameters
    | GcpParameters
)


class _Connection(Camel, frozen=True, kw_only=True):
    """What all kinds say."""

    uri: str | None = None
    """`https://…`, `thrift://HOST:9083`, `postgresql://HOST:5432/DATABASE`. Left out for Glue: Amazon's."""
    authentication_parameters: AuthenticationParameters | None = None
    service_identity: ServiceIdentity | None = None
    properties: dict[str, str] | None = None


class IcebergRestConnectionConfigInfo(
    _Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="ICEBERG_REST"
):
    """A catalog that speaks Iceberg's REST protocol."""

    remote_catalog_name: str | None = None
    """The catalog there, which clients call the warehouse."""


class HiveConnectionConfigInfo(
    _Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="HIVE"
):
    """A Hive Metastore."""

    warehouse: str | None = None
    """Where new tables go: the catalog's base location, if it is said at all."""


class GlueConnectionConfigInfo(
    _Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="GLUE"
):
    """The Data Catalog of AWS Glue."""

    remote_catalog_name: str | None = None
    """Id of the Data Catalog. Left out: the one of the account."""
    warehouse: str | None = None


class SqlConnectionConfigInfo(_Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="SQL"):
    """The tables of a SQL catalog, as PyIceberg and Iceberg's JDBC catalog keep them, in PostgreSQL."""

    remote_catalog_name: str | None = None
    """What is in the column `catalog_name`."""
    warehouse: str | None = None


class HadoopConnectionConfigInfo(
    _Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="HADOOP"
):
    """A directory that is a catalog; refused."""

    warehouse: str | None = None


class BigQueryConnectionConfigInfo(
    _Connection, frozen=True, kw_only=True, tag_field="connectionType", tag="BIGQUERY"
):
    """A metastore of BigQuery; refused."""


ConnectionConfigInfo = (
    IcebergRestConnectionConfigInfo
    | HiveConnectionConfigInfo
    | GlueConnectionConfigInfo
    | SqlConnectionConfigInfo
    | HadoopConnectionConfigInfo
    | BigQueryConnectionConfigInfo
)
