"""Table properties: which are reserved, how numbers are read, how large all may be together.

A maintainer must not break: a property is untrusted text. A number that does not parse falls back to its
default where it only tunes the server, so that a bad value never makes a table unusable.
"""

from collections.abc import Mapping
from typing import Final

from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.limits import SizeLimits

FORMAT_VERSION: Final = "format-version"

RESERVED: Final = frozenset(
    {
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names under which engines show what the metadata says elsewhere. Never stored."""


def get_int(properties: Mapping[str, str], name: str, default: int) -> int:
    """A whole number, or the default when it is missing or not one."""
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text) if len(text) <= 20 else default
    except ValueError:
        return default


def check_size(properties: Mapping[str, str], *, limits: SizeLimits, field: str = "properties") -> None:
    """Refuse properties that are too large together."""
    # Characters first: one pass of C over the strings decides for all but tables near the limit.
    length = sum(map(len, properties)) + sum(map(len, properties.values()))
    if length * 4 <= limits.max_properties_bytes:
        return
    length = sum(len(text.encode()) for pair in properties.items() for text in pair)
    if length > limits.max_properties_bytes:
        raise InvalidMetadata(
            "The properties are too large together",
            field=field,
            fix="Keep large values in files and name those.",
            bytes=length,
            limit=limits.max_properties_bytes,
        )
