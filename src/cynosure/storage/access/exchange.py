"""Requests to the token services of clouds: a request, an answer, bounded in time and size.

A maintainer must not break: nothing follows a redirect, because a secret goes with every request; and neither
request nor answer is ever shown, because both hold secrets. Of the environment, only proxies have a say, as
for the files themselves (`backends/s3_bucket.py`).
"""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.settings import StorageSettings

_MOST_BYTES: Final = 1 << 20
_PLAIN: Final = {"accept-encoding": "identity"}
_FAILURES: Final = frozenset({429, 500, *range(502, 600)})


class Answer(Struct, frozen=True):
    """What a token service said: success, or a refusal."""

    status: int
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether it gave what was asked for."""
        return 200 <= self.status < 300

    def __repr__(self) -> str:
        return f"Answer({self.status}, …)"


class TokenService:
    """Sends requests. Each has a connection of its own: they are rare, and none is left to be closed."""

    def __init__(self, settings: StorageSettings) -> None:
        self._timeout_s = settings.operation_timeout.total_seconds()
        self._timeout = httpx.Timeout(
            settings.stall_timeout.total_seconds(), connect=settings.connect_timeout.total_seconds()
        )
        self._ca_file = settings.ca_file
        self._context: ssl.SSLContext | None = None

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer, be it a refusal. `StorageUnavailable` when the service fails or gives none."""
        return await self.send("POST", url, headers=headers, body=body)

    async def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `post`, with any method; without a body where it is empty."""
        if self._context is None:
            # Reads and parses the certificates of all authorities.
            self._context = await asyncio.to_thread(_make_context, self._ca_file)
        try:
            async with (
                # httpx limits each read; a server that drips bytes would outlast it.
                asyncio.timeout(self._timeout_s),
                httpx.AsyncClient(verify=self._context, timeout=self._timeout) as http,
                http.stream(method, url, headers={**headers, **_PLAIN}, content=body or None) as response,
            ):
                answer = b""
                # As they come: a small answer may unpack to a very large one.
                async for chunk in response.aiter_raw():
                    answer += chunk
                    if len(answer) > _MOST_BYTES:
                        raise _unavailable(url, "answer too large")
                # 501 is how stores say that they have no such service: a refusal, not a failure.
                if response.status_code in _FAILURES:
                    raise _unavailable(url, f"status {response.status_code}")
                return Answer(response.status_code, answer)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ssl.SSLError) as error:
            raise _unavailable(url, type(error).__name__) from error


def _make_context(ca_file: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


def _unavailable(url: str, reason: str) -> StorageUnavailable:
    # The host only: the rest may say what is asked for.
    return StorageUnavailable(
        "The service that gives credentials for a storage does not answer or fails",
        host=urlsplit(url).netloc,
        reason=reason,
        fix="Try again; if it lasts, check the addresses in the catalog's storage configuration.",
    )
