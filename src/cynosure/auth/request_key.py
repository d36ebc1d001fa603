"""The Idempotency-Key of one attempt at a request, as operations carry it (`Caller.key`).

Operations know nothing of records and leases (`cynosure.idempotency`). They hand the key to `commit_as`,
which puts it into the chain with what the answer can be given from again, and answers from there when it is
there.

Must not break: the key's own text is only in memory. What is stored is its hash, and what is sealed under a
key derived from it and from a master key: nobody opens it without the text, and who has stolen the store
alone cannot try out texts.
"""

import os
from collections.abc import Callable
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cynosure.common.errors import CorruptObject, CynosureError
from cynosure.common.keyring import Keyring

_NONCE_BYTES = 12
_INFO = b"cynosure idempotency answer v1"
_FORWARDED = b"cynosure forwarded key v1"
_PURPOSE = "idempotency"

DescribeRefusal = Callable[[CynosureError], bytes | None]
"""An error as the answer that is stored for it; `None` for one that may end differently next time."""


class Rehearsed(Exception):
    """The caller may still do what it asks to repeat; nothing was done."""


class Refused(Exception):
    """An earlier attempt at this request was refused for good, and this is what it was told."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("refused before")
        self.answer = answer


class Overtaken(Exception):
    """An earlier attempt was committed while this one was being refused: ask again, and hear its answer."""


class Peppers:
    """What master keys add to the keys that answers are sealed under."""

    def __init__(self, keyring: Callable[[], Keyring]) -> None:
        self._keyring = keyring
        self._known: dict[str, bytes] = {}

    def get_primary(self) -> str:
        """Id of the master key that is used now."""
        return self._keyring().primary

    def get(self, key_id: str) -> bytes:
        """The pepper of a master key."""
        pepper = self._known.get(key_id)
        if pepper is None:
            pepper = self._known[key_id] = self._keyring().derive(_PURPOSE, key_id)
        return pepper


class RequestKey:
    """One attempt at a request that carries an Idempotency-Key."""

    __slots__ = (
        "_peppers",
        "_text",
        "describe_refusal",
        "hash",
        "is_committed",
        "is_recalled",
        "is_rehearsal",
        "is_repeat",
        "payload_hash",
    )

    def __init__(
        self,
        text: str,
        *,
        key_hash: str,
        payload_hash: str,
        describe_refusal: DescribeRefusal,
        peppers: Peppers,
        is_repeat: bool = False,
        is_rehearsal: bool = False,
    ) -> None:
        self._text = text
        self._peppers = peppers
        self.hash = key_hash
        """Of the key and its whole scope, lower-case hexadecimal: what the chain and the records hold."""
        self.payload_hash = payload_hash
        """Of what was asked for; lower-case hexadecimal."""
        self.describe_refusal = describe_refusal
        self.is_repeat = is_repeat
        """There was an attempt before this one. It may be paused somewhere and go on at any time, so what
        this one decides must be in the chain, a refusal too."""
        self.is_rehearsal = is_rehearsal
        """Only to find out whether the caller may still do it; ends with `Rehearsed`."""
        self.is_committed = False
        """Set when the outcome is in the chain, from where it can be given again."""
        self.is_recalled = False
        """Set when the answer is that of an earlier attempt."""

    def derive(self) -> str:
        """A key for another server that is asked to do what this request asks for: the same each time.

        Not the client's own text: to that server everyone here is one principal, and two who have used the
        same text would be taken for one.
        """
        # No pepper: it must be the same also when the master key was changed between two attempts.
        material = HKDF(algorithm=SHA256(), length=16, salt=bytes.fromhex(self.hash), info=_FORWARDED)
        return str(UUID(bytes=material.derive(self._text.encode()), version=4))

    def seal(self, plaintext: bytes) -> bytes:
        """Encrypt what only a request with this key may see again."""
        name = self._peppers.get_primary().encode()
        nonce = os.urandom(_NONCE_BYTES)
        return bytes([len(name)]) + name + nonce + self._cipher(name).encrypt(nonce, plaintext, name)

    def open(self, sealed: bytes) -> bytes:
        """What `seal` sealed for this key."""
        end = 1 + sealed[0] if sealed else 0
        name, nonce, body = sealed[1:end], sealed[end : end + _NONCE_BYTES], sealed[end + _NONCE_BYTES :]
        try:
            return self._cipher(name).decrypt(nonce, body, name)
        except (InvalidTag, ValueError) as error:
            raise CorruptObject("A stored answer does not open with its Idempotency-Key") from error

    def _cipher(self, name: bytes) -> AESGCM:
        # The scope is the salt: one text used in two places seals under two keys.
        derive = HKDF(algorithm=SHA256(), length=32, salt=bytes.fromhex(self.hash), info=_INFO)
        # The pepper has a fixed length, so nothing else can be pepper and text of the same bytes.
        return AESGCM(derive.derive(self._peppers.get(name.decode()) + self._text.encode()))

    def __repr__(self) -> str:
        return f"RequestKey({self.hash[:8]})"
