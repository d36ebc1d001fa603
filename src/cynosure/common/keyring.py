"""Envelope encryption of what must be stored but not be readable in the store.

Each value gets a data key of its own; the data key is wrapped by a master key, whose id stands in the
sealed bytes. Rotation therefore touches 60 bytes per value (`rewrap`), and old values open as long as
their master key is in the ring. The *context* (realm, type, id …) is authenticated: sealed bytes moved to
another row do not open there.

    "CK" | version (1) | key id length (1) | key id | nonce (12) | wrapped data key (48)
         | nonce (12) | ciphertext and tag

This layout is stored data: it changes only with a new version byte (golden bytes in the tests). AES-256-GCM
with random nonces is safe for about 2**32 wraps under one master key; rotate long before.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cynosure.common.errors import CorruptObject, Misconfigured, NewerFormat

KEY_BYTES = 32

_MAGIC = b"CK"
_VERSION = 1
_NONCE_BYTES = 12
_WRAPPED_BYTES = KEY_BYTES + 16
_MAX_ID_BYTES = 64

RandomBytes = Callable[[int], bytes]


class _Sealed(NamedTuple):
    key_id: str
    wrapped: bytes
    """Nonce and wrapped data key."""
    body: bytes
    """Nonce and ciphertext."""


class Keyring:
    """Master keys by id, one of them primary. Holds keys in memory; never prints them."""

    def __init__(
        self, keys: Mapping[str, bytes], primary: str, random_bytes: RandomBytes = os.urandom
    ) -> None:
        for key_id, key in keys.items():
            if len(key) != KEY_BYTES or not 0 < len(key_id.encode()) <= _MAX_ID_BYTES:
                raise Misconfigured(
                    "A master key is not usable",
                    key_id=key_id,
                    key_bytes=len(key),
                    fix=f"Use {KEY_BYTES} random bytes and an id of 1 to {_MAX_ID_BYTES} bytes.",
                )
        if primary not in keys:
            raise Misconfigured(
                "The primary master key is not in the keyring",
                key_id=primary,
                fix="Set keyring.primary to the id of one of the keys.",
            )
        self.primary = primary
        self._derivers = {key_id: _deriver(key) for key_id, key in keys.items()}
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self._random_bytes = random_bytes

    def encrypt(self, plaintext: bytes, context: Sequence[str]) -> bytes:
        """Seal `plaintext`; only `decrypt` with the same context opens it."""
        data_key = self._random_bytes(KEY_BYTES)
        nonce = self._random_bytes(_NONCE_BYTES)
        # The body does not authenticate the key id: `rewrap` must be able to keep the body.
        body = nonce + AESGCM(data_key).encrypt(nonce, plaintext, _associated("body", context))
        return self._wrap(data_key, context) + body

    def decrypt(self, sealed: bytes, context: Sequence[str]) -> bytes:
        """The plaintext. `CorruptObject` when bytes, key or context do not belong together."""
        parts = _split(sealed)
        data_key = self._unwrap(parts, context)
        try:
            return AESGCM(data_key).decrypt(
                parts.body[:_NONCE_BYTES], parts.body[_NONCE_BYTES:], _associated("body", context)
            )
        except InvalidTag as error:
            raise _does_not_open(parts.key_id) from error

    def rewrap(self, sealed: bytes, context: Sequence[str]) -> bytes:
        """The same value under the primary key. The ciphertext itself is kept and not read."""
        parts = _split(sealed)
        if parts.key_id == self.primary:
            return sealed
        return self._wrap(self._unwrap(parts, context), context) + parts.body

    def derive(self, purpose: str, key_id: str) -> bytes:
        """A key of its own for `purpose`, out of the master key of this id: 32 bytes, always the same.

        It says nothing about the master key, nor about keys for other purposes.
        """
        derive = self._derivers.get(key_id)
        if derive is None:
            raise _not_in_ring(key_id)
        return derive(purpose)

    def _wrap(self, data_key: bytes, context: Sequence[str]) -> bytes:
        name = self.primary.encode()
        head = _MAGIC + bytes([_VERSION, len(name)]) + name
        nonce = self._random_bytes(_NONCE_BYTES)
        associated = _associated("key", (self.primary, *context))
        return head + nonce + self._ciphers[self.primary].encrypt(nonce, data_key, associated)

    def _unwrap(self, parts: _Sealed, context: Sequence[str]) -> bytes:
        cipher = self._ciphers.get(parts.key_id)
        if cipher is None:
            raise _not_in_ring(parts.key_id)
        nonce, wrapped = parts.wrapped[:_NONCE_BYTES], parts.wrapped[_NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, wrapped, _associated("key", (parts.key_id, *context)))
        except InvalidTag as error:
            raise _does_not_open(parts.key_id) from error


def sealed_key_id(sealed: bytes) -> str:
    """Id of the master key that a value is sealed under, to find what is left to rewrap."""
    return _split(sealed).key_id


def _associated(part: str, context: Sequence[str]) -> bytes:
    # Lengths keep the words apart: ("a", "bc") and ("ab", "c") must differ.
    words = [word.encode() for word in (part, *context)]
    return bytes([_VERSION]) + b"".join(len(word).to_bytes(4, "big") + word for word in words)


def _split(sealed: bytes) -> _Sealed:
    if sealed[:2] != _MAGIC or len(sealed) < 4:
        raise CorruptObject("Bytes are not a sealed value", size_bytes=len(sealed))
    if sealed[2] != _VERSION:
        raise NewerFormat(
            "A sealed value has a format that this version does not know",
            format=sealed[2],
            fix="Run the version that wrote it, or a newer one.",
        )
    id_end = 4 + sealed[3]
    body_start = id_end + _NONCE_BYTES + _WRAPPED_BYTES
    if len(sealed) < body_start + _NONCE_BYTES + 16:
        raise CorruptObject("A sealed value is truncated", size_bytes=len(sealed))
    try:
        key_id = sealed[4:id_end].decode()
    except UnicodeDecodeError as error:
        raise CorruptObject("A sealed value has no readable key id", size_bytes=len(sealed)) from error
    return _Sealed(key_id, sealed[id_end:body_start], sealed[body_start:])


def _deriver(master: bytes) -> Callable[[str], bytes]:
    # A closure: an attribute with the key itself would be shown by whatever prints the keyring.
    def derive(purpose: str) -> bytes:
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=_associated("derived", (purpose,))).derive(master)

    return derive


def _not_in_ring(key_id: str) -> Misconfigured:
    return Misconfigured(
        "A stored value is protected by a master key that is not in the keyring",
        key_id=key_id,
        fix="Add the key to keyring.keys, or restore the key file of the data directory.",
    )


def _does_not_open(key_id: str) -> CorruptObject:
    return CorruptObject(
        "A sealed value does not open with its master key and context",
        key_id=key_id,
        fix="Check that the master key of this id is the one that sealed it; if so, restore the value.",
    )
