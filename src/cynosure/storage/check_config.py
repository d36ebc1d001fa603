"""What makes sense in a storage configuration, and what a server may be told to talk to.

Errors name fields as the management API does (`allowedLocations`, `roleArn` …).

A maintainer must not break: whatever the keys of a configuration are sent to is checked here. An account of
Azure is a host name that a location names, so only hosts of Azure's clouds are accepted there; any other
address is an `endpoint`, which is not changed without the keys (`api/management/storage.py`).
"""

import ipaddress
import re
import socket
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from cynosure.common.errors import BadInput
from cynosure.storage.config import (
    AzureStorage,
    FileStorage,
    GcsStorage,
    S3Storage,
    StorageConfig,
    allowed_locations,
)
from cynosure.storage.location import Location, SchemeClass, is_allowed

AUTHORITIES: Final = {
    "core.windows.net": "https://login.microsoftonline.com",
    "storage.azure.net": "https://login.microsoftonline.com",
    "core.usgovcloudapi.net": "https://login.microsoftonline.us",
    "core.chinacloudapi.cn": "https://login.chinacloudapi.cn",
}
"""The clouds of Azure: what the hosts of their accounts end with, and who gives tokens."""

_ARN: Final = re.compile(r"arn:[\w-]+:[\w-]+:[\w-]*:[\w-]*:[\x21-\x7e]{1,1024}", re.ASCII)
_EXTERNAL_ID: Final = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
_SERVICE_ACCOUNT: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,253}@[a-z0-9][a-z0-9.-]{0,253}")
_TENANT: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|\.(?!\.)){1,252}")
_SCHEMES: Final[dict[type[StorageConfig], tuple[SchemeClass, str]]] = {
    FileStorage: ("file", "file:"),
    S3Storage: ("s3", "s3:"),
    GcsStorage: ("gs", "gs:"),
    AzureStorage: ("az", "abfss:"),
}
_HARMLESS: Final = re.compile(r"[\w.:/%\[\]-]+", re.ASCII)
_MAX_NAME_CHARS: Final = 256
_METADATA_NAMES: Final = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "google.internal",
        "instance-data",
        "instance-data.ec2.internal",
        "ec2.internal",
    }
)
"""With what a bucket before it would make one of them."""
_METADATA_ADDRESSES: Final = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"))
)
"""Besides the link-local ones: of Amazon, Google, Alibaba and Azure."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
"""In which the last 32 bits are an address of IPv4: where networks translate (RFC 6052), and of old."""


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
    _check_name("storageName", config.storage_name)
    scheme, written = _SCHEMES[type(config)]
    for location in allowed:
        if location.scheme != scheme:
            raise BadInput(
                "An allowed location is of another kind than its storage",
                field="allowedLocations",
                fix=f"Use {written} locations, or another storage type.",
                location=location.text,
            )
        if scheme == "file" and not is_allowed(location, file_roots):
            raise BadInput(
                "This server does not serve files at this location",
                field="allowedLocations",
                fix="Choose a location below one of: "
                + (", ".join(root.text for root in file_roots) or "(none: files are not served here)")
                + "; or have the server's storage.file_roots name its directory.",
                location=location.text,
            )
    match config:
        case S3Storage():
            _check_s3(config)
        case GcsStorage():
            _check_gcs(config)
        case AzureStorage():
            _check_azure(config, allowed)


def check_bucket_hosts(config: S3Storage) -> None:
    """Refuse an endpoint that no bucket can be asked at. Not asked of catalogs that are there already."""
    if not config.path_style_access and any(map(_is_address, (config.endpoint, config.endpoint_internal))):
        raise BadInput(
            "The name of a bucket cannot stand before the numbers of an address",
            field="pathStyleAccess",
            fix="Set it, or give the endpoint by a name that has one for each bucket.",
        )


def _check_s3(config: S3Storage) -> None:
    if not (config.region.isascii() and config.region.replace("-", "").isalnum()):
        raise BadInput("A region is not valid", field="region", fix="Write it as in us-east-1.")
    _check_endpoints(
        endpoint=config.endpoint, endpointInternal=config.endpoint_internal, stsEndpoint=config.sts.endpoint
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


def _check_gcs(config: GcsStorage) -> None:
    account = config.gcs_service_account
    if account is not None and not _SERVICE_ACCOUNT.fullmatch(account):
        raise BadInput(
            "The name of a service account is not valid",
            field="gcsServiceAccount",
            fix="Write it as in name@project.iam.gserviceaccount.com.",
        )
    _check_endpoints(endpoint=config.endpoint, tokenEndpoint=config.token_endpoint)
    _check_private(endpoint=config.endpoint, tokenEndpoint=config.token_endpoint)


def _check_azure(config: AzureStorage, allowed: Sequence[Location]) -> None:
    if not _TENANT.fullmatch(config.tenant_id):
        raise BadInput(
            "The id of a tenant is not valid",
            field="tenantId",
            fix="Write it as in 01234567-89ab-cdef-0123-456789abcdef, or the name of its domain.",
        )
    _check_name("multiTenantAppName", config.multi_tenant_app_name)
    consent = config.consent_url
    if consent is not None and not (consent.startswith("https://") and consent.isprintable()):
        raise BadInput(
            "A consent URL is not valid", field="consentUrl", fix="Write it as in https://host/path."
        )
    _check_endpoints(endpoint=config.endpoint, authorityHost=config.authority_host)
    _check_private(authorityHost=config.authority_host)
    if config.endpoint is not None and not config.endpoint.startswith("https:"):
        raise BadInput(
            "Azure does not take tokens that come unencrypted", field="endpoint", fix="Use https://."
        )
    accounts = {location.authority.partition("@")[2] for location in allowed}
    if len(accounts) > 1:
        raise BadInput(
            "A storage is in more than one account",
            field="allowedLocations",
            fix="Name containers of one account, and create another catalog for the other.",
            accounts=", ".join(sorted(accounts)),
        )
    if config.endpoint is None and find_cloud(allowed[0]) is None:
        raise BadInput(
            "The host of an account is not in a cloud of Azure",
            field="allowedLocations",
            fix=f"Use a host that ends with {', '.join(AUTHORITIES)}, or set endpoint.",
            location=allowed[0].text,
        )


def find_cloud(location: Location) -> str | None:
    """What the host of an account ends with, where that is a cloud of Azure."""
    return next((each for each in AUTHORITIES if location.authority.endswith(f".dfs.{each}")), None)


def _check_name(field: str, name: str | None) -> None:
    if name is not None and not (name and len(name) <= _MAX_NAME_CHARS and name.isprintable()):
        raise BadInput(
            "A name in a storage configuration is not valid",
            field=field,
            fix=f"Use 1 to {_MAX_NAME_CHARS} printable characters.",
        )


def _check_endpoints(**urls: str | None) -> None:
    for field, url in urls.items():
        if url is None:
            continue
        if not _is_endpoint(url):
            raise BadInput(
                "An endpoint is not a URL",
                field=field,
                fix="Write https://host or http://host:port, without user, path or query.",
            )
        if is_metadata_service(urlsplit(url).hostname or ""):
            raise BadInput(
                "An endpoint is where machines of a cloud are told their own secrets",
                field=field,
                fix="Name the address of the object store.",
            )


def _check_private(**urls: str | None) -> None:
    """Of stores that are shown a token: S3 only ever sees a signature."""
    for field, url in urls.items():
        if url is not None and not (url.startswith("https:") or _is_loopback(urlsplit(url).hostname or "")):
            raise BadInput(
                "An endpoint that is shown tokens is not encrypted",
                field=field,
                fix="Use https://, or an address of this machine.",
            )


def _is_address(url: str | None) -> bool:
    try:
        ipaddress.ip_address(urlsplit(url or "").hostname or "")
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_metadata_service(host: str) -> bool:
    """Whether no store can be there, but what a cloud tells its machines: the server is one of them."""
    if host.rstrip(".") in _METADATA_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _is_odd_number(host)
    inner = _find_inner(address)
    return any(each.is_link_local or each in _METADATA_ADDRESSES for each in (address, inner))


def _find_inner(address: _Address) -> _Address:
    """The address that another one leads to: of IPv4, inside one of IPv6; else the same."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in each for each in _TRANSLATED):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_odd_number(host: str) -> bool:
    """Whether resolvers take it for an address that is not written as one: 2852039166, 0xa9fe, 169.254.

    A bucket before it could make another address of it.
    """
    try:
        socket.inet_aton(host.rstrip("."))
    except OSError:
        return False
    return True


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and "@" not in parts.netloc
            and (parts.port is None or parts.port > 0)
            and parts.path in ("", "/")
            # The parser leaves out what is empty, and new lines wherever they are.
            and _HARMLESS.fullmatch(url) is not None
        )
    except ValueError:
        return False
