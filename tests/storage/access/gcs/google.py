"""Google's token services, as one recorded service, and a key of a service account."""

import json
from functools import cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from cynosure.common.secrets import Secret
from cynosure.storage.config import GcsKeys
from tests.storage.recorded_service import Heard, Reply

EMAIL = "catalog@project.iam.gserviceaccount.com"
READER = "reader@project.iam.gserviceaccount.com"


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def private_pem() -> str:
    return (
        _key()
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode()
    )


def make_keys() -> GcsKeys:
    return GcsKeys(EMAIL, "key-1", Secret(private_pem()))


def key_file(**changes: object) -> str:
    """As Google gives it out, with addresses that nobody may use."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "project",
            "private_key_id": "key-1",
            "private_key": private_pem(),
            "client_email": EMAIL,
            "token_uri": "http://127.0.0.1:9/poison",
            "universe_domain": "poison.example.com",
            **changes,
        }
    )


def answer(heard: Heard) -> Reply:
    """A token for each step, numbered by nobody: `own`, `impersonated`, `downscoped`."""
    if heard.path == "/token":
        return Reply(b'{"access_token": "own", "expires_in": 3600, "token_type": "Bearer"}')
    if heard.path.endswith(":generateAccessToken"):
        return Reply(b'{"accessToken": "impersonated", "expireTime": "2026-01-01T00:50:00Z"}')
    assert heard.path == "/v1/token"
    return Reply(b'{"access_token": "downscoped", "token_type": "Bearer"}')


def read_assertion(heard: Heard) -> tuple[dict[str, object], dict[str, object]]:
    """Header and claims of the assertion that was sent, its signature verified."""
    assertion = heard.form()["assertion"]
    claims = jwt.decode(
        assertion,
        _key().public_key(),
        algorithms=["RS256"],
        audience="https://oauth2.googleapis.com/token",
        options={"verify_exp": False, "verify_iat": False},
    )
    return jwt.get_unverified_header(assertion), claims
