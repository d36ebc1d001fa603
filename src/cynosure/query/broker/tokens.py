"""What a scan shows to get its task: 256 random bits, good for one fragment of one statement.

A maintainer must not break: only hashes are kept, and they are compared in constant time, also when there is
nothing to compare with.
"""

import hashlib
import hmac
import secrets
from typing import Final

TOKEN_BYTES: Final = 32

_NOBODYS: Final = hashlib.sha256(secrets.token_bytes(TOKEN_BYTES)).digest()


def make_token() -> tuple[str, bytes]:
    """A new token, and what is kept of it."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return token, digest_of(token)


def digest_of(token: str) -> bytes:
    """What is kept of a token. Random in all its bits, so it needs no salt and no slow hash."""
    return hashlib.sha256(token.encode()).digest()


def is_good(token: str, kept: bytes | None) -> bool:
    """Whether a token is the one; never where nothing is kept."""
    is_equal = hmac.compare_digest(digest_of(token), kept or _NOBODYS)
    return is_equal and kept is not None
