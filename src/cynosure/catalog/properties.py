"""Properties of namespaces and views: what may be stored.

A maintainer must not break: the limit counts bytes, as they are stored; characters would let through four
times as much.
"""

from collections.abc import Mapping

from cynosure.catalog.settings import SizeSettings
from cynosure.common.errors import BadInput


def check_properties(
    properties: Mapping[str, str], sizes: SizeSettings, *, field: str = "properties"
) -> None:
    """Refuse properties that are too large together, or have no name."""
    if "" in properties:
        raise BadInput("A property has an empty name", field=field, fix="Name the property.")
    size_bytes = sum(len(name.encode()) + len(value.encode()) for name, value in properties.items())
    if size_bytes > sizes.properties_bytes:
        raise BadInput(
            "The properties are too large",
            field=field,
            fix="Store less in properties, or raise catalog.sizes.properties_bytes.",
            size_bytes=size_bytes,
            max_bytes=sizes.properties_bytes,
        )
