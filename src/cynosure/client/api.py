"""Requests in somebody's name: a token where one is needed, the realm, names in paths.

Must not break: a refused token is renewed once and no more; what is refused again is the answer.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from cynosure.client.http import HttpClient, Reply
from cynosure.client.tokens import TokenSource
from cynosure.common.errors import NotAuthenticated

REALM_HEADER: Final = "Polaris-Realm"


def realm_headers(realm: str | None) -> dict[str, str]:
    """What names a realm to a server; without one, nothing."""
    return {REALM_HEADER: realm} if realm else {}


def segment(name: str) -> str:
    """A name as one segment of a path, whatever characters it holds."""
    # Dots alone would be taken for a way up the path.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


class ApiClient:
    """One server, asked in the name of one principal (or of nobody, where the connection itself says who)."""

    def __init__(
        self, http: HttpClient, *, tokens: TokenSource | None = None, realm: str | None = None
    ) -> None:
        self._http = http
        self._tokens = tokens
        self._headers = realm_headers(realm)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> Reply:
        """As `HttpClient.request`, with token and realm."""
        token, sent = await self._sign(headers)
        try:
            return await self._http.request(
                method, path, body=body, query=query, headers=sent, timeout_s=timeout_s
            )
        except NotAuthenticated:
            if self._tokens is None:
                raise
            self._tokens.drop(token)
        # A refused token means that nothing was done: any request may be sent again.
        _, sent = await self._sign(headers)
        return await self._http.request(
            method, path, body=body, query=query, headers=sent, timeout_s=timeout_s
        )

    async def _sign(self, headers: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
        sent = {**self._headers, **(headers or {})}
        if self._tokens is None:
            return "", sent
        token = await self._tokens.load()
        return token, {**sent, "Authorization": f"Bearer {token}"}
