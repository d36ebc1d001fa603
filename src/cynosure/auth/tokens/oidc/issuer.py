"""One other issuer: its tokens checked, and whom they stand for.

Must not break: the algorithm comes from the settings, the key from what the issuer publishes, and from the
token only their names. Issuer and audience are compared as whole texts.
"""

from collections.abc import Mapping
from typing import Any, Final

from cynosure.auth.caller import Identity
from cynosure.auth.settings import OidcSettings
from cynosure.auth.tokens.errors import bad_token
from cynosure.auth.tokens.jws import ASYMMETRIC, Unchecked, check_signature
from cynosure.auth.tokens.oidc.accounts import Accounts
from cynosure.auth.tokens.oidc.groups import RolesOfGroups, find_claim
from cynosure.auth.tokens.oidc.keys import Fetch, IssuerKeys
from cynosure.auth.tokens.times import check_times
from cynosure.client.documents import fetch_document
from cynosure.client.tls import ClientTls
from cynosure.common.addresses import is_safe_url
from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured
from cynosure.persistence.spi import RealmId

_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""A token about something else (a logout, a proof of possession) is signed by the same keys."""


class OidcIssuer:
    """Checks the tokens of one issuer."""

    def __init__(
        self, name: str, settings: OidcSettings, accounts: Accounts, clock: Clock, fetch: Fetch | None = None
    ) -> None:
        _check(name, settings)
        self.issuer = settings.issuer
        self.realms = frozenset(settings.realms)
        self._settings = settings
        self._audience = frozenset(settings.audience)
        self._algorithms = frozenset(settings.algorithms)
        self._accounts = accounts
        self._roles = RolesOfGroups(name, settings)
        tls = ClientTls(ca=settings.ca)

        async def fetch_with_tls(url: str) -> bytes:
            return await fetch_document(url, tls=tls)

        self._keys = IssuerKeys(settings.issuer, settings.jwks_uri, fetch or fetch_with_tls, clock)

    async def verify(self, token: Unchecked, realm: RealmId, now_us: int) -> tuple[Identity, int]:
        """Whom a token of this issuer stands for in a realm, and until when it is good."""
        header, claims = token.header, token.claims
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise bad_token("wrong algorithm")
        if "crit" in header or "b64" in header:
            raise bad_token("malformed")
        if str(header.get("typ", "JWT")).lower() not in _TYPES or not isinstance(kid, str | None):
            raise bad_token("malformed")
        # Order: what costs nothing first, so that stale and foreign tokens make nobody fetch keys.
        expires_us = check_times(claims, now_us)
        if claims.get("iss") != self.issuer or realm not in self.realms:
            raise bad_token("wrong issuer")
        self._check_audience(claims.get("aud"))
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise bad_token("unknown key")
        check_signature(token, algorithm, key)
        self._check_required(claims)
        return await self._identity_of(claims, realm), expires_us

    async def close(self) -> None:
        """End what is under way."""
        await self._keys.close()

    async def _identity_of(self, claims: Mapping[str, Any], realm: RealmId) -> Identity:
        subject, name = claims.get("sub"), find_claim(claims, self._settings.name_claim)
        if not isinstance(subject, str) or not subject:
            raise bad_token("no subject")
        principal = await self._accounts.load_principal_id(
            realm,
            f"{self.issuer} {subject}",
            name if isinstance(name, str) else None,
            self._settings.first_use,
        )
        return Identity(principal, external_roles=self._roles.list_roles(claims))

    def _check_audience(self, said: Any) -> None:
        audiences = said if isinstance(said, list) else [said]
        if not any(isinstance(each, str) and each in self._audience for each in audiences):
            raise bad_token("wrong audience")

    def _check_required(self, claims: Mapping[str, Any]) -> None:
        for name, text in self._settings.required_claims.items():
            value = find_claim(claims, name)
            if text != value and not (isinstance(value, list) and text in value):
                raise bad_token("a required claim is missing")


def _check(name: str, settings: OidcSettings) -> None:
    key = f"auth.oidc.{name}"
    if not is_safe_url(settings.issuer) or not settings.issuer.isprintable() or " " in settings.issuer:
        raise Misconfigured(
            "An issuer must be an HTTPS address",
            fix="Write the issuer as it is in its tokens; plain HTTP only on this machine.",
            key=f"{key}.issuer",
        )
    if settings.jwks_uri and not is_safe_url(settings.jwks_uri):
        raise Misconfigured(
            "Keys are fetched over HTTPS only", fix="Write an HTTPS address.", key=f"{key}.jwks_uri"
        )
    if not settings.audience or "" in settings.audience:
        raise Misconfigured(
            "An issuer needs an audience: without one, tokens for anybody else would be accepted here",
            fix="Write what the issuer puts into the aud of tokens for this server.",
            key=f"{key}.audience",
        )
    if not settings.algorithms or not ASYMMETRIC.issuperset(settings.algorithms):
        raise Misconfigured(
            "An algorithm is not accepted",
            fix=f"Use some of {', '.join(sorted(ASYMMETRIC))}.",
            key=f"{key}.algorithms",
        )
