"""A federated catalog whose connection leads nowhere: tests put a remote of their own behind it."""

from pathlib import Path

import msgspec

from cynosure.catalog.connection import Bearer, Connection, ConnectionSecrets
from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT

CONNECTION = Connection(
    type="ICEBERG_REST", uri="http://127.0.0.1:1/", remote_name="there", authentication=Bearer()
)
TOKEN = ConnectionSecrets(bearer_token=Secret("a-token-of-a-test"))


async def make_federated(directory: Directory, folder: Path, name: str = "far") -> OpenCatalog:
    """A federated catalog with its files below `folder`."""
    location = f"file://{folder / name}"
    wanted = NewCatalog(
        name=name,
        base_location=location,
        storage=FileStorage(allowed_locations=(location,)),
        kind="EXTERNAL",
        connection=CONNECTION,
        connection_secrets=TOKEN,
    )
    await create_catalog(directory, ROOT, wanted)
    return await directory.open(DEFAULT_REALM, name)


def as_federated(catalog: OpenCatalog) -> OpenCatalog:
    """A catalog as if it had been created as a federated one."""
    entity = msgspec.structs.replace(catalog.entity, kind="EXTERNAL", connected_to=CONNECTION)
    return OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage)
