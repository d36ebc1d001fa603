"""Tokens of Google: of a service account by its key, and of another one that it impersonates.

A maintainer must not break: the assertion that the key signs is addressed to Google, whatever address it is
sent to; so whoever stands between could use it there only for what it was made for.
"""

from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

import jwt
import msgspec
from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.tokens import Renewed, Token, decode_answer, read_token
from cynosure.storage.config import GcsKeys, GcsStorage
from cynosure.storage.errors import StorageRefused

GRANT_URL: Final = "https://oauth2.googleapis.com/token"
SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
"""What a token is good for is decided by the roles of its account, and for clients by its boundary."""
LONGEST_LIFE_S: Final = 3600
TOKEN_LEFT_MS: Final = 600_000
"""A token that is about to end is not begun with."""

_FORM: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


class _Impersonated(Struct, rename="camel"):
    access_token: str
    expire_time: datetime


class GcsTokens:
    """Tokens for one configuration."""

    def __init__(self, config: GcsStorage, keys: GcsKeys, service: TokenService, clock: Clock) -> None:
        self._config = config
        self._keys = keys
        self._service = service
        self._clock = clock
        self.tokens = Renewed(self._fetch, clock)
        """Of the account that reaches the files."""

    async def _fetch(self) -> Token:
        token = await self._fetch_own()
        account = self._config.gcs_service_account
        return token if account is None else await self._impersonate(account, token)

    async def exchange(self, token: Token, boundary: bytes) -> Token:
        """A token for no more than the boundary allows, that ends when the one does that it is made from."""
        url = self._address("https://sts.googleapis.com", "/v1/token")
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "subject_token": token.value.reveal(),
            "options": boundary.decode(),
        }
        answer = await self._service.post(url, headers=_FORM, body=urlencode(form).encode())
        found = read_token(answer, url, self._now_ms(), expires_ms=token.expires_ms)
        return Token(found.value, found.issued_ms, min(found.expires_ms, token.expires_ms))

    async def _fetch_own(self) -> Token:
        url = self._address("https://oauth2.googleapis.com", "/token")
        now_s = self._clock.now_us() // 1_000_000
        claims = {
            "iss": self._keys.client_email,
            "scope": SCOPE,
            "aud": GRANT_URL,
            "iat": now_s,
            "exp": now_s + LONGEST_LIFE_S,
        }
        try:
            assertion = jwt.encode(
                claims,
                self._keys.private_key.reveal(),
                algorithm="RS256",
                headers={"kid": self._keys.private_key_id},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            # Not chained: what cannot be read as a key may be shown in the message.
            raise StorageRefused(
                "The key of a service account cannot be used",
                fix="Set the catalog's serviceAccountKey again.",
            ) from None
        form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        answer = await self._service.post(url, headers=_FORM, body=urlencode(form).encode())
        return read_token(answer, url, self._now_ms())

    async def _impersonate(self, account: str, token: Token) -> Token:
        path = f"/v1/projects/-/serviceAccounts/{quote(account, safe='@')}:generateAccessToken"
        url = self._address("https://iamcredentials.googleapis.com", path)
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "authorization": f"Bearer {token.value.reveal()}",
        }
        body = msgspec.json.encode({"scope": [SCOPE], "lifetime": f"{LONGEST_LIFE_S}s"})
        answer = await self._service.post(url, headers=headers, body=body)
        found = decode_answer(answer, url, _Impersonated)
        expires_ms = round(found.expire_time.timestamp() * 1000)
        return Token(Secret(found.access_token), self._now_ms(), expires_ms)

    def _address(self, host: str, path: str) -> str:
        return (self._config.token_endpoint or host).removesuffix("/") + path

    def _now_ms(self) -> int:
        return self._clock.now_us() // 1000
