"""Percent-decoding that refuses what it cannot read.

A maintainer must not break: decoding happens per segment, after splitting, so `%2F` never becomes a
separator; and nothing is replaced silently, because two names must never decode to the same one.
"""

import re

from cynosure.common.errors import BadInput

_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})?")


def _unescape(match: re.Match[bytes]) -> bytes:
    digits = match[1]
    if digits is None:
        raise BadInput(
            "A percent sign is not followed by two hexadecimal digits",
            field="url",
            fix="Encode a literal percent sign as %25.",
        )
    return bytes.fromhex(digits.decode("ascii"))


def decode_segment(raw: bytes) -> str:
    """Decode one path segment, or one name or value of a query string."""
    decoded = _ESCAPE.sub(_unescape, raw) if b"%" in raw else raw
    try:
        return decoded.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            "A part of the URL is not UTF-8 after percent-decoding",
            field="url",
            fix="Encode names as UTF-8 before percent-encoding them.",
        ) from error


def decode_query(raw: bytes) -> list[tuple[str, str]]:
    """Names and values of a query string in their order; a name without `=` has an empty value."""
    pairs: list[tuple[str, str]] = []
    for part in raw.split(b"&"):
        if part:
            name, _, value = part.replace(b"+", b" ").partition(b"=")
            pairs.append((decode_segment(name), decode_segment(value)))
    return pairs
