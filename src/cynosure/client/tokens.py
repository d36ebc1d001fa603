"""Bearer tokens for a client id and its secret, asked for when needed and renewed before they expire.

Must not break: a token is asked for once however many wait for it; neither it nor the secret is in an error.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cynosure.client.http import HttpClient
from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, NotAuthenticated
from cynosure.common.secrets import Secret

TOKEN_PATH: Final = "/api/catalog/v1/oauth/tokens"  # noqa: S105 - a path
ALL_ROLES: Final = "PRINCIPAL_ROLE:ALL"
_AHEAD_S: Final = 60.0
"""A token is renewed this long before it expires (a tenth of a short life): none expires on its way."""


class ClientCredentials(Struct, frozen=True):
    """What a principal shows to get a token."""

    client_id: str
    client_secret: Secret
    scope: str = ALL_ROLES


class _Answer(Struct, frozen=True):
    access_token: str
    expires_in: float = 3600.0


class TokenSource:
    """The token of one principal at one server."""

    def __init__(
        self, http: HttpClient, credentials: ClientCredentials, clock: Clock, *, headers: Mapping[str, str]
    ) -> None:
        """`headers` go with the request for a token: the realm is named there."""
        self._http = http
        self._credentials = credentials
        self._clock = clock
        self._headers = headers
        self._token = ""
        self._renew_s = 0.0
        self._asking = asyncio.Lock()

    async def load(self) -> str:
        """A token that is good for a while yet."""
        async with self._asking:
            if not self._token or self._clock.monotonic_s() >= self._renew_s:
                await self._ask()
            return self._token

    def drop(self, token: str) -> None:
        """The server refused this one: the next is asked for anew."""
        if token == self._token:
            self._token = ""

    async def _ask(self) -> None:
        self._token = ""
        asked_s = self._clock.monotonic_s()
        form = {
            "grant_type": "client_credentials",
            "client_id": self._credentials.client_id,
            "client_secret": self._credentials.client_secret.reveal(),
            "scope": self._credentials.scope,
        }
        try:
            reply = await self._http.request(
                "POST", TOKEN_PATH, form=form, headers=self._headers, is_repeatable=True
            )
        except (NotAuthenticated, BadInput) as error:
            raise NotAuthenticated(
                "The server gives no token for these credentials",
                fix="Check client id, secret and realm; a secret that was rotated away is not good any more.",
                client_id=self._credentials.client_id,
                reason=error.message,
            ) from error
        answer = reply.decode(_Answer)
        self._token = answer.access_token
        self._renew_s = asked_s + answer.expires_in - min(_AHEAD_S, answer.expires_in / 10)
