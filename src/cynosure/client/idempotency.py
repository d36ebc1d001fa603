"""Idempotency-Keys as a client makes and checks them.

Must not break: a key is made from random bytes of the operating system. Who can guess one can ask for the
answer that belongs to it.
"""

import os
import re
import uuid
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from cynosure.common.errors import BadInput

KEY_HEADER: Final = "Idempotency-Key"

_KEY: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,254}")


class Replay(Struct, frozen=True):
    """A change that an earlier attempt had made or been refused already."""

    method: str
    path: str
    key: str


class Keys(Struct, frozen=True):
    """How a client uses Idempotency-Keys."""

    is_automatic: bool = True
    """Whether changes are repeated under a key, where the server honours keys. If not, the keys that a caller
    gives are sent, and that is all."""
    patience_s: float | None = None
    """How long a change is repeated at most; `None`: as long as the server honours its key."""
    on_replay: Callable[[Replay], None] | None = None
    """Told of every answer that the server gives again."""
    on_unsupported: Callable[[], None] | None = None
    """Told when a caller gives a key to a server that does not say that it honours them."""


def check_key(key: str, *, field: str = KEY_HEADER) -> str:
    """The key that a caller gives, if it is one."""
    if _KEY.fullmatch(key) is None:
        raise BadInput(
            "Not an Idempotency-Key",
            field=field,
            fix="Give 1 to 255 letters, digits, '_', '.' and '-', first a letter or digit; a UUID is one.",
        )
    return key


def make_key(now_us: int) -> str:
    """A new one: a UUID of version 7 (RFC 9562), as the Iceberg REST protocol wants it."""
    milliseconds = (now_us // 1000) & (1 << 48) - 1
    noise = int.from_bytes(os.urandom(10), "big")
    version_7, variant = 7 << 76, 2 << 62
    high, low = noise >> 68, noise & (1 << 62) - 1
    return str(uuid.UUID(int=milliseconds << 80 | version_7 | high << 64 | variant | low))
