"""Where tables and views may be: inside what the catalog allows, and apart from each other.

The index `locations` maps each table's location to its stable id. A new location must neither equal, hold nor
be inside another table's.

Must not break: inside `prepare` the index is asked through the tracked view, so two tables that are created
at once cannot get overlapping locations.
"""

import re
from typing import Final

from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key, encode_key, prefix_of
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_SEGMENT_CHARS: Final = 64

METADATA_PATH: Final = "write.metadata.path"
DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


def default_location(
    catalog: OpenCatalog, namespace: NamespaceEntity, name: Identifier, entity_id: ObjId
) -> str:
    """A location of its own for every table and view, below its namespace's.

    Names may hold anything, so only their harmless characters are taken, and the id makes it unique: also
    when a table was renamed and another takes its name.
    """
    own = namespace.properties.get("location")
    leaf = f"{_segment(name.name)}-{entity_id:x}"
    if own:
        return Location.parse(own, field="location").child(leaf).text
    return catalog.base.child(*(_segment(level) for level in name.namespace), leaf).text


def _segment(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_MAX_SEGMENT_CHARS].lstrip(".") or "_"


def check_allowed(catalog: OpenCatalog, text: str, *, field: str) -> Location:
    """Refuse a location that the catalog's storage configuration does not allow."""
    location = Location.parse(text, field=field)
    if not any(location.is_within(allowed) for allowed in catalog.allowed):
        raise LocationRefused(
            "The location is outside what this catalog may use",
            fix="Choose one below its allowed locations, or allow it with 'cynosure catalogs update'.",
            field=field,
            location=text,
        )
    return location


def check_property_locations(catalog: OpenCatalog, properties: dict[str, str]) -> None:
    """Refuse properties that send files outside what the catalog may use."""
    for name in (METADATA_PATH, *DATA_PATHS):
        if name in properties:
            check_allowed(catalog, properties[name], field=f"properties.{name}")


def location_key(location: Location) -> bytes:
    """Key of a location in the index."""
    return encode_key(*location.key())


async def claim_location(
    view: View, location: Location, entity_id: ObjId, *, given_up: bytes | None = None
) -> dict[bytes, bytes | None]:
    """Changes of the index `locations` that give this location to a table; refused when it is taken.

    `given_up` is the key of a location that the table leaves in the same commit.
    """
    parts = location.key()
    owner = encode_id_key(entity_id)
    # Ancestors one by one, shallowest last: a table above would hold this one.
    for length in range(len(parts), 1, -1):
        key = encode_key(*parts[:length])
        taken = await view.find("locations", key)
        if taken is not None and key != given_up and taken != owner:
            raise _taken(location)
    for key, taken in await view.scan("locations", prefix=prefix_of(*parts), limit=2):
        if key != given_up and taken != owner:
            raise _taken(location)
    changes: dict[bytes, bytes | None] = {location_key(location): owner}
    if given_up is not None and given_up not in changes:
        changes[given_up] = None
    return changes


def _taken(location: Location) -> LocationRefused:
    return LocationRefused(
        "The location overlaps with another table's",
        fix="Choose another location, or leave it out to get one of its own.",
        field="location",
        location=location.text,
    )
