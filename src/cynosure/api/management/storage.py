"""Storage configurations, from what a client wrote to what is stored and back.

Must not break: a stored key is used only where it was given for. Whoever changes the address that the server
speaks to gives the key again; else the right to change a catalog would be the right to have its keys used
against another host. And who a storage trusts (role, external id) is set once.
"""

from typing import NamedTuple

from msgspec import structs

from cynosure.api.management import wire_catalogs as wire
from cynosure.catalog.entities import CatalogEntity
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.storage.config import FileStorage, S3Keys, S3Kms, S3Storage, S3Sts, StorageConfig
from cynosure.storage.resolve import resolve_location

_DEFAULT_REGION = "us-east-1"
_ADDRESSES = ("endpoint", "endpointInternal", "stsEndpoint")


class Chosen(NamedTuple):
    """What a client's words come to."""

    base: str
    config: StorageConfig
    keys: S3Keys | None


def choose_storage(base: str, info: wire.StorageConfigInfo) -> Chosen:
    """The storage of a new catalog. The base location is allowed by being named."""
    place = resolve_location(base, field=wire.BASE_LOCATION).text
    return Chosen(place, _config_of(info, place), _keys_of(info))


def change_storage(entity: CatalogEntity, base: str, info: wire.StorageConfigInfo | None) -> Chosen:
    """The storage of a catalog with a new base location, a new configuration, or both."""
    old = entity.storage
    place = resolve_location(base, field=wire.BASE_LOCATION).text if base else entity.base_location
    if info is None:
        allowed = _with(old.allowed_locations, place)
        return Chosen(place, structs.replace(old, allowed_locations=allowed), None)
    config = _config_of(info, place)
    if isinstance(old, FileStorage) or isinstance(config, FileStorage):
        if type(old) is not type(config):
            raise BadInput(
                "The kind of a storage cannot be changed",
                field="storageConfigInfo.storageType",
                fix="Create another catalog.",
            )
        return Chosen(place, config, None)
    keys = _keys_of(info)
    _refuse_redirection(old, config, is_key_given=keys is not None)
    return Chosen(place, structs.replace(config, sealed_keys=old.sealed_keys), keys)


def describe_storage(config: StorageConfig) -> wire.StorageConfigInfo:
    """A stored configuration as it is answered: without keys."""
    locations = list(config.allowed_locations)
    if isinstance(config, FileStorage):
        return wire.FileStorageConfigInfo(locations, config.storage_name)
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


def _config_of(info: wire.StorageConfigInfo, base: str) -> StorageConfig:
    if isinstance(info, (wire.GcpStorageConfigInfo, wire.AzureStorageConfigInfo)):
        raise BadInput(
            "This version does not serve this kind of storage",
            field="storageConfigInfo.storageType",
            fix="Use S3 or FILE.",
        )
    given = (
        resolve_location(each, field="storageConfigInfo.allowedLocations").text
        for each in info.allowed_locations or ()
    )
    allowed = _with(tuple(dict.fromkeys(given)), base)
    if isinstance(info, wire.FileStorageConfigInfo):
        return FileStorage(allowed, info.storage_name or None)
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


def _with(locations: tuple[str, ...], base: str) -> tuple[str, ...]:
    return locations if base in locations else (*locations, base)


def _keys_of(info: wire.StorageConfigInfo) -> S3Keys | None:
    if not isinstance(info, wire.AwsStorageConfigInfo):
        return None
    if not info.access_key_id and not info.secret_access_key:
        return None
    if not info.access_key_id or not info.secret_access_key:
        raise BadInput(
            "An access key needs its id and its secret",
            field="storageConfigInfo.accessKeyId",
            fix="Give accessKeyId and secretAccessKey, or neither.",
        )
    return S3Keys(info.access_key_id, Secret(info.secret_access_key))


def _refuse_redirection(old: S3Storage, new: S3Storage, *, is_key_given: bool) -> None:
    for name, field in (("role_arn", "roleArn"), ("external_id", "externalId")):
        before = getattr(old.sts, name)
        if before is not None and getattr(new.sts, name) != before:
            raise BadInput(
                "Whom a storage trusts cannot be changed",
                field=f"storageConfigInfo.{field}",
                fix="Send it as it is, or create another catalog.",
            )
    moved = [
        field
        for field, was, is_now in zip(_ADDRESSES, _addresses(old), _addresses(new), strict=True)
        if was != is_now
    ]
    if moved and old.sealed_keys is not None and not is_key_given:
        raise BadInput(
            "A stored access key is not used with another address",
            field="storageConfigInfo.accessKeyId",
            fix="Give accessKeyId and secretAccessKey together with the new address.",
            changed=", ".join(moved),
        )


def _addresses(config: S3Storage) -> tuple[str | None, ...]:
    return config.endpoint, config.endpoint_internal, config.sts.endpoint
