"""Amazon's signature version 4 of one request, for its token service and for S3.

Our own sixty lines: botocore's signer does the same in several times the CPU, and its package looks for
credentials where ours never may. Tests hold this to botocore's.

A maintainer must not break: exactly what is named in `signed` is covered, in the order of its names, and the
path is signed as it is sent. Keys derived from a secret are kept for a day and region at most.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from cynosure.common.secrets import Secret
from cynosure.storage.access.s3.keys import S3Session

ALGORITHM: Final = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD: Final = "UNSIGNED-PAYLOAD"
_UNRESERVED: Final = "-_.~"


def amz_date(now_us: int) -> str:
    """A time as the header `x-amz-date` has it."""
    return datetime.fromtimestamp(now_us // 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """A query as it is signed: names and values encoded, in the order of the encoded names and values."""
    encoded = ((quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED)) for name, value in pairs)
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def authorize(
    session: S3Session,
    *,
    method: str,
    path: str,
    query: str,
    signed: Mapping[str, str],
    payload_sha256: str,
    region: str,
    service: str,
) -> str:
    """The value of the header `Authorization`.

    `path` is percent-encoded as it is sent, `query` comes from `encode_query`. `signed` holds every header to
    be covered, names in lower case, values with single spaces: `host` and `x-amz-date` among them, and
    `x-amz-security-token` where the session has a token.
    """
    date = signed["x-amz-date"]
    names = sorted(signed)
    covered = ";".join(names)
    headers = "".join(f"{name}:{signed[name].strip()}\n" for name in names)
    request = f"{method}\n{path or '/'}\n{query}\n{headers}\n{covered}\n{payload_sha256}"
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = _signing_key(session.secret_access_key, date[:8], region, service)
    signature = hmac.new(key, f"{ALGORITHM}\n{date}\n{scope}\n{digest}".encode(), hashlib.sha256).hexdigest()
    return (
        f"{ALGORITHM} Credential={session.access_key_id}/{scope}, "
        f"SignedHeaders={covered}, Signature={signature}"
    )


@lru_cache(maxsize=64)
def _signing_key(secret: Secret, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret.reveal()}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
