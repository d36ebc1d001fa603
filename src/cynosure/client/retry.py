"""Which failures may be tried again.

Three kinds, never merged: *nothing was applied* (the request did not leave, or the server said so with
429 or 503): any request may be repeated; *unknown* (the connection broke or the time ran out after
sending): only requests that may be applied twice; *answered*: never.

A request whose Idempotency-Key the server honours may be repeated after everything that is not an answer, and
for it more is none: what went wrong inside the server (500), and that an earlier attempt is still going on.
"""

import email.utils
from enum import Enum
from typing import Final

import httpx


class Failure(Enum):
    """What a failed attempt says about the server's state."""

    NOTHING_APPLIED = "nothing applied"
    UNKNOWN = "unknown"


REPEATABLE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT"})
"""Not DELETE: a repeated one answers 404 and hides that the first one did it."""

_BUSY: Final = frozenset({429, 503})
_GATEWAY: Final = frozenset({502, 504})


def classify_error(error: httpx.TransportError) -> Failure:
    """What a broken attempt says."""
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return Failure.NOTHING_APPLIED
    return Failure.UNKNOWN


def classify_status(status: int) -> Failure | None:
    """What a status says; `None` when it is the answer."""
    if status in _BUSY:
        return Failure.NOTHING_APPLIED
    return Failure.UNKNOWN if status in _GATEWAY else None


def classify_keyed(status: int, *, is_in_progress: bool) -> Failure | None:
    """What a status says of a request whose Idempotency-Key the server honours; `None`: it is the answer."""
    if is_in_progress or status == 500:
        return Failure.UNKNOWN
    return classify_status(status)


def parse_retry_after_s(value: str | None, now_s: float) -> float:
    """Seconds that a `Retry-After` header asks for; 0 when it is absent or unreadable."""
    if not value:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    try:
        at = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    return max(0.0, at.timestamp() - now_s)
