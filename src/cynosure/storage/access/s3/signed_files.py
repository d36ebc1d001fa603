"""Files in S3 as a client reaches them that has no keys: each request is signed for it.

A maintainer must not break: requests are made as clients make them, for the address that clients are told,
and sent as they were signed. Where the server has an address of its own for the store, it connects there.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit, urlunsplit
from xml.sax.saxutils import escape

from cynosure.storage.access.exchange import Answer, TokenService
from cynosure.storage.access.ports import Signed, StoreRequest
from cynosure.storage.access.s3.addresses import encode_path
from cynosure.storage.access.s3.covered_headers import PAYLOAD_HASH
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings


class SignedFiles:
    """Requests for objects of one store. `StorageRefused` when the store does not accept one."""

    def __init__(
        self, config: S3Storage, settings: StorageSettings, sign: Callable[[StoreRequest], Awaitable[Signed]]
    ) -> None:
        self._config = config
        self._sign = sign
        self._service = TokenService(settings)

    async def write(self, location: Location, data: bytes) -> None:
        """Write an object."""
        await self._send("PUT", location, location.segments, data)

    async def read(self, location: Location) -> bytes:
        """An object."""
        return (await self._send("GET", location, location.segments)).body

    async def delete(self, location: Location) -> None:
        """Delete an object."""
        await self._send("DELETE", location, location.segments)

    async def delete_many(self, locations: Sequence[Location]) -> None:
        """Delete objects of one bucket with one request."""
        keys = "".join(f"<Object><Key>{escape('/'.join(each.segments))}</Key></Object>" for each in locations)
        body = f"<Delete><Quiet>true</Quiet>{keys}</Delete>".encode()
        await self._send("POST", locations[0], (), body, query="?delete")

    async def _send(
        self, method: str, place: Location, key: Sequence[str], body: bytes = b"", query: str = ""
    ) -> Answer:
        headers = {PAYLOAD_HASH: hashlib.sha256(body).hexdigest()}
        if query:
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            headers["content-md5"] = base64.b64encode(digest).decode()
        signed = await self._sign(
            StoreRequest(
                method,
                self._uri(place.authority, key) + query,
                {name: [value] for name, value in headers.items()},
                self._config.region,
                body.decode() if query else None,
            )
        )
        sent = {name: ", ".join(values) for name, values in signed.headers.items()}
        answer = await self._service.send(method, self._reached(signed.uri), headers=sent, body=body)
        if not answer.is_success:
            raise StorageRefused(
                "The store refuses a request that was signed for it",
                method=method,
                status=answer.status,
                fix="Check the keys, and that endpoint is the address that the store knows itself by.",
            )
        return answer

    def _uri(self, bucket: str, key: Sequence[str]) -> str:
        domain = "amazonaws.com.cn" if self._config.region.startswith("cn-") else "amazonaws.com"
        parts = urlsplit(self._config.endpoint or f"https://s3.{self._config.region}.{domain}")
        path = encode_path("/".join(key))
        # As in `s3_bucket.py`: a bucket with dots has no host name that certificates cover.
        if self._config.path_style_access or "." in bucket:
            return f"{parts.scheme}://{parts.netloc}/{bucket}/{path}".removesuffix("/")
        return f"{parts.scheme}://{bucket}.{parts.netloc}/{path}"

    def _reached(self, uri: str) -> str:
        if self._config.endpoint_internal is None:
            return uri
        own = urlsplit(self._config.endpoint_internal)
        return urlunsplit(urlsplit(uri)._replace(scheme=own.scheme, netloc=own.netloc))
