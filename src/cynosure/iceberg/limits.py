"""How large a table's metadata may become, so that one request cannot exhaust a server."""

from typing import Final

from msgspec import Struct


class SizeLimits(Struct, frozen=True):
    """Upper bounds that the caller sets; checked where metadata is parsed and updated."""

    max_columns: int = 5_000
    """Fields of one schema, nested ones included."""
    max_properties_bytes: int = 1024 * 1024
    """All names and values together, as UTF-8."""
    max_snapshots: int = 50_000


DEFAULT_LIMITS: Final = SizeLimits()
