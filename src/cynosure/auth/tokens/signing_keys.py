"""The keys that a realm's own tokens are signed with: what is stored of them, and how they follow each other.

The newest signs. Those before it only check, until the last token that they signed has expired.

Must not break: stored structs get new fields with defaults only. The private part is sealed by the keyring,
for this realm and this key only; no other form of it leaves memory.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_der_public_key,
)

from cynosure.common.errors import CorruptObject
from cynosure.common.keyring import Keyring
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import RealmId

ALGORITHM: Final = "RS256"
_BITS: Final = 2048
_EXPONENT: Final = 65537


class StoredKey(Stored, frozen=True):
    """One key."""

    kid: str
    """Its RFC 7638 thumbprint: the same key has the same name everywhere."""
    public: bytes
    """SubjectPublicKeyInfo, DER."""
    sealed: bytes
    """The private part, PKCS #8, sealed by the keyring."""
    created_us: int
    retired_us: int = 0
    """When another one began to sign; 0 while it signs."""
    good_until_us: int = 0
    """When the last token that it signed has expired; 0 while it signs."""


class SigningKeys(Stored, frozen=True):
    """The keys of a realm, newest first."""

    keys: tuple[StoredKey, ...] = ()


SIGNING_KEYS = struct_type("signing-keys", SigningKeys)


class Signer(NamedTuple):
    """The key that signs now."""

    kid: str
    private: rsa.RSAPrivateKey


def generate_private() -> rsa.RSAPrivateKey:
    """A new key. Takes a tenth of a second of CPU: run it in a thread."""
    return rsa.generate_private_key(_EXPONENT, _BITS)


def seal_key(private: rsa.RSAPrivateKey, keyring: Keyring, realm: RealmId, now_us: int) -> StoredKey:
    """What to store of a new key."""
    public = private.public_key()
    kid = _thumbprint(public)
    encoded = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return StoredKey(
        kid=kid,
        public=public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        sealed=keyring.encrypt(encoded, _context(realm, kid)),
        created_us=now_us,
    )


def open_signer(key: StoredKey, keyring: Keyring, realm: RealmId) -> Signer:
    """The key with its private part, which must be the one of this realm and this public part."""
    encoded = keyring.decrypt(key.sealed, _context(realm, key.kid))
    # What the keyring opens is what we sealed; testing its primes again would take as long as making them.
    private = load_der_private_key(encoded, None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(private, rsa.RSAPrivateKey) or private.public_key() != open_public(key):
        raise _damaged(key)
    return Signer(key.kid, private)


def open_public(key: StoredKey) -> rsa.RSAPublicKey:
    """The public part."""
    public = load_der_public_key(key.public)
    if not isinstance(public, rsa.RSAPublicKey) or _thumbprint(public) != key.kid:
        raise _damaged(key)
    return public


def rewrap_key(key: StoredKey, keyring: Keyring, realm: RealmId) -> StoredKey:
    """The same key, sealed under the primary master key."""
    return msgspec.structs.replace(key, sealed=keyring.rewrap(key.sealed, _context(realm, key.kid)))


def apply_rotation(
    keys: Iterable[StoredKey], new: StoredKey, *, now_us: int, lifetime_us: int
) -> tuple[StoredKey, ...]:
    """The keys with a new one in front. The one before is retired; those that nobody needs are gone."""
    kept = [
        key
        if key.retired_us
        else msgspec.structs.replace(key, retired_us=now_us, good_until_us=now_us + lifetime_us)
        for key in keys
    ]
    return (new, *(key for key in kept if key.good_until_us > now_us))


def public_jwk(key: StoredKey) -> dict[str, str]:
    """The public part as others read it (RFC 7517)."""
    numbers = open_public(key).public_numbers()
    return {
        "kty": "RSA",
        "use": "sig",
        "alg": ALGORITHM,
        "kid": key.kid,
        "n": _base64(_bytes_of(numbers.n)),
        "e": _base64(_bytes_of(numbers.e)),
    }


def _context(realm: RealmId, kid: str) -> tuple[str, ...]:
    return ("signing-key", realm, kid)


def _thumbprint(public: rsa.RSAPublicKey) -> str:
    numbers = public.public_numbers()
    members: dict[str, Any] = {
        "e": _base64(_bytes_of(numbers.e)),
        "kty": "RSA",
        "n": _base64(_bytes_of(numbers.n)),
    }
    return _base64(hashlib.sha256(msgspec.json.encode(members, order="sorted")).digest())


def _bytes_of(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _base64(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _damaged(key: StoredKey) -> CorruptObject:
    return CorruptObject(
        "The parts of a signing key do not belong together",
        fix="Run 'cynosure tokens rotate --revoke'; all clients of the realm then need new tokens.",
        kid=key.kid,
    )
