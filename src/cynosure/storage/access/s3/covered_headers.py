"""Headers of a request to S3: which may be signed, and as what.

Amazon refuses requests that carry an `x-amz-` header which is not signed, so what is not allowed here cannot
be sent. Headers without that prefix only describe the transfer or the content, and are not looked at.

A maintainer must not break: it is a list of what is allowed. A header that is new to S3 stays out until
someone has read what it does.
"""

import re
from collections.abc import Mapping
from typing import Final

from cynosure.common.errors import BadInput
from cynosure.storage.config import S3Kms

COPY_SOURCE: Final = "x-amz-copy-source"
PAYLOAD_HASH: Final = "x-amz-content-sha256"
TRAILER: Final = "x-amz-trailer"

_PREFIX: Final = "x-amz-"
_SSE: Final = "x-amz-server-side-encryption"
_SSE_KEY: Final = "x-amz-server-side-encryption-aws-kms-key-id"
_ALLOWED: Final = frozenset(
    {
        COPY_SOURCE,
        PAYLOAD_HASH,
        TRAILER,
        _SSE,
        _SSE_KEY,
        "x-amz-server-side-encryption-bucket-key-enabled",
        "x-amz-copy-source-if-match",
        "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-if-none-match",
        "x-amz-copy-source-if-unmodified-since",
        "x-amz-copy-source-range",
        "x-amz-decoded-content-length",
        "x-amz-expected-bucket-owner",
        "x-amz-metadata-directive",
        "x-amz-mp-object-size",
        "x-amz-sdk-checksum-algorithm",
        "x-amz-source-expected-bucket-owner",
        "x-amz-storage-class",
        "x-amz-te",
        "x-amz-user-agent",
    }
)
_ALLOWED_PREFIXES: Final = ("x-amz-checksum-", "x-amz-meta-")
_ALSO_SIGNED: Final = frozenset({"content-md5", "content-type"})
_NAME: Final = re.compile(r"[a-z0-9_.-]+")


def read_headers(headers: Mapping[str, list[str]], *, host: str, kms: S3Kms) -> dict[str, str]:
    """The headers that a signature covers, by name in lower case. `BadInput` for what may not be sent."""
    covered: dict[str, str] = {}
    for given, values in headers.items():
        name = given.lower()
        if name == "authorization":
            raise _refuse(name, "A request is signed already", "Send it without a signature.")
        if name == "host":
            if [value.lower() for value in values] != [host]:
                raise _refuse(name, "A request names another host than its URI", "Leave the header out.")
        elif name.startswith(_PREFIX) or name in _ALSO_SIGNED:
            if name in covered or len(values) != 1 or not _is_plain(name, values[0]):
                raise _refuse(name, "A header cannot be signed", "Send it once, in printable ASCII.")
            covered[name] = " ".join(values[0].split())
    for name in covered:
        if not (name in _ALLOWED or name in _ALSO_SIGNED or name.startswith(_ALLOWED_PREFIXES)):
            raise _refuse(name, "A header is not allowed in signed requests", "Leave it out.")
    _check_encryption(covered, kms)
    return covered


def _check_encryption(covered: Mapping[str, str], kms: S3Kms) -> None:
    wanted, key = covered.get(_SSE), covered.get(_SSE_KEY)
    if wanted == "aws:kms":
        if key is None or key not in (kms.current_key, *kms.allowed_keys):
            raise _refuse(
                _SSE_KEY,
                "A request wants to encrypt with a key that is not the catalog's",
                "Name one of the keys that the catalog's storage allows.",
            )
    elif key is not None or wanted not in (None, "AES256"):
        raise _refuse(_SSE, "An encryption is not allowed in signed requests", "Use AES256 or aws:kms.")


def _is_plain(name: str, value: str) -> bool:
    return value.isascii() and value.isprintable() and _NAME.fullmatch(name) is not None


def _refuse(name: str, message: str, fix: str) -> BadInput:
    # The name comes from the client and goes into messages: cut, and never with control characters.
    return BadInput(message, field=f"headers.{ascii(name[:64])[1:-1]}", fix=fix)
