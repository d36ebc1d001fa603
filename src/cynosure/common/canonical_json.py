"""JSON in the one form that RFC 8785 gives every document: members sorted, no white space, one spelling each.

Reading and writing is msgspec's, which writes strings and small integers as the RFC asks and is fast enough
for every request. `rfc8785` writes the numbers with a fraction or an exponent, of which a commit has few.
Members are put into the order of UTF-16 code units here, where that differs from the order of code points.

One thing is finer than the RFC: integers keep all their digits. It would round them to doubles, and two
snapshot ids of Iceberg, which have 64 bits, would become one. Integers up to 2^53 are the same either way.

What Python does here and not msgspec, fractions and the order of UTF-16, takes microseconds each. And every
value is made, also those that no route looks at: two brackets become an object of some sixty bytes. Large
documents may have little of all that, so that nobody can hold up a server, or fill it, with megabytes of it.

Must not break: documents that a decoder of ours turns into different values never have one form. Of members
with the same name the last one counts, as in every struct and dictionary that msgspec makes.
"""

import re
from typing import Any, Final

import msgspec
import rfc8785

LARGE: Final = 2**18
"""From this many bytes on there are limits."""
MAX_FRACTIONS: Final = 20_000
"""Numbers with a fraction or an exponent in a large document; 40 ms of work. No commit comes near."""
MAX_CONTAINERS: Final = 50_000
"""Objects and lists in a large document. Ten megabytes of brackets took seconds, and 400 MB."""
MAX_VALUES: Final = 500_000
"""Values of all kinds in a large document."""

_BEYOND_UTF16_UNIT = re.compile(rb"[\xf0-\xf4]")
"""First bytes of characters that UTF-16 writes as surrogates, U+D800 to U+DFFF …"""
_ABOVE_SURROGATES = re.compile(rb"[\xee\xef]")
"""… and of those from U+E000 on, which it therefore sorts behind them, and UTF-8 before."""


def _write_float(text: str) -> msgspec.Raw:
    return msgspec.Raw(rfc8785.dumps(float(text)))


_decode = msgspec.json.Decoder(float_hook=_write_float).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_encode = msgspec.json.Encoder().encode


def canonicalize(document: bytes) -> bytes | None:
    """The document in its one form; `None` if it is not JSON in UTF-8, or nested too deeply, or too costly.

    RFC 8785 has no form either for lone surrogates, numbers beyond a double, and a byte order mark.
    """
    is_large = len(document) >= LARGE
    try:
        value = _decode_large(document) if is_large else _decode(document)
        written = _encode_sorted(value)
        if (
            not written.isascii()
            and _BEYOND_UTF16_UNIT.search(written) is not None
            and _ABOVE_SURROGATES.search(written) is not None
        ):
            if is_large:
                return None
            written = _encode(_sort_by_utf16(value))
    except (ValueError, RecursionError):
        return None
    return written


def _decode_large(document: bytes) -> Any:
    # By their signs, also where those are inside of strings: that it may be too much is all that is asked.
    if (
        document.count(b"[") + document.count(b"{") > MAX_CONTAINERS
        or document.count(b",") + document.count(b":") > MAX_VALUES
    ):
        raise ValueError("The document has too many values")
    written = 0

    def write_float(text: str) -> msgspec.Raw:
        nonlocal written
        written += 1
        if written > MAX_FRACTIONS:
            raise ValueError("The document has too many fractions")
        return _write_float(text)

    return msgspec.json.Decoder(float_hook=write_float).decode(document)


def _sort_by_utf16(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sort_by_utf16(value[name]) for name in sorted(value, key=_utf16)}
    if isinstance(value, list):
        return [_sort_by_utf16(item) for item in value]
    return value


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")
