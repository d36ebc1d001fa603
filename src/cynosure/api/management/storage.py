"""Storage configurations, from what a client wrote to what is stored.

Must not break: stored keys are used only where they were given for. Whoever changes the address that the
server speaks to gives the keys again; else the right to change a catalog would be the right to have its keys
used against another host. And who a storage trusts (role, service account, tenant, account) is set once.
"""

from typing import NamedTuple

from msgspec import structs

from cynosure.api.management import wire_catalogs as wire
from cynosure.api.management.storage_fields import describe_storage, read_config, read_keys
from cynosure.catalog.entities import CatalogEntity
from cynosure.common.errors import BadInput
from cynosure.storage.config import (
    AzureStorage,
    FileStorage,
    GcsStorage,
    S3Storage,
    StorageConfig,
    StorageKeys,
    allowed_locations,
)
from cynosure.storage.resolve import resolve_location

__all__ = ["Chosen", "change_storage", "choose_storage", "describe_storage"]


class Chosen(NamedTuple):
    """What a client's words come to."""

    base: str
    config: StorageConfig
    keys: StorageKeys | None


def choose_storage(base: str, info: wire.StorageConfigInfo) -> Chosen:
    """The storage of a new catalog. The base location is allowed by being named."""
    place = resolve_location(base, field=wire.BASE_LOCATION).text
    return Chosen(place, read_config(info, _allowed(info, place)), read_keys(info))


def change_storage(entity: CatalogEntity, base: str, info: wire.StorageConfigInfo | None) -> Chosen:
    """The storage of a catalog with a new base location, a new configuration, or both."""
    old = entity.storage
    place = resolve_location(base, field=wire.BASE_LOCATION).text if base else entity.base_location
    if info is None:
        allowed = _with(old.allowed_locations, place)
        return Chosen(place, structs.replace(old, allowed_locations=allowed), None)
    # Left out, they stay: only who says so takes a location from a catalog.
    allowed = _with(old.allowed_locations, place) if info.allowed_locations is None else _allowed(info, place)
    config, keys = read_config(info, allowed), read_keys(info)
    if type(old) is not type(config):
        raise BadInput(
            "The kind of a storage cannot be changed",
            field="storageConfigInfo.storageType",
            fix="Create another catalog.",
        )
    if isinstance(old, FileStorage):
        return Chosen(place, config, None)
    _refuse_redirection(old, config, is_key_given=keys is not None)
    return Chosen(place, structs.replace(config, sealed_keys=old.sealed_keys), keys)


def _allowed(info: wire.StorageConfigInfo, base: str) -> tuple[str, ...]:
    given = (
        resolve_location(each, field="storageConfigInfo.allowedLocations").text
        for each in info.allowed_locations or ()
    )
    return _with(tuple(dict.fromkeys(given)), base)


def _with(locations: tuple[str, ...], base: str) -> tuple[str, ...]:
    return locations if base in locations else (*locations, base)


def _refuse_redirection(
    old: S3Storage | GcsStorage | AzureStorage, new: StorageConfig, *, is_key_given: bool
) -> None:
    is_now = _trusted(new)
    for field, before in _trusted(old).items():
        if before is not None and is_now[field] != before:
            raise BadInput(
                "Whom a storage trusts cannot be changed",
                field=f"storageConfigInfo.{field}",
                fix="Send it as it is, or create another catalog.",
            )
    addresses = _addresses(new)
    moved = [field for field, before in _addresses(old).items() if addresses[field] != before]
    if moved and old.sealed_keys is not None and not is_key_given:
        keys, names = _KEY_FIELDS[type(old)]
        raise BadInput(
            "Stored keys are not used with another address",
            field=f"storageConfigInfo.{keys}",
            fix=f"Give {names} together with the new address.",
            changed=", ".join(moved),
        )


_KEY_FIELDS: dict[type[StorageConfig], tuple[str, str]] = {
    S3Storage: ("accessKeyId", "accessKeyId and secretAccessKey"),
    GcsStorage: ("serviceAccountKey", "serviceAccountKey"),
    AzureStorage: ("clientId", "clientId and clientSecret"),
}


def _trusted(config: StorageConfig) -> dict[str, str | None]:
    """Whose files these are and as whom they are reached, by the field that says it."""
    match config:
        case S3Storage():
            return {"roleArn": config.sts.role_arn, "externalId": config.sts.external_id}
        case GcsStorage():
            return {"gcsServiceAccount": config.gcs_service_account}
        case AzureStorage():
            # An account is a host, and stands in the locations.
            hosts = {place.authority.partition("@")[2] for place in allowed_locations(config)}
            return {"tenantId": config.tenant_id, "allowedLocations": " ".join(sorted(hosts))}
        case FileStorage():
            return {}


def _addresses(config: StorageConfig) -> dict[str, str | None]:
    """What the server speaks to, by the field that says it."""
    match config:
        case S3Storage():
            return {
                "endpoint": config.endpoint,
                "endpointInternal": config.endpoint_internal,
                "stsEndpoint": config.sts.endpoint,
            }
        case GcsStorage():
            return {"endpoint": config.endpoint, "tokenEndpoint": config.token_endpoint}
        case AzureStorage():
            return {"endpoint": config.endpoint, "authorityHost": config.authority_host}
        case FileStorage():
            return {}
