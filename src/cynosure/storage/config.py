"""Where a catalog's files may lie and how they are reached: the storage part of a catalog's definition.

It is stored with the catalog, so fields only ever get added, with defaults; what belongs together is a struct
of its own, because more than 15 fields are encoded in another way. Errors name fields as the management API
does (`allowedLocations`, `roleArn` …).

Keys of an object store are kept in the configuration itself, sealed by the keyring (`common.keyring`) for the
catalog they belong to: `seal_s3_keys` when an operator sets them, `open_s3_keys` when the FileIO is built.
The *owner* (realm and id of the catalog) is authenticated with them, so sealed keys that are copied into
another catalog's configuration do not open there. Clear keys are `Secret`s that cannot be encoded.

A maintainer must not break: nothing here, nor in what is built from it, falls back to environment variables,
instance metadata or files in a home directory when keys are missing.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput, CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.location import Location, SchemeClass, is_allowed

_ARN = re.compile(r"arn:[\w-]+:[\w-]+:[\w-]*:[\w-]*:[\x21-\x7e]{1,1024}", re.ASCII)

_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_MAX_NAME_CHARS = 256

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
    """Access key and secret, made by `seal_s3_keys`. Without them the files cannot be reached yet: Apache
    Polaris' clients create catalogs without a key, and it is set afterwards."""
    storage_name: str | None = None
    """A name for this storage that operators and clients agree on."""
    sts: S3Sts = S3Sts()
    kms: S3Kms = S3Kms()


StorageConfig = FileStorage | S3Storage


class S3Keys(Struct, frozen=True):
    """An access key in clear, for as long as a FileIO needs it."""

    access_key_id: str
    secret_access_key: Secret


def allowed_locations(config: StorageConfig) -> tuple[Location, ...]:
    """The allowed locations, parsed."""
    return tuple(Location.parse(text, field="allowedLocations") for text in config.allowed_locations)


def check_storage(config: StorageConfig, *, file_roots: Sequence[Location]) -> None:
    """Refuse a configuration that cannot work or must not be: `BadInput` names the field.

    `file_roots` are the directories below which this server serves files at all; without any it does not.
    """
    allowed = allowed_locations(config)
    if not allowed:
        raise BadInput(
            "A storage has no allowed location",
            field="allowedLocations",
            fix="Name at least the base location of the catalog.",
        )
    name = config.storage_name
    if name is not None and not (name and len(name) <= _MAX_NAME_CHARS and name.isprintable()):
        raise BadInput(
            "The name of a storage is not valid",
            field="storageName",
            fix=f"Use 1 to {_MAX_NAME_CHARS} printable characters.",
        )
    scheme: SchemeClass = "file" if isinstance(config, FileStorage) else "s3"
    for location in allowed:
        if location.scheme != scheme:
            raise BadInput(
                "An allowed location is of another kind than its storage",
                field="allowedLocations",
                fix=f"Use {scheme}: locations, or another storage type.",
                location=location.text,
            )
        if scheme == "file" and not is_allowed(location, file_roots):
            raise BadInput(
                "This server does not serve files at this location",
                field="allowedLocations",
                fix="Choose a location below one of: "
                + (", ".join(root.text for root in file_roots) or "(none: files are not served here)"),
                location=location.text,
            )
    if isinstance(config, S3Storage):
        _check_s3(config)


def _check_s3(config: S3Storage) -> None:
    if not config.region.replace("-", "").isalnum():
        raise BadInput("A region is not valid", field="region", fix="Write it as in us-east-1.")
    for field, url in (
        ("endpoint", config.endpoint),
        ("endpointInternal", config.endpoint_internal),
        ("stsEndpoint", config.sts.endpoint),
    ):
        if url is not None and not _is_endpoint(url):
            raise BadInput(
                "An endpoint is not a URL",
                field=field,
                fix="Write https://host or http://host:port, without user, path or query.",
            )
    for field, arn in (
        ("roleArn", config.sts.role_arn),
        ("userArn", config.sts.user_arn),
        ("currentKmsKey", config.kms.current_key),
        *(("allowedKmsKeys", each) for each in config.kms.allowed_keys),
    ):
        if arn is not None and not _ARN.fullmatch(arn):
            raise BadInput(
                "A resource name is not valid",
                field=field,
                fix="Write it as in arn:aws:iam::ACCOUNT:role/NAME.",
            )
    if config.sts.external_id is not None and not _EXTERNAL_ID.fullmatch(config.sts.external_id):
        raise BadInput(
            "An external id is not valid",
            field="externalId",
            fix="Use 2 to 1224 letters, digits and + = , . @ : / - _ characters.",
        )


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and "@" not in parts.netloc
            and (parts.port is None or parts.port > 0)
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False


def seal_s3_keys(keys: S3Keys, keyring: Keyring, owner: Owner) -> bytes:
    """What `S3Storage.sealed_keys` holds."""
    clear = msgspec.msgpack.encode((keys.access_key_id, keys.secret_access_key.reveal()))
    return keyring.encrypt(clear, ("storage", "s3-keys", *owner))


def open_s3_keys(sealed: bytes, keyring: Keyring, owner: Owner) -> S3Keys:
    """The keys in clear. `CorruptObject` when they were sealed for another owner."""
    clear = keyring.decrypt(sealed, ("storage", "s3-keys", *owner))
    try:
        access_key_id, secret = msgspec.msgpack.decode(clear, type=tuple[str, str])
    except msgspec.DecodeError as error:
        raise CorruptObject("Sealed S3 keys are not what they should be") from error
    return S3Keys(access_key_id, Secret(secret))
