"""Requests in somebody's name: a token where one is needed, the realm, names in paths.

Must not break: a refused token is renewed once and no more; what is refused again is the answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from cynosure.client.discovery import Discovery
from cynosure.client.http import Failed, HttpClient, Reply
from cynosure.client.idempotency import Keys
from cynosure.client.retry import Failure
from cynosure.client.tokens import TokenSource
from cynosure.common.errors import NotAuthenticated, Unavailable

REALM_HEADER: Final = "Polaris-Realm"
_DISCOVERY_S: Final = 30.0


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
        self,
        http: HttpClient,
        *,
        tokens: TokenSource | None = None,
        realm: str | None = None,
        keys: Keys | None = None,
    ) -> None:
        self._http = http
        self._tokens = tokens
        self._headers = realm_headers(realm)
        self.keys = keys or Keys()
        self.discovery = Discovery(self._fetch)
        self.clock = http.clock
        self.rng = http.rng
        self.is_patient = http.is_patient
        self.on_wait = http.on_wait

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        is_repeatable: bool | None = None,
    ) -> Reply:
        """As `HttpClient.request`, with token and realm."""

        async def send(headers: Mapping[str, str]) -> Reply:
            return await self._http.request(
                method,
                path,
                body=body,
                query=query,
                headers=headers,
                timeout_s=timeout_s,
                is_repeatable=is_repeatable,
            )

        token, sent = await self._sign(headers)
        try:
            return await send(sent)
        except NotAuthenticated:
            if self._tokens is None:
                raise
            self._tokens.drop(token)
        # A refused token means that nothing was done: any request may be sent again.
        _, sent = await self._sign(headers)
        return await send(sent)

    async def attempt(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        get_timeout_s: Callable[[], float],
    ) -> Reply | Failed:
        """As `HttpClient.attempt`, with token and realm. Errors are those of asking for a token.

        `get_timeout_s` is asked right before the request leaves: to get a token may have taken long.
        """

        async def send() -> tuple[str, Reply | Failed]:
            token, sent = await self._sign(headers)
            timeout_s = get_timeout_s()
            if timeout_s <= 0.0:
                return "", Failed(
                    Failure.NOTHING_APPLIED,
                    Unavailable("No time was left to send the request", fix="Try again, or allow more time."),
                )
            return token, await self._http.attempt(
                method, path, body=body, query=query, headers=sent, timeout_s=timeout_s
            )

        token, answer = await send()
        if self._tokens is None or isinstance(answer, Reply) or answer.status != 401:
            return answer
        self._tokens.drop(token)
        _, answer = await send()
        return answer

    async def _fetch(self, path: str, query: Mapping[str, str]) -> Reply:
        return await self.request("GET", path, query=query, timeout_s=_DISCOVERY_S)

    async def _sign(self, headers: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
        sent = {**self._headers, **(headers or {})}
        if self._tokens is None:
            return "", sent
        token = await self._tokens.load()
        return token, {**sent, "Authorization": f"Bearer {token}"}
