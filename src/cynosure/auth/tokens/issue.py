"""Tokens of our own: for a client's secret, for another token, on behalf of a user.

A token that is issued for another one has a new lifetime of its own. With every request it is checked that
the principal and the secret behind it still exist and that the roles are still had, so what ends a token ends
all that were made from it; and nobody renews for longer than `auth.tokens.renewable`, or whoever finds a
token would have it for ever. Where another issuer vouched for the subject nothing of that can be checked
here, and the new token ends when the old one does.

Must not break: a token can only be exchanged for one with the same or fewer roles of the same principal; and
an unknown client costs the same work and gets the same answer as a wrong secret.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import jwt
import msgspec
from msgspec import Struct

from cynosure.auth.caller import Identity
from cynosure.auth.names import MAX_CLIENT_CHARS
from cynosure.auth.principals import find_client
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import TokenSettings
from cynosure.auth.standing import Standing, Standings
from cynosure.auth.tokens.authenticator import TokenAuthenticator, Verified
from cynosure.auth.tokens.claims import TOKEN_TYPE, Actor, Claims, audience_of, scope_of
from cynosure.auth.tokens.errors import TokenRefused
from cynosure.auth.tokens.failures import Failures
from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.scopes import Roles, narrow_scope, parse_scope
from cynosure.auth.tokens.signing_keys import ALGORITHM
from cynosure.common.errors import NotAuthenticated
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import RealmId

_US: Final = 1_000_000
_ID_BYTES: Final = 16


class IssuedToken(Struct, frozen=True):
    """A token for whoever asked."""

    token: Secret
    lifetime_s: int
    scope: str
    principal: str
    actor: str = ""


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Issues the tokens of all realms."""

    persistence: Persistence
    keys: KeyStore
    standings: Standings
    authenticator: TokenAuthenticator
    hasher: SecretHasher
    settings: TokenSettings
    failures: Failures
    random_id: Callable[[int], str] = field(default=secrets.token_urlsafe)

    async def issue_for_secret(
        self, realm: RealmId, client_id: str, secret: Secret, scope: str, peer: str
    ) -> IssuedToken:
        """For a client that proves to be one. `peer` is the address that asks."""
        wanted = parse_scope(scope)
        # Cut: no client id is longer, and this is remembered whoever sends it.
        who = (realm, client_id[:MAX_CLIENT_CHARS], peer)
        if (wait_s := self.failures.wait_s(who)) > 0:
            raise TokenRefused(
                "slow_down",
                "There were too many wrong secrets",
                fix="Wait, and check the client's secret.",
                retry_after_s=math.ceil(wait_s),
            )
        principal = await find_client(self.persistence, realm, client_id)
        stored = self.hasher.find_match(secret, principal.secrets if principal else ())
        if principal is None or stored is None:
            self.failures.count(who)
            raise TokenRefused(
                "unauthorized_client", "The client is not known, or its secret is wrong", fix="Check both."
            )
        identity = Identity(principal.id, credential=stored.generation)
        return await self._issue(realm, await self._activate(realm, identity, wanted), ())

    async def issue_for_token(self, realm: RealmId, subject_token: Secret, scope: str) -> IssuedToken:
        """For a token of ours: the same principal again, with the same or fewer roles."""
        wanted = parse_scope(scope)
        subject = await self._require_good(subject_token, realm, "subject")
        if not subject.is_own:
            raise TokenRefused(
                "invalid_grant",
                "Tokens of other issuers are good as they are",
                fix="Send the token itself with each request.",
            )
        narrowed = narrow_scope(subject.identity.scope, wanted)
        return await self._issue(realm, await self._activate(realm, subject.identity, narrowed), (subject,))

    async def issue_on_behalf(
        self, realm: RealmId, subject_token: Secret, actor_token: Secret, scope: str
    ) -> IssuedToken:
        """For a trusted service that acts for the subject, with the same or fewer roles of the subject."""
        wanted = parse_scope(scope)
        subject = await self._require_good(subject_token, realm, "subject")
        actor = await self._require_good(actor_token, realm, "actor")
        stood = await self._load(realm, actor.identity, "actor")
        if not stood.principal.is_trusted_service:
            raise TokenRefused(
                "unauthorized_client",
                "The actor may not act for others",
                fix="Have a service administrator trust the service.",
            )
        identity = msgspec.structs.replace(
            subject.identity, actor_id=actor.identity.principal_id, actor_credential=actor.identity.credential
        )
        narrowed = narrow_scope(subject.identity.scope, wanted)
        activated = await self._activate(realm, identity, narrowed)
        return await self._issue(realm, activated, (subject, actor))

    async def _require_good(self, token: Secret, realm: RealmId, which: str) -> Verified:
        try:
            verified = await self.authenticator.verify(token.reveal(), realm)
        except NotAuthenticated as error:
            raise _not_good(which) from error
        if verified.identity.actor_id:
            raise TokenRefused(
                "invalid_grant",
                "A token on behalf of somebody cannot be exchanged again",
                fix="Exchange the token of the user.",
            )
        return verified

    async def _load(self, realm: RealmId, identity: Identity, which: str) -> Standing:
        try:
            return (await self.standings.load(realm, identity)).standing
        except NotAuthenticated as error:
            raise _not_good(which) from error

    async def _activate(self, realm: RealmId, identity: Identity, scope: Roles) -> tuple[Identity, Standing]:
        """The identity with these roles, if it has them."""
        everything = msgspec.structs.replace(identity, scope=None)
        # Order: first whether the principal is there at all, so that only roles are left to be missing.
        await self._load(realm, everything, "subject")
        activated = msgspec.structs.replace(identity, scope=scope)
        try:
            return activated, (await self.standings.load(realm, activated)).standing
        except NotAuthenticated as error:
            raise TokenRefused(
                "invalid_scope",
                "The principal does not have a role that is asked for",
                fix="Ask for roles that it has, or for PRINCIPAL_ROLE:ALL.",
            ) from error

    async def _issue(
        self, realm: RealmId, activated: tuple[Identity, Standing], made_from: tuple[Verified, ...]
    ) -> IssuedToken:
        identity, standing = activated
        now_us = self.persistence.clock.now_us()
        now_s, lifetime_s = now_us // _US, int(self.settings.lifetime.total_seconds())
        began_s = min((now_s, *(each.began_s for each in made_from)))
        limits_s = [each.expires_us // _US for each in made_from if not each.is_own]
        expires_s = min(now_s + lifetime_s, *limits_s, began_s + self._renewable_s(lifetime_s))
        if expires_s <= now_s:
            raise TokenRefused(
                "invalid_grant",
                "The token has been renewed for as long as it can be",
                fix="Get a new one with the client's secret.",
            )
        actor = standing.actor
        claims = Claims(
            iss=self.settings.issuer,
            aud=audience_of(self.settings.issuer, realm),
            sub=standing.principal.name,
            principal_id=identity.principal_id,
            client_id=standing.principal.client_id,
            scope=scope_of(identity),
            realm=realm,
            generation=identity.credential,
            jti=self.random_id(_ID_BYTES),
            iat=now_s,
            exp=expires_s,
            auth_time=began_s,
            roles=identity.external_roles,
            act=None if actor is None else Actor(actor.name, identity.actor_id, identity.actor_credential),
        )
        signer = await self.keys.load_signer(realm)
        encoded = jwt.encode(
            msgspec.to_builtins(claims),
            signer.private,
            algorithm=ALGORITHM,
            headers={"kid": signer.kid, "typ": TOKEN_TYPE},
        )
        return IssuedToken(
            Secret(encoded), expires_s - now_s, claims.scope, claims.sub, actor.name if actor else ""
        )

    def _renewable_s(self, lifetime_s: int) -> int:
        # The first token lives as long as it is said to, whatever becomes of it.
        return max(lifetime_s, int(self.settings.renewable.total_seconds()))


def _not_good(which: str) -> TokenRefused:
    return TokenRefused("invalid_grant", f"The {which} token is not good", fix="Get a new one.")
