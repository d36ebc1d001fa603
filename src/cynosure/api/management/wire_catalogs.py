"""Bodies of catalogs and their storages. Connections: `wire_connections.py`.

Must not break: the keys of a storage are read here and never written; what is answered is made by
`storage_fields.py`, which does not have them.
"""

from typing import Annotated, Literal

from msgspec import Meta

from cynosure.api.management.wire import Camel, Name
from cynosure.api.management.wire_connections import ConnectionConfigInfo

BASE_LOCATION = "default-base-location"
"""The property that says where tables go that ask for no location."""

Properties = Annotated[
    dict[str, str],
    Meta(extra_json_schema={"properties": {BASE_LOCATION: {"type": "string"}}, "required": [BASE_LOCATION]}),
]


WriteOnly = Annotated[str, Meta(extra_json_schema={"writeOnly": True})]
WriteOnlySecret = Annotated[str, Meta(extra_json_schema={"writeOnly": True, "format": "password"})]


class FileStorageConfigInfo(Camel, frozen=True, tag_field="storageType", tag="FILE"):
    """Directories of the machine that the server runs on."""

    allowed_locations: list[str] | None = None
    storage_name: str | None = None


class AwsStorageConfigInfo(Camel, frozen=True, kw_only=True, tag_field="storageType", tag="S3"):
    """Buckets of Amazon S3 or of a store that speaks its protocol."""

    allowed_locations: list[str] | None = None
    storage_name: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    user_arn: str | None = None
    region: str | None = None
    endpoint: str | None = None
    endpoint_internal: str | None = None
    sts_endpoint: str | None = None
    sts_unavailable: bool | None = None
    path_style_access: bool | None = None
    current_kms_key: str | None = None
    allowed_kms_keys: list[str] | None = None
    kms_unavailable: bool | None = None
    access_key_id: WriteOnly | None = None
    """The key that this server uses. Kept encrypted and never answered."""
    secret_access_key: WriteOnlySecret | None = None

    def __repr__(self) -> str:
        return "AwsStorageConfigInfo(***)"


class GcpStorageConfigInfo(Camel, frozen=True, kw_only=True, tag_field="storageType", tag="GCS"):
    """Buckets of Google Cloud Storage."""

    allowed_locations: list[str] | None = None
    storage_name: str | None = None
    gcs_service_account: str | None = None
    endpoint: str | None = None
    token_endpoint: str | None = None
    service_account_key: WriteOnlySecret | None = None
    """The whole file that Google made for a key of the service account. Kept encrypted, never answered."""

    def __repr__(self) -> str:
        return "GcpStorageConfigInfo(***)"


class AzureStorageConfigInfo(Camel, frozen=True, kw_only=True, tag_field="storageType", tag="AZURE"):
    """Containers of one account of Azure."""

    tenant_id: str
    allowed_locations: list[str] | None = None
    storage_name: str | None = None
    multi_tenant_app_name: str | None = None
    consent_url: str | None = None
    hierarchical: bool | None = None
    endpoint: str | None = None
    authority_host: str | None = None
    client_id: WriteOnly | None = None
    """The application that this server is. Kept encrypted and never answered."""
    client_secret: WriteOnlySecret | None = None

    def __repr__(self) -> str:
        return "AzureStorageConfigInfo(***)"


StorageConfigInfo = (
    FileStorageConfigInfo | AwsStorageConfigInfo | GcpStorageConfigInfo | AzureStorageConfigInfo
)


class Catalog(Camel, frozen=True, kw_only=True):
    """A catalog."""

    type: Literal["INTERNAL", "EXTERNAL"]
    """`EXTERNAL`: another catalog owns its tables."""
    name: Name
    properties: Properties
    storage_config_info: StorageConfigInfo
    connection_config_info: ConnectionConfigInfo | None = None
    """Of EXTERNAL catalogs: the remote that owns their tables. Left out: it tells about them."""
    create_timestamp: int | None = None
    last_update_timestamp: int | None = None
    entity_version: int | None = None


class Catalogs(Camel, frozen=True):
    """A list of catalogs."""

    catalogs: list[Catalog]
    next_page_token: str | None = None


class CreateCatalogRequest(Camel, frozen=True):
    """Of createCatalog."""

    catalog: Catalog
    admin_principal_roles: list[str] | None = None
    """Principal roles that get its `catalog_admin`; left out: `service_admin`."""


class UpdateCatalogRequest(Camel, frozen=True):
    """Of updateCatalog; what is left out stays."""

    current_entity_version: int | None = None
    properties: dict[str, str] | None = None
    """All of them; those that are not named here go. The base location stays when it is not named."""
    storage_config_info: StorageConfigInfo | None = None
    """The whole configuration; only its keys stay when they are not named."""
    connection_config_info: ConnectionConfigInfo | None = None
    """The whole connection of a federated catalog. Its secrets stay when they are not named and neither
    address nor authentication nor properties are others."""
