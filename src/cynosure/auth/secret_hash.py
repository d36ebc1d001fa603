"""What is kept of client secrets: HMAC-SHA256 under a pepper that is not in the store.

The pepper comes from a master key of the keyring, so whoever steals the store alone cannot even try guesses,
also where somebody chose a weak secret. That is why a fast hash is enough, and a login costs microseconds.

Must not break: recognising a secret takes the same work for every client, known or not, with one secret or
two, right or wrong. Else the time would tell which client ids exist.
"""

import hmac
import os
from collections.abc import Callable, Sequence
from typing import Final

from cynosure.auth.entities import StoredSecret
from cynosure.common.errors import Misconfigured
from cynosure.common.keyring import Keyring, RandomBytes
from cynosure.common.secrets import Secret

MAX_SECRETS: Final = 2
"""Of one principal: the newest, and the one before it until everybody has changed over."""

_SALT_BYTES: Final = 16
_PURPOSE: Final = "client-secrets"
_NOBODY: Final = StoredSecret(generation=0, salt=bytes(_SALT_BYTES), digest=bytes(32), key="")


class SecretHasher:
    """Hashes secrets, and recognises them."""

    def __init__(self, keyring: Callable[[], Keyring], random_bytes: RandomBytes = os.urandom) -> None:
        self._keyring = keyring
        self._random_bytes = random_bytes
        self._peppers: dict[str, bytes] = {}
        self._primary_key = ""
        self.digests = 0
        """How many were worked out: the work that a stranger could measure."""

    def hash(self, secret: Secret, generation: int) -> StoredSecret:
        """What to store of a secret."""
        key, salt = self._primary(), self._random_bytes(_SALT_BYTES)
        return StoredSecret(generation=generation, salt=salt, digest=self._digest(secret, salt, key), key=key)

    def find_match(self, secret: Secret, stored: Sequence[StoredSecret]) -> StoredSecret | None:
        """The stored secret that this one is, of at most `MAX_SECRETS`; always the same work.

        For a client that does not exist: of none.
        """
        matched: StoredSecret | None = None
        primary = self._primary()
        for each in (*stored, *[_NOBODY] * (MAX_SECRETS - len(stored))):
            digest = self._digest(secret, each.salt, each.key or primary)
            is_same = hmac.compare_digest(digest, each.digest)
            matched = each if is_same and each is not _NOBODY else matched
        return matched

    def require_pepper(self, stored: StoredSecret) -> None:
        """`Misconfigured` when this keyring cannot tell whether a secret is this one."""
        self._pepper(stored.key)

    def _digest(self, secret: Secret, salt: bytes, key: str) -> bytes:
        self.digests += 1
        pepper = self._pepper(key)
        # The salt has a fixed length, so nothing else can be salt and secret of the same bytes.
        return hmac.digest(pepper, salt + secret.reveal().encode("utf-8", "surrogatepass"), "sha256")

    def _primary(self) -> str:
        if not self._primary_key:
            key_id = self._keyring().primary
            self._primary_key = f"{key_id}/{_mark(self._keyring().derive(_PURPOSE, key_id))}"
        return self._primary_key

    def _pepper(self, key: str) -> bytes:
        pepper = self._peppers.get(key)
        if pepper is None:
            key_id, _, mark = key.rpartition("/")
            pepper = self._keyring().derive(_PURPOSE, key_id)
            if _mark(pepper) != mark:
                # Key files all begin with the same id, so the id alone would not tell.
                raise Misconfigured(
                    "Client secrets are protected by another master key of the same id",
                    key_id=key_id,
                    fix="Servers of one store share their keys: set keyring.file or keyring.keys to those of "
                    "the other. If they are lost, run 'cynosure realms reset-root'.",
                )
            self._peppers[key] = pepper
        return pepper


def _mark(pepper: bytes) -> str:
    """Recognises a pepper, and says nothing about it."""
    return hmac.digest(pepper, b"mark", "sha256")[:4].hex()
