"""Tokens made by hand: whatever a test wants to be written in them."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import get_default_algorithms

ALGORITHMS = get_default_algorithms()
STRANGER = rsa.generate_private_key(65537, 2048)
"""A key that nobody here trusts."""


def base64(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def part_of(token: str, at: int) -> dict[str, Any]:
    part = token.split(".")[at]
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def header_of(token: str) -> dict[str, Any]:
    return part_of(token, 0)


def claims_of(token: str) -> dict[str, Any]:
    return part_of(token, 1)


def forge(header: Any, claims: Any, key: Any, algorithm: str | None = "RS256") -> str:
    """A token with this header and body (as JSON text, or values for it), signed whatever the header says."""
    parts = [part if isinstance(part, str) else json.dumps(part) for part in (header, claims)]
    signed = ".".join(base64(part.encode()) for part in parts)
    signature = b"" if algorithm is None else ALGORITHMS[algorithm].sign(signed.encode(), key)
    return f"{signed}.{base64(signature)}"
