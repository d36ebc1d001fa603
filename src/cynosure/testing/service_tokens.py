"""A catalog's signing key for tests of the delegation service, without a catalog around it.

    catalog = TokenMaker(clock)
    verifier = catalog.make_verifier()
    token = await catalog.make()                    # good
    token = catalog.sign(scope="other")             # as wrong as a test wants it

Must not break: tokens are made and checked by the code that does so in servers.
"""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from cynosure.auth.tokens.claims import TOKEN_TYPE
from cynosure.auth.tokens.oidc.keys import IssuerKeys
from cynosure.auth.tokens.service_tokens import (
    AUDIENCE,
    EXECUTE_TASKS,
    LIFETIME_S,
    SUBJECT,
    ServiceTokens,
    ServiceTokenVerifier,
)
from cynosure.auth.tokens.signing_keys import ALGORITHM, Signer, generate_private, public_jwk, seal_key
from cynosure.common.clock import Clock
from cynosure.common.errors import Unavailable
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.persistence.spi import RealmId

ISSUER = "cynosure"
REALM = RealmId("default")


class TokenMaker:
    """One realm's key, and tokens signed with it."""

    def __init__(self, clock: Clock, private: rsa.RSAPrivateKey | None = None) -> None:
        """`private` is a key of the caller's: to make one takes a while."""
        self.clock = clock
        private = private or generate_private()
        stored = seal_key(private, Keyring({"test": bytes(32)}, "test"), REALM, clock.now_us())
        self.signer = Signer(stored.kid, private)
        self._published = json.dumps({"keys": [public_jwk(stored)]}).encode()
        self.is_reachable = True
        self.fetched = 0
        self.tokens = ServiceTokens(self, clock, issuer=ISSUER)

    async def load_signer(self, realm: RealmId) -> Signer:
        """As a key store."""
        return self.signer

    async def load(self) -> Secret:
        """As the tokens of a client."""
        return await self.tokens.load(REALM)

    def drop(self) -> None:
        """As the tokens of a client."""
        self.tokens.drop(REALM)

    async def fetch(self, _: str) -> bytes:
        """What the catalog publishes."""
        self.fetched += 1
        if not self.is_reachable:
            raise Unavailable("The catalog cannot be reached")
        return self._published

    def make_verifier(self) -> ServiceTokenVerifier:
        """Trusts this key only."""
        keys = IssuerKeys(ISSUER, "keys", self.fetch, self.clock, min_interval_s=0.0)
        return ServiceTokenVerifier(keys, self.clock, issuer=ISSUER, realm=REALM)

    def sign(self, *, typ: str = TOKEN_TYPE, **changed: Any) -> str:
        """A token with these claims changed; `None` leaves one out."""
        now_s = self.clock.now_us() // 1_000_000
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": SUBJECT,
            "realm": REALM,
            "scope": EXECUTE_TASKS,
            "jti": "1",
            "iat": now_s,
            "exp": now_s + LIFETIME_S,
        } | changed
        return jwt.encode(
            {name: value for name, value in claims.items() if value is not None},
            self.signer.private,
            algorithm=ALGORITHM,
            headers={"kid": self.signer.kid, "typ": typ},
        )
