"""Durations and sizes as people write them: `30s`, `PT30M`, `64 MiB`.

Formatting and parsing are inverse: what `format_duration` or `format_bytes` prints, the parsers read
back as the same value. A number without a unit is never taken for a duration.
"""

import re
from datetime import timedelta
from fractions import Fraction

import msgspec

_MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(w|d|h|ms|m|us|s)")

_BYTES = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)")


def parse_duration(text: str) -> timedelta:
    """Read `30s`, `1h30m`, `2d` or ISO-8601 (`PT30M`). `ValueError` when it is none of them or negative."""
    text = text.strip()
    try:
        if text.startswith(("P", "-P", "+P")):
            duration = msgspec.convert(text, timedelta)
        else:
            parts = _DURATION_PART.findall(text)
            if not parts or "".join(number + unit for number, unit in parts) != text:
                raise ValueError("not a duration")
            total = sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in parts)
            if total.denominator != 1:
                raise ValueError("finer than a microsecond")
            duration = timedelta(microseconds=int(total))
    except (msgspec.ValidationError, OverflowError) as error:
        raise ValueError("not a duration") from error
    if duration < timedelta(0):
        raise ValueError("negative duration")
    return duration


def format_duration(duration: timedelta) -> str:
    """Print exactly and short: `30d`, `1h30m`, `250ms`, `0s`."""
    rest = duration // timedelta(microseconds=1)
    text = ""
    for unit, size in _MICROSECONDS.items():
        if unit != "w" and (count := rest // size):
            text += f"{count}{unit}"
            rest -= count * size
    return text or "0s"


def parse_bytes(text: str) -> int:
    """Read `4096`, `64 MiB` (binary units) or `10 GB` (decimal units). `ValueError` when it is neither."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].lower() not in _BYTES:
        raise ValueError("not a size")
    size = Fraction(match[1]) * _BYTES[match[2].lower()]
    if size.denominator != 1:
        raise ValueError("not a whole number of bytes")
    return int(size)


def format_bytes(size_bytes: int) -> str:
    """Print exactly, in the largest binary unit that divides the size: `64 MiB`, `1000 B`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _BYTES[unit.lower()] == 0:
            return f"{size_bytes // _BYTES[unit.lower()]} {unit}"
    return f"{size_bytes} B"


def format_iso_duration(duration: timedelta) -> str:
    """As ISO-8601 has it: `PT30M`, `PT1H30M`, `PT0.5S`."""
    minutes, seconds = divmod(duration, timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    whole, micros = divmod(seconds // timedelta(microseconds=1), 1_000_000)
    text = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    if micros:
        text += f"{whole}.{micros:06}".rstrip("0") + "S"
    elif whole or not text:
        text += f"{whole}S"
    return f"PT{text}"
