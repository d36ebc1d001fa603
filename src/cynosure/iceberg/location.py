"""Table locations as text."""

from cynosure.iceberg.errors import InvalidMetadata


def strip_trailing_slash(location: str) -> str:
    """The same location without a trailing slash, unless nothing but a scheme would be left."""
    if not location:
        raise InvalidMetadata("The location is empty", field="location", fix="Send where the table lives.")
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location
