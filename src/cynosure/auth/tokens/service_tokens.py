"""Tokens that a catalog makes for itself, to show to the delegation service; and how that checks them.

They are signed with the realm's own keys, which the catalog publishes, so the service needs no secret of the
catalog. They are of another kind than tokens of principals: neither is good in the other's place.

A maintainer must not break: what is checked here is signature, issuer, audience, realm and times, all
of them; and a token lives for minutes, because nobody can take it back.
"""

import secrets
from collections.abc import Callable
from typing import Final, Protocol

import jwt
import msgspec
from msgspec import Struct

from cynosure.auth.tokens.claims import TOKEN_TYPE, check_header
from cynosure.auth.tokens.errors import bad_token
from cynosure.auth.tokens.jws import check_signature, read_token
from cynosure.auth.tokens.oidc.keys import IssuerKeys
from cynosure.auth.tokens.signing_keys import ALGORITHM, Signer
from cynosure.auth.tokens.times import check_times
from cynosure.common.clock import Clock
from cynosure.common.errors import NotAuthenticated
from cynosure.common.secrets import Secret
from cynosure.persistence.spi import RealmId

EXECUTE_TASKS: Final = "execute_tasks"
"""The scope that allows to give orders."""
AUDIENCE: Final = "delegation"
SUBJECT: Final = "cynosure-catalog"
LIFETIME_S: Final = 300
_AHEAD_S: Final = 60
_US: Final = 1_000_000
_ID_BYTES: Final = 16


class ServiceClaims(Struct, frozen=True):
    """The body of such a token."""

    iss: str
    aud: str
    sub: str
    realm: str
    scope: str
    jti: str
    iat: int
    exp: int


class Signers(Protocol):
    """Keys that sign; `KeyStore` has them."""

    async def load_signer(self, realm: RealmId) -> Signer:
        """The key that signs now."""
        ...


class ServiceTokens:
    """Makes the catalog's own tokens, each used until it is about to end."""

    def __init__(
        self,
        keys: Signers,
        clock: Clock,
        *,
        issuer: str,
        random_id: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._issuer = issuer
        self._random_id = random_id
        self._made: dict[RealmId, tuple[Secret, int]] = {}

    async def load(self, realm: RealmId) -> Secret:
        """A token that is good for a while yet."""
        now_s = self._clock.now_us() // _US
        made, expires_s = self._made.get(realm, (None, 0))
        # A clock that was set back must not keep one alive that others take for expired.
        if made is None or not now_s + _AHEAD_S <= expires_s <= now_s + LIFETIME_S:
            made, expires_s = await self._make(realm, now_s), now_s + LIFETIME_S
            self._made[realm] = (made, expires_s)
        return made

    def drop(self, realm: RealmId) -> None:
        """The service refused it: the next is made anew."""
        self._made.pop(realm, None)

    async def _make(self, realm: RealmId, now_s: int) -> Secret:
        claims = ServiceClaims(
            iss=self._issuer,
            aud=AUDIENCE,
            sub=SUBJECT,
            realm=realm,
            scope=EXECUTE_TASKS,
            jti=self._random_id(_ID_BYTES),
            iat=now_s,
            exp=now_s + LIFETIME_S,
        )
        signer = await self._keys.load_signer(realm)
        return Secret(
            jwt.encode(
                msgspec.to_builtins(claims),
                signer.private,
                algorithm=ALGORITHM,
                headers={"kid": signer.kid, "typ": TOKEN_TYPE},
            )
        )


class ServiceTokenVerifier:
    """Checks tokens of one realm's catalog."""

    def __init__(self, keys: IssuerKeys, clock: Clock, *, issuer: str, realm: RealmId) -> None:
        self._keys = keys
        self._clock = clock
        self._issuer = issuer
        self._realm = realm

    async def verify(self, token: str) -> ServiceClaims:
        """What a token says, if it is good. `Unavailable` when the catalog's keys cannot be had."""
        if not token:
            raise NotAuthenticated(
                "The request has no bearer token",
                fix="Send Authorization: Bearer TOKEN, with a token of the catalog.",
            )
        unchecked = read_token(token)
        kid = check_header(unchecked.header)
        # Order: what costs nothing first, so that stale and foreign tokens make nobody fetch keys.
        check_times(unchecked.claims, self._clock.now_us())
        try:
            said = msgspec.convert(unchecked.claims, ServiceClaims)
        except msgspec.ValidationError as error:
            raise bad_token("malformed") from error
        if said.iss != self._issuer:
            raise bad_token("wrong issuer")
        if said.aud != AUDIENCE:
            raise bad_token("wrong audience")
        if said.realm != self._realm:
            raise bad_token("wrong realm")
        key = await self._keys.find(kid, ALGORITHM)
        if key is None:
            raise bad_token("unknown key")
        check_signature(unchecked, ALGORITHM, key)
        return said
