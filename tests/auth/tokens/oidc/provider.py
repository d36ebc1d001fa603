"""An OpenID provider in the hands of a test: it publishes and signs whatever the test wants."""

from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from cynosure.auth.settings import AuthSettings, OidcSettings
from cynosure.common.errors import Unavailable
from cynosure.testing.harness.clock import ManualClock
from tests.auth.tokens.forge import forge

ISSUER = "https://idp.example/tenant"
AUDIENCE = "lake"
KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("one", "two", "mine")}
CURVE_KEY = ec.generate_private_key(ec.SECP256R1())


class Provider:
    """Answers as the issuer's web server would."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.discovery: Any = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}
        self.keys: list[dict[str, Any]] = [self.jwk("one")]
        self.is_down = False
        self.fetched: list[str] = []

    @staticmethod
    def jwk(name: str, **members: Any) -> dict[str, Any]:
        public = RSAAlgorithm.to_jwk(KEYS[name].public_key(), as_dict=True)
        usual = {"kid": name, "use": "sig", "alg": "RS256", "kty": "RSA", "e": "AQAB"}
        return usual | {"n": public["n"]} | members

    @staticmethod
    def curve_jwk() -> dict[str, Any]:
        public = ECAlgorithm.to_jwk(CURVE_KEY.public_key(), as_dict=True)
        return {name: public[name] for name in ("kty", "crv", "x", "y")} | {"kid": "curve"}

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        if self.is_down:
            raise Unavailable("The test took the provider down")
        documents = {
            f"{ISSUER}/.well-known/openid-configuration": self.discovery,
            f"{ISSUER}/keys": {"keys": self.keys},
        }
        answer = documents[url]
        return answer if isinstance(answer, bytes) else msgspec.json.encode(answer)

    def claims(self, **changed: Any) -> dict[str, Any]:
        """The claims of a good token. `None` leaves one out."""
        now_s = self.clock.now_us() // 1_000_000
        usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "u-1", "iat": now_s, "exp": now_s + 300} | changed
        return {name: value for name, value in usual.items() if value is not None}

    def token(
        self,
        *,
        key: str = "one",
        header: dict[str, Any] | None = None,
        algorithm: str = "RS256",
        **claims: Any,
    ) -> str:
        """A token, good unless a test says otherwise."""
        usual = {"alg": algorithm, "kid": key, "typ": "JWT"} | (header or {})
        return forge(usual, self.claims(**claims), KEYS[key], algorithm)


def settings_with(**changed: Any) -> AuthSettings:
    """Settings with this one issuer."""
    known = {"issuer": ISSUER, "audience": (AUDIENCE,), **changed}
    return AuthSettings(oidc={"corp": OidcSettings(**known)})
