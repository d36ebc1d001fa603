"""The fields of storage configurations, one by one: from the wire to what is stored, and back without keys.

Must not break: an empty text is the same as none, because clients write one where they mean the other.
"""

from cynosure.api.management import wire_catalogs as wire
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.storage.access.gcs.service_account import parse_service_account_key
from cynosure.storage.config import (
    AzureKeys,
    AzureStorage,
    FileStorage,
    GcsStorage,
    S3Keys,
    S3Kms,
    S3Storage,
    S3Sts,
    StorageConfig,
    StorageKeys,
)

_DEFAULT_REGION = "us-east-1"


def read_config(info: wire.StorageConfigInfo, allowed: tuple[str, ...]) -> StorageConfig:
    """The configuration, without keys."""
    match info:
        case wire.FileStorageConfigInfo():
            return FileStorage(allowed, info.storage_name or None)
        case wire.GcpStorageConfigInfo():
            return GcsStorage(
                allowed_locations=allowed,
                storage_name=info.storage_name or None,
                gcs_service_account=info.gcs_service_account or None,
                endpoint=info.endpoint or None,
                token_endpoint=info.token_endpoint or None,
            )
        case wire.AzureStorageConfigInfo():
            return AzureStorage(
                allowed_locations=allowed,
                storage_name=info.storage_name or None,
                tenant_id=info.tenant_id,
                multi_tenant_app_name=info.multi_tenant_app_name or None,
                consent_url=info.consent_url or None,
                hierarchical=bool(info.hierarchical),
                endpoint=info.endpoint or None,
                authority_host=info.authority_host or None,
            )
        case wire.AwsStorageConfigInfo():
            return _read_s3(info, allowed)


def _read_s3(info: wire.AwsStorageConfigInfo, allowed: tuple[str, ...]) -> S3Storage:
    return S3Storage(
        allowed_locations=allowed,
        storage_name=info.storage_name or None,
        sts=S3Sts(
            role_arn=info.role_arn or None,
            external_id=info.external_id or None,
            user_arn=info.user_arn or None,
            endpoint=info.sts_endpoint or None,
            is_unavailable=bool(info.sts_unavailable),
        ),
        kms=S3Kms(
            current_key=info.current_kms_key or None,
            allowed_keys=tuple(info.allowed_kms_keys or ()),
            is_unavailable=bool(info.kms_unavailable),
        ),
        region=info.region or _DEFAULT_REGION,
        endpoint=info.endpoint or None,
        endpoint_internal=info.endpoint_internal or None,
        path_style_access=bool(info.path_style_access),
    )


def read_keys(info: wire.StorageConfigInfo) -> StorageKeys | None:
    """The keys that were given, if any. `BadInput` when they are not whole."""
    match info:
        case wire.AwsStorageConfigInfo():
            both = _both(info.access_key_id, info.secret_access_key, "accessKeyId", "secretAccessKey")
            return both and S3Keys(both[0], Secret(both[1]))
        case wire.AzureStorageConfigInfo():
            both = _both(info.client_id, info.client_secret, "clientId", "clientSecret")
            return both and AzureKeys(both[0], Secret(both[1]))
        case wire.GcpStorageConfigInfo():
            if not info.service_account_key:
                return None
            field = "storageConfigInfo.serviceAccountKey"
            return parse_service_account_key(info.service_account_key, field=field)
        case wire.FileStorageConfigInfo():
            return None


def describe_storage(config: StorageConfig) -> wire.StorageConfigInfo:
    """A stored configuration as it is answered: without keys."""
    locations = list(config.allowed_locations)
    match config:
        case FileStorage():
            return wire.FileStorageConfigInfo(locations, config.storage_name)
        case GcsStorage():
            return wire.GcpStorageConfigInfo(
                allowed_locations=locations,
                storage_name=config.storage_name,
                gcs_service_account=config.gcs_service_account,
                endpoint=config.endpoint,
                token_endpoint=config.token_endpoint,
            )
        case AzureStorage():
            return wire.AzureStorageConfigInfo(
                allowed_locations=locations,
                storage_name=config.storage_name,
                tenant_id=config.tenant_id,
                multi_tenant_app_name=config.multi_tenant_app_name,
                consent_url=config.consent_url,
                hierarchical=config.hierarchical,
                endpoint=config.endpoint,
                authority_host=config.authority_host,
            )
        case S3Storage():
            return _describe_s3(config, locations)


def _describe_s3(config: S3Storage, locations: list[str]) -> wire.AwsStorageConfigInfo:
    return wire.AwsStorageConfigInfo(
        allowed_locations=locations,
        storage_name=config.storage_name,
        role_arn=config.sts.role_arn,
        external_id=config.sts.external_id,
        user_arn=config.sts.user_arn,
        region=config.region,
        endpoint=config.endpoint,
        endpoint_internal=config.endpoint_internal,
        sts_endpoint=config.sts.endpoint,
        sts_unavailable=config.sts.is_unavailable,
        path_style_access=config.path_style_access,
        current_kms_key=config.kms.current_key,
        allowed_kms_keys=list(config.kms.allowed_keys),
        kms_unavailable=config.kms.is_unavailable,
    )


def _both(name: str | None, secret: str | None, first: str, second: str) -> tuple[str, str] | None:
    if name and secret:
        return name, secret
    if not name and not secret:
        return None
    raise BadInput(
        "A key needs its id and its secret",
        field=f"storageConfigInfo.{first}",
        fix=f"Give {first} and {second}, or neither.",
    )
