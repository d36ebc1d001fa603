"""Where a catalog's files may lie and how they are reached: the storage part of a catalog's definition.

It is stored with the catalog, so fields only ever get added, with defaults; what belongs together is a struct
of its own, because more than 15 fields are encoded in another way. What makes sense in them is the matter of
`check_config.py`.

Keys of an object store are kept in the configuration itself, sealed by the keyring (`common.keyring`) for the
catalog they belong to: `seal_keys` when an operator sets them, `open_…_keys` when the storage is opened.
The *owner* (realm and id of the catalog) is authenticated with them, so sealed keys that are copied into
another catalog's configuration do not open there. Clear keys are `Secret`s that cannot be encoded.

A maintainer must not break: nothing here, nor in what is built from it, falls back to environment variables,
instance metadata or files in a home directory when keys are missing.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from cynosure.common.errors import CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.location import Location

Owner = Sequence[str]
"""What sealed keys belong to: the realm and the id of the catalog."""


class FileStorage(
    Struct, frozen=True, tag_field="storageType", tag="FILE", rename="camel", omit_defaults=True
):
    """Directories of the machine that the server runs on."""

    allowed_locations: tuple[str, ...]
    storage_name: str | None = None


class S3Sts(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How credentials for clients are obtained."""

    role_arn: str | None = None
    """The role to assume."""
    external_id: str | None = None
    """What the role's owner demands to be told by whoever assumes it."""
    user_arn: str | None = None
    """Who assumes the role, for its owner to trust."""
    endpoint: str | None = None
    """URL of the service. Left out: the storage's `endpoint_internal`, else its `endpoint`."""
    is_unavailable: bool = False
    """The store has no such service."""


class S3Kms(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The keys that files are encrypted with."""

    current_key: str | None = None
    """The one for new files."""
    allowed_keys: tuple[str, ...] = ()
    """Further ones that files may be encrypted with."""
    is_unavailable: bool = False
    """The store has no key service, so that policies must not mention one."""


class S3Storage(
    Struct, frozen=True, kw_only=True, tag_field="storageType", tag="S3", rename="camel", omit_defaults=True
):
    """Buckets of Amazon S3 or of a store that speaks its protocol."""

    allowed_locations: tuple[str, ...]
    region: str = "us-east-1"
    endpoint: str | None = None
    """URL that clients use. Left out: Amazon's for the region."""
    endpoint_internal: str | None = None
    """URL that this server uses, where it is another."""
    path_style_access: bool = False
    """The bucket is the first part of the path instead of the host name."""
    sealed_keys: bytes | None = None
    """Access key and secret, made by `seal_keys`. Without them the files cannot be reached yet: Apache
    Polaris' clients create catalogs without a key, and it is set afterwards."""
    storage_name: str | None = None
    """A name for this storage that operators and clients agree on."""
    sts: S3Sts = S3Sts()
    kms: S3Kms = S3Kms()


class GcsStorage(
    Struct, frozen=True, kw_only=True, tag_field="storageType", tag="GCS", rename="camel", omit_defaults=True
):
    """Buckets of Google Cloud Storage."""

    allowed_locations: tuple[str, ...]
    gcs_service_account: str | None = None
    """The service account that reaches the files, impersonated by the key's own. Left out: the key's own."""
    endpoint: str | None = None
    """URL of the storage, for this server and its clients. Left out: Google's."""
    token_endpoint: str | None = None
    """URL that stands for all of Google's token services. Left out: theirs."""
    sealed_keys: bytes | None = None
    """Key of a service account, made by `seal_keys`."""
    storage_name: str | None = None


class AzureStorage(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="storageType",
    tag="AZURE",
    rename="camel",
    omit_defaults=True,
):
    """Containers of one account of Azure Blob Storage or Data Lake Storage."""

    allowed_locations: tuple[str, ...]
    tenant_id: str
    """The directory in which the application that reaches the files has its account."""
    multi_tenant_app_name: str | None = None
    """The application, for the owner of the tenant to find."""
    consent_url: str | None = None
    """Where the owner of the tenant consents to it."""
    hierarchical: bool = False
    """The account has directories (hierarchical namespace), so that credentials can be given for one."""
    endpoint: str | None = None
    """URL that stands for the account's host, for this server and its clients: an emulator, a gateway. The
    account is the first part of the path there. Left out: the host that the locations name."""
    authority_host: str | None = None
    """URL of the service that gives tokens. Left out: Microsoft's of the cloud that the account is in."""
    sealed_keys: bytes | None = None
    """Client id and secret of the application, made by `seal_keys`."""
    storage_name: str | None = None


StorageConfig = FileStorage | S3Storage | GcsStorage | AzureStorage


class S3Keys(Struct, frozen=True):
    """An access key in clear, for as long as a FileIO needs it."""

    access_key_id: str
    secret_access_key: Secret


class GcsKeys(Struct, frozen=True):
    """The key of a service account in clear."""

    client_email: str
    private_key_id: str
    private_key: Secret
    """In PEM."""


class AzureKeys(Struct, frozen=True):
    """The secret of a registered application in clear."""

    client_id: str
    client_secret: Secret


StorageKeys = S3Keys | GcsKeys | AzureKeys

KEYS_OF: dict[type[StorageConfig], type[StorageKeys]] = {
    S3Storage: S3Keys,
    GcsStorage: GcsKeys,
    AzureStorage: AzureKeys,
}
"""Which keys fit which storage; local files have none."""


def allowed_locations(config: StorageConfig) -> tuple[Location, ...]:
    """The allowed locations, parsed."""
    return tuple(Location.parse(text, field="allowedLocations") for text in config.allowed_locations)


def seal_keys(keys: StorageKeys, keyring: Keyring, owner: Owner) -> bytes:
    """What the field `sealed_keys` of a storage holds."""
    parts: tuple[str, ...]
    match keys:
        case S3Keys(access_key_id, secret):
            kind, parts = "s3-keys", (access_key_id, secret.reveal())
        case AzureKeys(client_id, secret):
            kind, parts = "azure-keys", (client_id, secret.reveal())
        case GcsKeys(email, key_id, secret):
            kind, parts = "gcs-keys", (email, key_id, secret.reveal())
    return keyring.encrypt(msgspec.msgpack.encode(parts), ("storage", kind, *owner))


def rewrap_keys(config: StorageConfig, keyring: Keyring, owner: Owner) -> StorageConfig:
    """The configuration with its keys under the primary master key."""
    match config:
        case S3Storage():
            kind = "s3-keys"
        case GcsStorage():
            kind = "gcs-keys"
        case AzureStorage():
            kind = "azure-keys"
        case FileStorage():
            return config
    if config.sealed_keys is None:
        return config
    rewrapped = keyring.rewrap(config.sealed_keys, ("storage", kind, *owner))
    return msgspec.structs.replace(config, sealed_keys=rewrapped)


def open_s3_keys(sealed: bytes, keyring: Keyring, owner: Owner) -> S3Keys:
    """The keys in clear. `CorruptObject` when they were sealed for another owner."""
    access_key_id, secret = _open(sealed, "s3-keys", 2, keyring, owner)
    return S3Keys(access_key_id, Secret(secret))


def open_gcs_keys(sealed: bytes, keyring: Keyring, owner: Owner) -> GcsKeys:
    """As `open_s3_keys`."""
    email, key_id, private_key = _open(sealed, "gcs-keys", 3, keyring, owner)
    return GcsKeys(email, key_id, Secret(private_key))


def open_azure_keys(sealed: bytes, keyring: Keyring, owner: Owner) -> AzureKeys:
    """As `open_s3_keys`."""
    client_id, secret = _open(sealed, "azure-keys", 2, keyring, owner)
    return AzureKeys(client_id, Secret(secret))


def _open(sealed: bytes, kind: str, count: int, keyring: Keyring, owner: Owner) -> tuple[str, ...]:
    clear = keyring.decrypt(sealed, ("storage", kind, *owner))
    try:
        parts = msgspec.msgpack.decode(clear, type=tuple[str, ...])
    except msgspec.DecodeError as error:
        raise CorruptObject("Sealed keys of a storage are not what they should be") from error
    if len(parts) != count:
        raise CorruptObject("Sealed keys of a storage are not what they should be")
    return parts
