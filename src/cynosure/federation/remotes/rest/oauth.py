"""Tokens for a client id and secret, renewed before they end, by one request for all who wait.

A maintainer must not break: secret and token are in no error and in no log; and what a token endpoint says
about times is bounded, so that it can make us ask neither all the time nor never again.
"""

from typing import Final
from urllib.parse import urlencode

import httpx
import msgspec
from msgspec import Struct

from cynosure.catalog.connection import OAuth
from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes.failures import CLIENT_REFUSED, NO_TOKENS, TOKENS
from cynosure.federation.remotes.renewing import Renewed
from cynosure.federation.remotes.rest.identity import Outgoing, Proof, bearer, is_token
from cynosure.federation.remotes.transport import Answered, Transport, Unusable

_MOST_ANSWER_BYTES: Final = 256 * 2**10
_DEFAULT_LIFE_S: Final = 3_600.0
_SHORTEST_LIFE_S: Final = 10.0
_LONGEST_LIFE_S: Final = 86_400.0
_NOT_THERE: Final = frozenset({404, 405, 410})
_HEADERS: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


class _Granted(Struct):
    access_token: str
    token_type: str = "bearer"  # noqa: S105 - what kind of token it is
    expires_in: float | None = None


class OAuthIdentity:
    """A client of the remote's token endpoint."""

    def __init__(
        self,
        authentication: OAuth,
        secret: Secret,
        url: httpx.URL,
        transport: Transport,
        clock: Clock,
        name: str,
    ) -> None:
        self._authentication = authentication
        self._secret = secret
        self._url = url
        self._transport = transport
        self._name = name
        self._proofs: Renewed[Proof] = Renewed(self._fetch, clock)

    async def prove(self, outgoing: Outgoing) -> Proof:
        """See `Identity`."""
        return await self._proofs.get()

    async def renew(self, refused: Proof) -> bool:
        """See `Identity`."""
        return await self._proofs.renew(refused)

    async def close(self) -> None:
        """See `Identity`."""
        await self._proofs.close()

    async def _fetch(self) -> tuple[Proof, float]:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._authentication.client_id,
            "client_secret": self._secret.reveal(),
        }
        if self._authentication.scopes:
            form["scope"] = " ".join(self._authentication.scopes)
        answer = await self._transport.send(
            "POST", self._url, headers=_HEADERS, body=urlencode(form).encode(), limit=_MOST_ANSWER_BYTES
        )
        if isinstance(answer, Unusable):
            raise RemoteMisbehaved(self._name, problem=TOKENS + answer.problem)
        if not isinstance(answer, Answered):
            raise RemoteUnavailable(self._name, reason=TOKENS + answer.reason)
        if answer.status == 429 or answer.status >= 500:
            reason = f"{TOKENS}status {answer.status}"
            raise RemoteUnavailable(self._name, reason=reason, status=answer.status)
        if answer.status != 200:
            reason = NO_TOKENS if answer.status in _NOT_THERE else CLIENT_REFUSED
            raise RemoteRefused(self._name, status=answer.status, reason=reason)
        return self._read(answer.body)

    def _read(self, body: bytes) -> tuple[Proof, float]:
        try:
            granted = msgspec.json.decode(body, type=_Granted)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Without the cause, which may quote a part of the token.
            raise RemoteMisbehaved(self._name, problem=TOKENS + "not a token") from None
        if not is_token(granted.access_token) or granted.token_type.lower() != "bearer":
            raise RemoteMisbehaved(self._name, problem=TOKENS + "not a bearer token")
        life_s = _DEFAULT_LIFE_S if granted.expires_in is None else granted.expires_in
        bounded_s = min(max(life_s, _SHORTEST_LIFE_S), _LONGEST_LIFE_S)
        return bearer(Secret(granted.access_token)), bounded_s
