"""Bodies of catalogs and their storages.

Must not break: the key of an S3 storage is read here and never written; what is answered is made by
`storage.py`, which does not have it.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from cynosure.api.management.wire import Camel, Name

BASE_LOCATION = "default-base-location"
"""The property that says where tables go that ask for no location."""

Properties = Annotated[
    dict[str, str],
    Meta(extra_json_schema={"properties": {BASE_LOCATION: {"type": "string"}}, "required": [BASE_LOCATION]}),
]


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
    access_key_id: Annotated[str, Meta(extra_json_schema={"writeOnly": True})] | None = None
    """The key that this server uses. Kept encrypted and never answered."""
    secret_access_key: (
        Annotated[str, Meta(extra_json_schema={"writeOnly": True, "format": "password"})] | None
    ) = None

    def __repr__(self) -> str:
        return "AwsStorageConfigInfo(***)"


class GcpStorageConfigInfo(Camel, frozen=True, tag_field="storageType", tag="GCS"):
    """Buckets of Google. This version refuses them."""

    allowed_locations: list[str] | None = None
    storage_name: str | None = None
    gcs_service_account: str | None = None


class AzureStorageConfigInfo(Camel, frozen=True, tag_field="storageType", tag="AZURE"):
    """Containers of Azure. This version refuses them."""

    tenant_id: str
    allowed_locations: list[str] | None = None
    storage_name: str | None = None
    multi_tenant_app_name: str | None = None
    consent_url: str | None = None
    hierarchical: bool | None = None


StorageConfigInfo = (
    FileStorageConfigInfo | AwsStorageConfigInfo | GcpStorageConfigInfo | AzureStorageConfigInfo
)


class Catalog(Camel, frozen=True, kw_only=True):
    """A catalog."""

    type: Literal["INTERNAL", "EXTERNAL"]
    """This version serves INTERNAL ones."""
    name: Name
    properties: Properties
    storage_config_info: StorageConfigInfo
    connection_config_info: dict[str, Any] | None = None
    """Of EXTERNAL catalogs."""
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
    """The whole configuration; only the key stays when it is not named."""
