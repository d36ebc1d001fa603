"""An external catalog, and what the owner of its tables does: writing their metadata files."""

from pathlib import Path

import msgspec

from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.world import VERSION

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


async def make_external(directory: Directory, folder: Path, name: str = "ext") -> OpenCatalog:
    """An external catalog with its files below `folder`."""
    location = f"file://{folder / name}"
    storage = FileStorage(allowed_locations=(location,))
    wanted = NewCatalog(name=name, base_location=location, storage=storage, kind="EXTERNAL")
    await create_catalog(directory, ROOT, wanted)
    return await directory.open(DEFAULT_REALM, name)


def as_external(catalog: OpenCatalog) -> OpenCatalog:
    """A catalog as if it had been created as an external one."""
    entity = msgspec.structs.replace(catalog.entity, kind="EXTERNAL")
    return OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage)


def table_metadata(location: str, name: str = "v1", table_uuid: str = UUID, /, **more) -> dict:
    """Metadata of a table as its owner has it; `name` is in its properties."""
    return {
        "format-version": 2,
        "table-uuid": table_uuid,
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 2,
        "current-schema-id": 0,
        "schemas": [msgspec.json.decode(SCHEMA)],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"version": name},
        **more,
    }


async def write_metadata(
    catalog: OpenCatalog, name: str = "v1", *, at: str = "orders", table_uuid: str = UUID, **more
) -> str:
    """Write a metadata file below a directory of the catalog; where it is."""
    location = f"{catalog.base.text}/{at}"
    file = f"{location}/metadata/{name}.metadata.json"
    metadata = table_metadata(location, name, table_uuid, **more)
    await catalog.files.write(Location.parse(file), msgspec.json.encode(metadata))
    return file


async def view_file(catalog: OpenCatalog, *, at: str = "view", **more) -> str:
    """Write the metadata file of a view below a directory of the catalog; where it is."""
    location = f"{catalog.base.text}/{at}"
    metadata = {
        "view-uuid": UUID,
        "format-version": 1,
        "location": location,
        "current-version-id": 1,
        "versions": [msgspec.json.decode(VERSION)],
        "version-log": [{"version-id": 1, "timestamp-ms": 1}],
        "schemas": [msgspec.json.decode(SCHEMA)],
        **more,
    }
    file = f"{location}/metadata/v1.metadata.json"
    await catalog.files.write(Location.parse(file), msgspec.json.encode(metadata))
    return file
