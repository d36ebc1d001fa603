"""Who a bearer token stands for: our own tokens, and those of other issuers.

What a token says is checked once and remembered for a minute at most; what its principal is and has is looked
up for every request (`standing.py`).

Must not break: what is taken away from a principal, its secrets, its roles or its actor, counts with the
next request; a key that is taken away counts within `TRUSTED_US`.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller, Identity
from cynosure.auth.standing import Standings, Stood
from cynosure.auth.tokens.claims import began_of, check_header, identity_of
from cynosure.auth.tokens.errors import bad_token
from cynosure.auth.tokens.jws import Unchecked, check_signature, read_token
from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.oidc.issuer import OidcIssuer
from cynosure.auth.tokens.signing_keys import ALGORITHM
from cynosure.auth.tokens.times import check_times
from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured, NotAuthenticated
from cynosure.persistence.spi import ObjId, RealmId

TRUSTED_US: Final = 60_000_000
"""How long a token is not checked again."""
_MOST_KEPT: Final = 10_000
_NO_HEAD: Final = ObjId(-1)


class Verified(NamedTuple):
    """What a good token says."""

    identity: Identity
    expires_us: int
    is_own: bool
    began_s: int
    """When its principal last proved who it is."""


class _Known:
    """A token that was checked, and the caller it stood for at one head."""

    __slots__ = ("caller", "checked_us", "good_until_us", "head", "identity")

    def __init__(self, verified: Verified, now_us: int) -> None:
        self.identity = verified.identity
        self.checked_us = now_us
        self.good_until_us = min(verified.expires_us, now_us + TRUSTED_US)
        self.head = _NO_HEAD
        self.caller: Caller | None = None


class TokenAuthenticator:
    """The `Authenticator` of a server."""

    def __init__(
        self,
        keys: KeyStore,
        standings: Standings,
        clock: Clock,
        *,
        issuer: str,
        others: Iterable[OidcIssuer] = (),
    ) -> None:
        self._keys = keys
        self._standings = standings
        self._now_us = clock.now_us
        self._issuer = issuer
        self._others: dict[str, OidcIssuer] = {}
        self._known: dict[tuple[RealmId, str], _Known] = {}
        for each in others:
            if each.issuer == issuer or each.issuer in self._others:
                raise Misconfigured(
                    "Two issuers have the same name",
                    fix="Give auth.tokens.issuer and every auth.oidc.NAME.issuer a value of its own.",
                    issuer=each.issuer,
                )
            self._others[each.issuer] = each

    async def authenticate(self, token: str, realm: RealmId) -> Caller:
        """See `Authenticator`."""
        now_us = self._now_us()
        known = self._known.get((realm, token))
        if known is None or not known.checked_us <= now_us < known.good_until_us:
            known = await self._check(token, realm, now_us)
        elif known.caller is not None and known.head == self._standings.get_head(realm):
            # Nothing about any principal has changed since.
            return known.caller
        stood = await self._standings.load(realm, known.identity)
        caller = known.caller
        if caller is None or known.head != stood.head:
            caller = known.caller = _caller(realm, known.identity, stood)
            known.head = stood.head
        return caller

    async def verify(self, token: str, realm: RealmId) -> Verified:
        """What a token says, if it is good. Nothing is looked up about its principal."""
        # Order: an unknown realm is told before anything is said about the token.
        public = await self._keys.load_public(realm)
        if not token:
            raise NotAuthenticated(
                "The request has no bearer token",
                fix="Send Authorization: Bearer TOKEN; POST /api/catalog/v1/oauth/tokens gives tokens.",
            )
        unchecked = read_token(token)
        now_us, issuer = self._now_us(), unchecked.claims.get("iss")
        if issuer == self._issuer:
            key = public.get(check_header(unchecked.header))
            if key is None:
                raise bad_token("unknown key")
            check_signature(unchecked, ALGORITHM, key)
            expires_us = check_times(unchecked.claims, now_us)
            identity = identity_of(unchecked.claims, self._issuer, realm)
            return Verified(identity, expires_us, is_own=True, began_s=began_of(unchecked.claims))
        return await self._verify_other(unchecked, realm, now_us)

    async def _verify_other(self, token: Unchecked, realm: RealmId, now_us: int) -> Verified:
        issuer = token.claims.get("iss")
        other = self._others.get(issuer) if isinstance(issuer, str) else None
        if other is None:
            raise bad_token("wrong issuer")
        identity, expires_us = await other.verify(token, realm, now_us)
        # It ends when it ends: what is made of it is not renewed beyond that.
        return Verified(identity, expires_us, is_own=False, began_s=now_us // 1_000_000)

    async def close(self) -> None:
        """End what is under way."""
        for each in self._others.values():
            await each.close()

    async def _check(self, token: str, realm: RealmId, now_us: int) -> _Known:
        self._known.pop((realm, token), None)
        known = _Known(await self.verify(token, realm), now_us)
        if len(self._known) >= _MOST_KEPT:
            # The one that was checked longest ago.
            del self._known[next(iter(self._known))]
        self._known[realm, token] = known
        return known


def _caller(realm: RealmId, identity: Identity, stood: Stood) -> Caller:
    standing = stood.standing
    return Caller(
        standing.principal.name,
        realm,
        identity=identity,
        roles=tuple(role.name for role in standing.roles),
        actor=standing.actor.name if standing.actor else "",
    )
