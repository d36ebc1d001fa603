"""Public documents of other parties' servers: fetched once, bounded in time and size.

A maintainer must not break: over the network only HTTPS with a verified certificate, and no redirects: what
comes back decides whom we trust.
"""

import asyncio
from typing import Final

import httpx

from cynosure.client.tls import ClientTls, make_context
from cynosure.common.addresses import is_safe_url
from cynosure.common.errors import Unavailable

MAX_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 10.0


async def fetch_document(
    url: str, *, tls: ClientTls | None = None, max_bytes: int = MAX_BYTES, timeout_s: float = TIMEOUT_S
) -> bytes:
    """The document at a URL that `is_safe_url` accepts. `Unavailable` when it cannot be had."""
    if not is_safe_url(url):
        raise _failed("not HTTPS")
    try:
        async with (
            # httpx limits each read; a server that drips bytes would outlast it.
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(verify=make_context(tls or ClientTls()), trust_env=False) as http,
            http.stream("GET", url, headers={"accept": "application/json"}) as response,
        ):
            if response.status_code != 200:
                raise _failed(f"status {response.status_code}")
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > max_bytes:
                    raise _failed("too large")
            return body
    except (httpx.HTTPError, TimeoutError) as error:
        raise _failed(type(error).__name__) from error


def _failed(reason: str) -> Unavailable:
    return Unavailable(
        "A document of another server cannot be fetched",
        fix="Check that the server runs, and that its address and certificate are right.",
        reason=reason,
    )
