"""Tokens on behalf of users: the gateway's own token and the user's, exchanged for one.

A maintainer must not break: a token that was exchanged is used for a minute at most, for the very token of
the user that it was exchanged for; and neither is in an error or a log.
"""

import base64
import hashlib
from collections import OrderedDict
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.client.api import realm_headers
from cynosure.client.errors import ServerFailed
from cynosure.client.http import HttpClient
from cynosure.client.tokens import TOKEN_PATH, ClientCredentials, TokenSource
from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, NotAuthenticated, Unavailable
from cynosure.query.catalog_access.wire import TokenAnswer, TokenClaims

_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_KEPT_S: Final = 60.0
_AHEAD_S: Final = 10.0
"""A token is not used in its last seconds: it would expire on its way."""
_MOST_KEPT: Final = 1024
_MOST_REALMS: Final = 64


class Behalf(Struct, frozen=True):
    """A token that acts for a user, and who that is."""

    token: str
    claims: TokenClaims
    until_s: float
    """How long it is used for new requests, on the monotonic clock."""
    expires_s: float
    """When it ends."""

    def __repr__(self) -> str:
        return f"Behalf({self.claims.sub}, …)"


class Exchange:
    """Exchanges tokens, and remembers what it got for a moment."""

    def __init__(self, http: HttpClient, credentials: ClientCredentials, clock: Clock) -> None:
        self._http = http
        self._credentials = credentials
        self._clock = clock
        self._own: dict[str, TokenSource] = {}
        self._kept: OrderedDict[tuple[str, bytes], Behalf] = OrderedDict()

    async def load_own(self, realm: str | None) -> str:
        """The gateway's own token. `Unavailable` when the catalog does not know the gateway."""
        try:
            return await self._own_of(realm).load()
        except NotAuthenticated as error:
            raise _not_set_up() from error

    def drop_own(self, realm: str | None, token: str) -> None:
        """The catalog refused it."""
        self._own_of(realm).drop(token)

    async def load(self, realm: str | None, token: str) -> Behalf:
        """For a user's token; `NotAuthenticated` when that is not good."""
        key = _key(realm, token)
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic_s() < kept.until_s:
            return kept
        found = await self._exchange(realm, token)
        self._kept[key] = found
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found

    def drop(self, realm: str | None, token: str) -> None:
        """The catalog refused what was exchanged for it."""
        self._kept.pop(_key(realm, token), None)

    async def _exchange(self, realm: str | None, token: str) -> Behalf:
        own = await self.load_own(realm)
        try:
            return await self._ask(realm, token, own)
        except NotAuthenticated:
            # It may be the gateway's own that is not good any more: the secret was rotated, the key revoked.
            self.drop_own(realm, own)
        return await self._ask(realm, token, await self.load_own(realm))

    async def _ask(self, realm: str | None, token: str, own: str) -> Behalf:
        form = {"grant_type": _EXCHANGE, "subject_token": token, "actor_token": own}
        asked_s = self._clock.monotonic_s()
        try:
            reply = await self._http.request(
                "POST", TOKEN_PATH, form=form, headers=realm_headers(realm), is_repeatable=True
            )
        except (BadInput, NotAuthenticated) as error:
            if error.details.get("type") == "unauthorized_client":
                raise _not_set_up() from error
            raise NotAuthenticated("The token is not good", fix="Get a new one and send it.") from error
        answer = reply.decode(TokenAnswer)
        life_s = max(0.0, min(_KEPT_S, answer.expires_in - _AHEAD_S))
        return Behalf(
            token=answer.access_token,
            claims=_read_claims(answer.access_token),
            until_s=asked_s + life_s,
            expires_s=asked_s + max(0.0, answer.expires_in - _AHEAD_S),
        )

    def _own_of(self, realm: str | None) -> TokenSource:
        source = self._own.get(realm or "")
        if source is None:
            if len(self._own) >= _MOST_REALMS:
                # Realms come with requests, before anybody is known.
                self._own.clear()
            source = self._own[realm or ""] = TokenSource(
                self._http, self._credentials, self._clock, headers=realm_headers(realm)
            )
        return source


def _key(realm: str | None, token: str) -> tuple[str, bytes]:
    return realm or "", hashlib.sha256(token.encode()).digest()


def _read_claims(token: str) -> TokenClaims:
    try:
        body = token.split(".")[1]
        return msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=TokenClaims)
    except (IndexError, ValueError, msgspec.DecodeError) as error:
        raise ServerFailed(
            "The catalog's token is not what was agreed",
            fix="Use a gateway and a catalog of matching versions.",
        ) from error


def _not_set_up() -> Unavailable:
    return Unavailable(
        "The gateway may not act for users at the catalog",
        fix="Have an administrator run `cynosure gateway init`; check the gateway's client id and secret.",
    )
