"""Where tables and views may be: inside what the catalog allows now. What they hold there: `claims.py`.

Must not break: whatever names a location is checked here: at every creation, registration and commit, not
only when it changes, because what a catalog allows may have become less.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_id_key, encode_id_key, encode_key
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location, is_allowed

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_SEGMENT_CHARS: Final = 64

METADATA_PATH: Final = "write.metadata.path"
PATHS: Final = (METADATA_PATH, "write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""Every property in which Iceberg's clients, old and new, look for a place to write to."""

ID_BYTES: Final = len(encode_id_key(0))
"""Of the stable id that a value of the index begins with. Behind it may be the id of a drop (`claims.py`)."""

EXTERNAL_METADATA: Final = "polaris.config.allow.external.metadata.file.location"
"""Property of a catalog: `true` lets metadata files be registered that are not in their table's directory."""


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


def find_levels_location(catalog: OpenCatalog, namespace: Namespace) -> Location | None:
    """Where tables of a namespace without a location go; `None` where those of another one may go too."""
    segments = [_segment(level) for level in namespace]
    return catalog.base.child(*segments) if segments and tuple(segments) == namespace else None


def _segment(name: str) -> str:
    return _UNSAFE.sub("_", name)[:_MAX_SEGMENT_CHARS].strip(".") or "_"


@lru_cache(maxsize=4_096)
def parse_place(text: str) -> Location:
    """A location that was checked before it was stored. Remembered: every commit to a table asks again."""
    return Location.parse(text)


def check_allowed(catalog: OpenCatalog, text: str, *, field: str) -> Location:
    """Refuse a location that the catalog's storage configuration does not allow."""
    location = Location.parse(text, field=field)
    require_allowed(catalog, location, field=field)
    return location


def require_allowed(catalog: OpenCatalog, location: Location, *, field: str) -> None:
    """As `check_allowed`, for one that is parsed already."""
    if not is_allowed(location, catalog.allowed):
        raise LocationRefused(
            "The location is outside what this catalog may use",
            fix="Choose one below its allowed locations, or allow it with 'cynosure catalogs update'.",
            field=field,
            location=location.text,
        )


def list_paths(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The properties of a table or view that say where files go."""
    for name in PATHS:
        # Empty is as good as missing: clients then write below the table's location.
        if text := properties.get(name):
            yield name, text


def check_paths(catalog: OpenCatalog, properties: Mapping[str, str]) -> list[Location]:
    """Where properties send files; refused when that is outside what the catalog may use."""
    return [check_allowed(catalog, text, field=f"properties.{name}") for name, text in list_paths(properties)]


async def check_namespace_location(
    catalog: OpenCatalog, view: View, properties: Mapping[str, str], *, field: str = "properties"
) -> None:
    """Refuse a namespace whose tables would go where they may not: outside, or into another table."""
    text = properties.get("location")
    if not text:
        return
    location = check_allowed(catalog, text, field=f"{field}.location")
    if await find_holder(view, location) is not None:
        raise LocationRefused(
            "The location is inside that of a table",
            fix="Choose another location for the namespace, or leave it out.",
            field=f"{field}.location",
            location=location.text,
        )


def location_key(location: Location) -> bytes:
    """Key of a location in the index."""
    return encode_key(*location.key())


async def find_holder(view: View, location: Location) -> ObjId | None:
    """Stable id of the table or view that holds this place, or one above it; also when it is dropped."""
    parts = location.key()
    for length in range(len(parts), 1, -1):
        holder = await view.find("locations", encode_key(*parts[:length]))
        if holder is not None:
            return ObjId(decode_id_key(holder[:ID_BYTES]))
    return None
