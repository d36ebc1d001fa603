"""Sealed page tokens: what a client carries from one page of a listing to the next.

A token is authentic, bound to one listing (`scope`) and to one store (the key), and lives for a
limited time. It is not secret: whoever holds it can read its payload, so no payload may say more
than the page it came with. All servers of a store must share the key.

    version (1) | expiry, µs since the epoch (8) | payload | HMAC-SHA256 (32)      in base64url, no padding
"""

import base64
import binascii
import hmac
from datetime import timedelta

from cynosure.common.clock import Clock
from cynosure.common.errors import BadPageToken, Expired, Misconfigured
from cynosure.common.quantities import format_duration

KEY_BYTES = 32

_VERSION = b"\x01"
_EXPIRY_BYTES = 8
_MAC_BYTES = 32
_HEAD_BYTES = len(_VERSION) + _EXPIRY_BYTES
_MAX_TOKEN_CHARS = 16_384
"""Longer than any token of ours; bounds the work that a stranger can cause."""
_FIX = "Pass the token exactly as the server returned it for this listing, or list again without one."


class PageTokens:
    """Issues and opens the page tokens of one store."""

    def __init__(self, key: bytes, clock: Clock, life: timedelta) -> None:
        if len(key) < KEY_BYTES:
            raise Misconfigured(
                "The page token key is too short",
                key_bytes=len(key),
                fix=f"Use {KEY_BYTES} random bytes, the same on every server of the store.",
            )
        self._key = key
        self._clock = clock
        self._life = life

    def seal(self, scope: str, payload: bytes) -> str:
        """A token for `payload` that only `open` with the same scope accepts."""
        expiry_us = self._clock.now_us() + self._life // timedelta(microseconds=1)
        body = _VERSION + expiry_us.to_bytes(_EXPIRY_BYTES, "big") + payload
        return _encode(body + self._mac(scope, body))

    def open(self, scope: str, token: str) -> bytes:
        """The payload of a token of this store and scope.

        `BadPageToken` when it is forged, damaged or foreign, `Expired` when it was ours for too long.
        """
        sealed = _decode(token)
        body, mac = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        # Order: nothing in the body is looked at before the seal is known to be ours.
        if len(body) < _HEAD_BYTES or not hmac.compare_digest(mac, self._mac(scope, body)):
            raise _bad_token()
        if body[:1] != _VERSION:
            raise _bad_token()
        expiry_us = int.from_bytes(body[1:_HEAD_BYTES], "big")
        if self._clock.now_us() >= expiry_us:
            raise Expired(
                "The page token has expired",
                life=format_duration(self._life),
                fix="List again without a page token, and fetch the pages sooner after each other.",
            )
        return body[_HEAD_BYTES:]

    def _mac(self, scope: str, body: bytes) -> bytes:
        name = scope.encode("utf-8", "surrogatepass")
        # The length keeps scope and body apart: ("a", "bc") and ("ab", "c") must differ.
        return hmac.digest(self._key, len(name).to_bytes(8, "big") + name + body, "sha256")


def _encode(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")


def _decode(token: str) -> bytes:
    if len(token) > _MAX_TOKEN_CHARS:
        raise _bad_token()
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad_token() from error
    # Base64 has several spellings of the same bytes; only the one we issue is ours.
    if _encode(sealed) != token:
        raise _bad_token()
    return sealed


def _bad_token() -> BadPageToken:
    return BadPageToken("The page token was not issued for this listing", field="pageToken", fix=_FIX)
