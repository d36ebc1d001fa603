"""Requests to the catalog as one user, or as the gateway itself.

A maintainer must not break: a token that is refused is renewed once and no more.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from cynosure.client.api import realm_headers
from cynosure.client.http import HttpClient, Reply
from cynosure.common.errors import NotAuthenticated
from cynosure.query.catalog_access.behalf import Behalf, Exchange

_HEADER: Final = "X-Cynosure-Capabilities"
_KNOWN: Final = "mapping-filters, policy-names"
"""What this gateway understands beyond the protocol; the catalog tells nobody else."""
_RENEWS: Final = f"{_KNOWN}, renewed-credentials"
_TIMEOUT_S: Final = 60.0


class Asks(Protocol):
    """Whoever asks."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send it until it is answered; errors are those of the client."""
        ...


class Gateway(Struct, frozen=True):
    """What all requests of a gateway have in common."""

    http: HttpClient
    exchange: Exchange
    renews_credentials: bool = True
    """Whether all of its scans get newer credentials while they run: then none live for long."""

    @property
    def headers(self) -> dict[str, str]:
        """That every request has."""
        return {_HEADER: _RENEWS if self.renews_credentials else _KNOWN}


class _Asking(ABC):
    """Sends requests with a token that subclasses know."""

    def __init__(self, gateway: Gateway, realm: str | None) -> None:
        self._http = gateway.http
        self._exchange = gateway.exchange
        self._headers = gateway.headers
        self._realm = realm

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """See `Asks`."""

        async def send(token: str) -> Reply:
            sent = {
                **realm_headers(self._realm),
                **self._headers,
                **(headers or {}),
                "Authorization": f"Bearer {token}",
            }
            return await self._http.request(
                method, path, body=body, query=query, headers=sent, timeout_s=_TIMEOUT_S, is_repeatable=True
            )

        token = await self._load_token()
        try:
            return await send(token)
        except NotAuthenticated:
            self._drop(token)
        return await send(await self._load_token())

    @abstractmethod
    async def _load_token(self) -> str: ...
    @abstractmethod
    def _drop(self, token: str) -> None:
        """It was refused: the next one is another."""


class AskUser(_Asking):
    """On behalf of a user.

    A token on behalf of somebody outlives the one it was exchanged for: a statement that began goes on with
    it, for as long as the catalog takes it. The catalog looks at the principals with every request.
    """

    def __init__(self, gateway: Gateway, realm: str | None, token: str, first: Behalf) -> None:
        super().__init__(gateway, realm)
        self._last = first
        self._token = token

    async def _load_token(self) -> str:
        try:
            self._last = await self._exchange.load(self._realm, self._token)
        except NotAuthenticated:
            if self._http.clock.monotonic_s() >= self._last.expires_s:
                raise
        return self._last.token

    def _drop(self, token: str) -> None:
        self._exchange.drop(self._realm, self._token)


class AskGateway(_Asking):
    """As the gateway's own principal."""

    async def _load_token(self) -> str:
        return await self._exchange.load_own(self._realm)

    def _drop(self, token: str) -> None:
        self._exchange.drop_own(self._realm, token)
