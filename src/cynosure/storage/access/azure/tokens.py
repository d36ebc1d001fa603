"""Tokens of a registered application, and the key for signatures that they are exchanged for.

A maintainer must not break: the key is asked for longer than a signature lives, so that most signatures cost
no request, and no signature outlives its key.
"""

import re
from datetime import datetime
from typing import Final
from urllib.parse import urlencode, urlsplit

from cynosure.common.clock import Clock
from cynosure.common.secrets import Secret
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.signature import VERSION, DelegationKey, format_time
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.tokens import Renewed, Token, read_token
from cynosure.storage.config import AzureKeys
from cynosure.storage.errors import StorageRefused

SCOPE: Final = "https://storage.azure.com/.default"
"""Blobs, in every cloud."""
TOKEN_LEFT_MS: Final = 600_000
"""A token that is about to end is not begun with."""
_CLOCKS_APART_MS: Final = 300_000
"""By how much a key begins in the past, because clocks differ."""
_KEY_PART: Final = re.compile(r"<(Signed\w+|Value)>([\w:+/=.-]{1,256})</\1>")
_CODE: Final = re.compile(rb"<Code>(\w{1,64})</Code>")


class AzureTokens:
    """Tokens and keys for one account."""

    def __init__(
        self, account: Account, keys: AzureKeys, service: TokenService, clock: Clock, *, lifetime_ms: int
    ) -> None:
        self._account = account
        self._keys = keys
        self._service = service
        self._clock = clock
        self._lifetime_ms = lifetime_ms
        self.tokens = Renewed(self._fetch_token, clock)
        self.signing_keys = Renewed(self._fetch_key, clock)

    async def _fetch_token(self) -> Token:
        url = f"{self._account.authority_url}/oauth2/v2.0/token"
        form = {
            "grant_type": "client_credentials",
            "client_id": self._keys.client_id,
            "client_secret": self._keys.client_secret.reveal(),
            "scope": SCOPE,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        answer = await self._service.post(url, headers=headers, body=urlencode(form).encode())
        return read_token(answer, url, self._clock.now_us() // 1000)

    async def _fetch_key(self) -> DelegationKey:
        token = await self.tokens.load(min_left_ms=TOKEN_LEFT_MS)
        now_ms = self._clock.now_us() // 1000
        start, expiry = format_time(now_ms - _CLOCKS_APART_MS), format_time(now_ms + 2 * self._lifetime_ms)
        answer = await self._service.post(
            f"{self._account.url}/?restype=service&comp=userdelegationkey",
            headers={
                "authorization": f"Bearer {token.value.reveal()}",
                "content-type": "application/xml",
                "x-ms-version": VERSION,
            },
            body=f"<KeyInfo><Start>{start}</Start><Expiry>{expiry}</Expiry></KeyInfo>".encode(),
        )
        if not answer.is_success:
            code = _CODE.search(answer.body)
            raise self._refused(answer.status, code[1].decode() if code else "")
        # Read by name and shape: a parser of XML would take more than is expected here.
        parts = dict(_KEY_PART.findall(answer.body.decode(errors="replace")))
        try:
            return DelegationKey(
                object_id=parts["SignedOid"],
                tenant_id=parts["SignedTid"],
                start=parts["SignedStart"],
                expiry=parts["SignedExpiry"],
                service=parts["SignedService"],
                version=parts["SignedVersion"],
                value=Secret(parts["Value"]),
                issued_ms=now_ms,
                expires_ms=round(datetime.fromisoformat(parts["SignedExpiry"]).timestamp() * 1000),
            )
        except (KeyError, ValueError) as error:
            raise self._refused(answer.status, "not understood") from error

    def _refused(self, status: int, code: str) -> StorageRefused:
        return StorageRefused(
            "The account gives no key for signatures to the catalog's application",
            host=urlsplit(self._account.url).netloc,
            status=status,
            code=code,
            fix="Give the application the role Storage Blob Delegator on the account, and Storage Blob Data "
            "Contributor on its containers.",
        )
