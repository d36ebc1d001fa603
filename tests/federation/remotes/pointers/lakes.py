"""A catalog of ours whose storage is the one that a remote's tables are in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from cynosure.catalog.check_connection import ConnectionRules
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.secrets import Secret
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import S3Keys, S3Storage
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_catalog import ROOT, open_directory_in
from tests.federation.remotes.pointers.corners import Corner


@asynccontextmanager
async def open_lake(folder: Path, corner: Corner, server: S3Server, place: str) -> AsyncIterator[OpenCatalog]:
    """A federated catalog that may use `place`."""
    rules = ConnectionRules(is_implicit_allowed=True)
    storage = S3Storage(
        allowed_locations=(place,),
        region=server.region,
        endpoint=server.endpoint,
        path_style_access=True,
    )
    wanted = NewCatalog(
        name="near",
        base_location=place,
        storage=storage,
        storage_keys=S3Keys(server.access_key_id, Secret(server.secret_access_key)),
        kind="EXTERNAL",
        connection=corner.connection,
        connection_secrets=corner.secrets,
    )
    async with open_directory_in(folder, connections=rules) as directory:
        await create_catalog(directory, ROOT, wanted)
        yield await directory.open(DEFAULT_REALM, "near")


@asynccontextmanager
async def open_remote_at(
    folder: Path, corner: Corner, server: S3Server, place: str
) -> AsyncIterator[PointerRemote]:
    """A remote behind such a catalog."""
    async with open_lake(folder, corner, server, place) as catalog:
        remote = PointerRemote(corner.open(), catalog)
        yield remote
        await remote.close()
