"""Encryption keys of a table, themselves encrypted. Carried; nothing here opens them."""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.document import decode_json


class EncryptedKey(Struct, frozen=True, rename="kebab"):
    """A key, encrypted by another one."""

    key_id: str
    encrypted_key_metadata: str
    """Base64."""
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


def decode_key(json: bytes, *, field: str = "encryption-key") -> EncryptedKey:
    """The typed view of a key's JSON."""
    return decode_json(json, _KEY, field=field)


_KEY: Final = msgspec.json.Decoder(EncryptedKey)
