"""A location as a person wrote it, made the one name of its place.

A maintainer must not break: links in local paths are resolved before a location is stored or compared. What a
link hides would be another place to us and the same to everyone else.
"""

from pathlib import Path

from cynosure.storage.location import Location


def resolve_location(text: str, *, field: str = "location") -> Location:
    """The location that a path, a `file:` URL or `s3://…` names. `BadInput` blames `field`."""
    location = Location.parse(text, field=field)
    return resolve_path(Path("/", *location.segments), field=field) if location.scheme == "file" else location


def resolve_path(path: Path, *, field: str) -> Location:
    """The location of a local path."""
    return Location.parse(f"file://{path.resolve()}", field=field)
