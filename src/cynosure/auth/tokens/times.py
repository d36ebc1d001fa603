"""When a token is good: `exp`, `nbf` and `iat`, by this server's clock.

Must not break: a token without an end is refused.
"""

from collections.abc import Mapping
from typing import Any, Final

from cynosure.auth.tokens.errors import bad_token

LEEWAY_US: Final = 10_000_000
"""How far the clocks of two machines may be apart."""
_LATEST_S: Final = 1 << 40
"""Beyond any date; keeps arithmetic in bounds."""


def check_times(claims: Mapping[str, Any], now_us: int) -> int:
    """Refuse a token that is not good now; until when it is, in microseconds."""
    expires_us = _moment(claims, "exp")
    if expires_us is None:
        raise bad_token("no end")
    if now_us >= expires_us + LEEWAY_US:
        raise bad_token("expired")
    for name in ("nbf", "iat"):
        begins_us = _moment(claims, name)
        if begins_us is not None and now_us + LEEWAY_US < begins_us:
            raise bad_token("not good yet")
    return expires_us + LEEWAY_US


def _moment(claims: Mapping[str, Any], name: str) -> int | None:
    if name not in claims:
        return None
    value: Any = claims[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # An infinite number is not below the latest, and one that is none is not below anything.
    if not is_number or not 0 <= value < _LATEST_S:
        raise bad_token("malformed")
    return int(value * 1_000_000)
