"""Signed tokens in compact form (RFC 7515), read strictly and checked with a key that the *reader* chose.

Must not break: nothing in a token says which key or algorithm it is checked with, beyond naming one of those
that the reader trusts already; and what can be read in two ways (repeated members, sloppy base64) is bad.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from jwt.algorithms import get_default_algorithms

from cynosure.auth.tokens.errors import bad_token

MAX_TOKEN_CHARS: Final = 8192
MIN_RSA_BITS: Final = 2048
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey

_PART = re.compile(r"[A-Za-z0-9_-]+")
_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES: Final = {"ES256": "secp256r1", "ES384": "secp384r1", "ES512": "secp521r1"}
_EDWARDS: Final = "EdDSA"
ASYMMETRIC: Final = frozenset({*_RSA, *_CURVES, _EDWARDS})
"""All that may be accepted: with a symmetric one, whoever can check a token could make one."""
_algorithms: Final = {name: made for name, made in get_default_algorithms().items() if name in ASYMMETRIC}


class Unchecked(NamedTuple):
    """A token as it was sent: well-formed, and nothing more."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


def read_token(token: str) -> Unchecked:
    """Take a token apart; `NotAuthenticated` when it is not one."""
    if len(token) > MAX_TOKEN_CHARS:
        raise bad_token("too long")
    parts = token.split(".")
    if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
        raise bad_token("malformed")
    header, claims, signature = map(_decode, parts)
    return Unchecked(_object(header), _object(claims), f"{parts[0]}.{parts[1]}".encode(), signature)


def check_signature(token: Unchecked, algorithm: str, key: PublicKey) -> None:
    """Refuse a token that `key` did not sign with exactly this algorithm."""
    if token.header.get("alg") != algorithm or not fits(algorithm, key):
        raise bad_token("wrong algorithm")
    if not _algorithms[algorithm].verify(token.signed, key, token.signature):
        raise bad_token("wrong signature")


def fits(algorithm: str, key: object) -> bool:
    """Whether a key is of the kind that an algorithm needs, and strong enough."""
    if algorithm in _RSA:
        return isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS
    if curve := _CURVES.get(algorithm):
        return isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == curve
    return algorithm == _EDWARDS and isinstance(key, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey))


def _decode(part: str) -> bytes:
    try:
        decoded = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError as error:
        raise bad_token("malformed") from error
    # The last character may hold bits that decoding drops: two spellings of one token.
    if urlsafe_b64encode(decoded).rstrip(b"=") != part.encode():
        raise bad_token("malformed")
    return decoded


def _object(encoded: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(encoded.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise bad_token("malformed") from error
    if not isinstance(value, dict):
        raise bad_token("malformed")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is repeated")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
