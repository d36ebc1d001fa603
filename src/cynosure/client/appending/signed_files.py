"""Files in S3 without any credentials: the catalog signs each request (`POST …/tables/{table}/sign`).

A maintainer must not break: a signature covers the hash of what is sent and is used for one request only, and
it is in no error.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import IO, Any, Final
from urllib.parse import quote, urlsplit

import httpx
from msgspec import Struct

from cynosure.common.errors import BadInput, CynosureError, Forbidden, NotFound, Unavailable

_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_MAX_BYTES: Final = 5 * 2**30
"""What S3 takes in one request."""
_CHUNK: Final = 2**20
_ATTEMPTS: Final = 4
_FIRST_PAUSE_S: Final = 0.2


class Signed(Struct):
    """An answer of `signRequest`."""

    uri: str
    headers: dict[str, list[str]]

    def __repr__(self) -> str:
        return "Signed(***)"


Sign = Callable[[dict[str, Any]], Awaitable[Signed]]
"""Has a request signed."""


class SignedFiles:
    """Objects of one bucket."""

    def __init__(self, *, region: str, address: str, root: str, sign: Sign) -> None:
        """`address` is the bucket's URL, `root` what its locations begin with; both end in a slash."""
        self._region = region
        self._address = address
        self._root = root
        self._sign = sign

    async def has(self, location: str, size_bytes: int) -> bool:  # noqa: D102
        answer = await self._send("HEAD", location)
        return answer.status_code == 200 and answer.headers.get("content-length") == str(size_bytes)

    async def read(self, location: str, into: IO[bytes]) -> int:  # noqa: D102
        start = into.tell()
        answer = await self._send("GET", location, into=into)
        if answer.status_code == 404:
            raise gone(location)
        if answer.status_code != 200:
            raise _translate(answer.status_code, location, "A file cannot be read")
        return into.tell() - start

    async def write(self, location: str, content: IO[bytes]) -> None:  # noqa: D102
        digest = hashlib.sha256()
        async for chunk in _read(content):
            digest.update(chunk)
        size_bytes = content.tell()
        if size_bytes > _MAX_BYTES:
            raise BadInput(
                "A file is too large for a request that the catalog signs",
                field="write.target-file-size-bytes",
                fix="Let the table have smaller files.",
                location=location,
            )
        answer = await self._send("PUT", location, content, digest.hexdigest(), size_bytes)
        if answer.status_code != 200:
            raise _translate(answer.status_code, location)

    async def delete(self, locations: Sequence[str]) -> None:  # noqa: D102
        for location in locations:
            with suppress(CynosureError):
                await self._send("DELETE", location)

    async def _send(
        self,
        method: str,
        location: str,
        content: IO[bytes] | None = None,
        digest: str = _EMPTY,
        size_bytes: int = 0,
        into: IO[bytes] | None = None,
    ) -> httpx.Response:
        """`into` gets the body of an answer that is not an error, from where it stands."""
        start = 0 if into is None else into.tell()
        uri = self._address + quote(location.removeprefix(self._root), safe="/~")
        asked = {"x-amz-content-sha256": [digest]}
        for attempt in range(_ATTEMPTS):
            signed = await self._sign(
                {"region": self._region, "uri": uri, "method": method, "headers": asked, "provider": "s3"}
            )
            headers = [(name, value) for name, values in signed.headers.items() for value in values]
            if content is not None:
                headers.append(("content-length", str(size_bytes)))
            try:
                # Nothing of the environment: a signature goes to the store and nowhere else.
                async with httpx.AsyncClient(timeout=600, trust_env=False) as http:
                    sent = None if content is None else _read(content)
                    async with http.stream(method, signed.uri, headers=headers, content=sent) as answer:
                        await _keep(answer, into, start)
                if answer.status_code < 500:
                    return answer
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS - 1:
                    raise _translate(0, location) from error
            await asyncio.sleep(_FIRST_PAUSE_S * 2**attempt)
        return answer


async def _keep(answer: httpx.Response, into: IO[bytes] | None, start: int) -> None:
    if into is None or answer.status_code != 200:
        await answer.aread()
        return
    # An attempt before this one may have been cut off.
    into.seek(start)
    into.truncate()
    async for chunk in answer.aiter_raw(_CHUNK):
        await asyncio.to_thread(into.write, chunk)


async def _read(content: IO[bytes]) -> AsyncIterator[bytes]:
    content.seek(0)
    while chunk := await asyncio.to_thread(content.read, _CHUNK):
        yield chunk


def address_of(bucket: str, endpoint: str, *, is_path_style: bool) -> str:
    """The URL of a bucket."""
    if is_path_style:
        return f"{endpoint}/{bucket}/"
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{bucket}.{parts.netloc}/"


def gone(location: str) -> NotFound:
    """There is no such file."""
    return NotFound(
        "A file is not there any more", fix="Run it again: the table may have gone on.", location=location
    )


def _translate(status: int, location: str, message: str = "A file cannot be written") -> CynosureError:
    if status in (401, 403):
        return Forbidden(
            "The storage refuses a request that the catalog signed",
            fix="Check the storage of the catalog: cynosure catalogs check.",
            location=location,
        )
    return Unavailable(
        message,
        fix="Check that this machine reaches the storage, and try again.",
        location=location,
        status=status,
    )
