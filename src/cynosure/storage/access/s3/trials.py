"""What a store checks of a signed request, found out by trying, because not every store checks all of it.

A signature binds the hash of the body and every `x-amz-` header. Amazon refuses a request that differs; of
others, some delete what an unsigned body names, or copy from where an unsigned header says. With keys that
reach more than one table, such a store would let a client change its request after we have checked it.

So before the first request where that matters, deletions of files that do not exist are sent: as signed, with
another body, with another header. Amazon itself is taken at its word.

A maintainer must not break: what could not be tried counts as not checked.
"""

import asyncio
import base64
import hashlib
from typing import Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.s3.addresses import encode_path
from cynosure.storage.access.s3.covered_headers import COPY_SOURCE, PAYLOAD_HASH
from cynosure.storage.access.s3.keys import S3KeySource
from cynosure.storage.access.s3.requests import S3Request
from cynosure.storage.access.s3.sigv4 import amz_date, authorize
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings

_NAME: Final = ".cynosure-signature-trial"
_FIX: Final = "Give the catalog's storage a token service, so that clients get credentials of their own"


class Checks(Struct, frozen=True):
    """What a store compares with the signature."""

    bodies: bool
    headers: bool


class Trials:
    """What one store checks, once it is known."""

    def __init__(self, config: S3Storage, keys: S3KeySource, settings: StorageSettings, clock: Clock) -> None:
        self._endpoint = urlsplit(config.endpoint_internal or config.endpoint or "")
        self._is_path_style = config.path_style_access
        self._region = config.region
        self._keys = keys
        self._clock = clock
        self._service = TokenService(settings)
        self._trying = asyncio.Lock()
        self._known = Checks(bodies=True, headers=True) if config.endpoint is None else None

    async def require_bound(self, request: S3Request, place: Location) -> None:
        """Refuse to sign what could be changed into another request. The trials are made in `place`."""
        is_bulk = request.method == "POST" and not request.address.key
        if not is_bulk and request.method != "PUT":
            return
        checks = self._known or await self._try_once(place)
        if is_bulk and not checks.bodies:
            raise StorageRefused(
                "This store deletes what an unsigned body names, so bulk deletions are not signed",
                fix=f"{_FIX}, or delete one by one.",
            )
        if not checks.headers:
            raise StorageRefused(
                "This store honours headers that are not signed, so writes are not signed", fix=f"{_FIX}."
            )

    async def _try_once(self, place: Location) -> Checks:
        async with self._trying:
            if self._known is None:
                self._known = await self._try(place)
            return self._known

    async def _try(self, place: Location) -> Checks:
        first, second = (_deletion(place.child(f"{_NAME}-{number}")) for number in (1, 2))
        copy_source = {COPY_SOURCE: encode_path(f"{place.authority}/{'/'.join(place.segments)}/{_NAME}")}
        await self._send_as_signed(place.authority, first)
        other_body = await self._send(place.authority, signed=first, sent=second)
        other_header = await self._send(place.authority, signed=first, sent=first, unsigned=copy_source)
        # Once more, so that nothing counts as a check that was a refusal of everything in between.
        await self._send_as_signed(place.authority, first)
        return Checks(bodies=other_body >= 400, headers=other_header >= 400)

    async def _send_as_signed(self, bucket: str, deletion: bytes) -> None:
        status = await self._send(bucket, signed=deletion, sent=deletion)
        if not 200 <= status < 300:
            raise StorageRefused(
                "A store refuses the trial whether it checks signatures",
                status=status,
                fix="Check that the catalog's key may delete files.",
            )

    async def _send(
        self, bucket: str, *, signed: bytes, sent: bytes, unsigned: dict[str, str] | None = None
    ) -> int:
        session = await self._keys.load()
        digest = hashlib.sha256(signed).hexdigest()
        known = self._endpoint.netloc
        host, path = (known, f"/{bucket}") if self._is_path_style else (f"{bucket}.{known}", "/")
        headers = {
            "host": host,
            "x-amz-date": amz_date(self._clock.now_us()),
            PAYLOAD_HASH: digest,
        }
        if session.session_token is not None:
            headers["x-amz-security-token"] = session.session_token.reveal()
        headers["authorization"] = authorize(
            session,
            method="POST",
            path=path,
            query="delete=",
            signed=headers,
            payload_sha256=digest,
            region=self._region,
            service="s3",
        )
        # Some stores demand it; it is true of what is sent, so it is never what they refuse.
        headers["content-md5"] = base64.b64encode(hashlib.md5(sent, usedforsecurity=False).digest()).decode()
        headers.update(unsigned or {})
        url = f"{self._endpoint.scheme}://{host}{path}?delete"
        return (await self._service.post(url, headers=headers, body=sent)).status


def _deletion(location: Location) -> bytes:
    key = escape("/".join(location.segments))
    return f"<Delete><Object><Key>{key}</Key></Object></Delete>".encode()
