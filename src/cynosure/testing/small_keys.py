"""Callers with Idempotency-Keys, for tests of operations without a server around them.

    first = with_key(caller)                    the request as it comes first
    again = with_key(caller, is_repeat=True)    the same request once more, on whatever server

Must not break: two callers made with the same text have keys of their own with the same hash, as two attempts
at one request have.
"""

from hashlib import sha256

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.request_key import DescribeRefusal, Peppers, RequestKey
from cynosure.common.errors import CynosureError, Forbidden, NotAuthenticated, Unavailable
from cynosure.common.keyring import Keyring

KEY_TEXT = "3f6e0d5a9c7b48e1a2d4f60817b39c5e"
"""Long enough to be searched for in what was written."""
PEPPERS = Peppers(lambda: Keyring({"test": bytes(32)}, "test"))


def with_key(
    caller: Caller,
    text: str = KEY_TEXT,
    *,
    payload: str = "asked for",
    is_repeat: bool = False,
    is_rehearsal: bool = False,
    describe: DescribeRefusal | None = None,
) -> Caller:
    """The caller in one attempt at a request with this key, which asks for `payload`."""
    key = RequestKey(
        text,
        key_hash=sha256(f"scope {text}".encode()).hexdigest(),
        payload_hash=sha256(payload.encode()).hexdigest(),
        describe_refusal=describe or describe_refusal,
        peppers=PEPPERS,
        is_repeat=is_repeat,
        is_rehearsal=is_rehearsal,
    )
    return structs.replace(caller, key=key)


def key_of(caller: Caller) -> RequestKey:
    """The key that `with_key` gave a caller."""
    assert caller.key is not None
    return caller.key


def describe_refusal(error: CynosureError) -> bytes | None:
    """What a test keeps of a refusal: enough to recognise it. `None` for those that are not for good."""
    if isinstance(error, Forbidden | NotAuthenticated | Unavailable):
        return None
    return f"{type(error).__name__} {error}".encode()
