"""Shared access signatures that are made with a user-delegation key.

The text that is signed is fixed, field by field and in order, by the version of the service
(<https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas>); `VERSION` is the newest
that the emulator of the tests checks as well.

A maintainer must not break: the resource is signed as it is named, the query is percent-encoded; and a
directory is signed with its depth, without which the service would take it for another.
"""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from cynosure.common.secrets import Secret

VERSION: Final = "2025-01-05"
READ: Final = "rl"
"""Read and list."""
WRITE: Final = "racwdl"
"""Also add, create, write and delete: the order is the service's."""


class DelegationKey(Struct, frozen=True):
    """A key that the account has given for signatures."""

    object_id: str
    tenant_id: str
    start: str
    expiry: str
    service: str
    version: str
    value: Secret
    """In base 64."""
    issued_ms: int
    expires_ms: int


def sign(
    key: DelegationKey,
    *,
    account: str,
    container: str,
    directory: tuple[str, ...],
    is_writable: bool,
    expires_ms: int,
) -> str:
    """A signature, as the query of a URL, for a container or, where one is named, a directory of it."""
    permissions = WRITE if is_writable else READ
    expiry = format_time(expires_ms)
    resource = "d" if directory else "c"
    path = "/".join(("/blob", account, container, *directory))
    signed = (
        permissions,
        "",  # start: at once
        expiry,
        path,
        key.object_id,
        key.tenant_id,
        key.start,
        key.expiry,
        key.service,
        key.version,
        "",  # authorized user
        "",  # unauthorized user
        "",  # correlation id
        "",  # addresses
        "https",
        VERSION,
        resource,
        "",  # snapshot
        "",  # encryption scope
        "",  # headers of answers: cache control, disposition, encoding, language, type
        "",
        "",
        "",
        "",
    )
    digest = hmac.digest(base64.b64decode(key.value.reveal()), "\n".join(signed).encode(), hashlib.sha256)
    query = {
        "sv": VERSION,
        "spr": "https",
        "se": expiry,
        "sr": resource,
        "sp": permissions,
        "skoid": key.object_id,
        "sktid": key.tenant_id,
        "skt": key.start,
        "ske": key.expiry,
        "sks": key.service,
        "skv": key.version,
    }
    if directory:
        query["sdd"] = str(len(directory))
    query["sig"] = base64.b64encode(digest).decode()
    return urlencode(query, quote_via=quote, safe="")


def format_time(time_ms: int) -> str:
    """A time as the service writes it: whole seconds."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
