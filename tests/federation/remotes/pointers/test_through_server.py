"""The whole way: PyIceberg asks a server of ours, which asks Hive, Glue or PostgreSQL. Files are in MinIO.

PyIceberg has no key to the store here but what the server gives it.
"""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import Corner

pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.glue, pytest.mark.postgres, pytest.mark.s3]

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "note": pa.array(["a", "b"])})


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory: Path = tmp_path_factory.mktemp("near")
    with Processes(directory) as processes:
        env = {"CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
        yield asyncio.run(start_catalog_server(processes, directory, env=env))


def describe(corner: Corner) -> dict[str, Any]:
    """A connection as the API takes it."""
    given: dict[str, Any] = {
        "HIVE": {"authenticationType": "IMPLICIT"},
        "GLUE": {
            "authenticationType": "SIGV4",
            "signingRegion": getattr(corner, "region", ""),
            "accessKeyId": getattr(corner, "key", ""),
            "secretAccessKey": getattr(corner, "secret", ""),
        },
        "SQL": {
            "authenticationType": "PASSWORD",
            "user": getattr(corner.connection.authentication, "user", ""),
            "password": corner.secrets.password.reveal() if corner.secrets.password else "",
        },
    }[corner.connection.type]
    found = {
        "connectionType": corner.connection.type,
        "uri": corner.connection.uri,
        "authenticationParameters": given,
    }
    if corner.connection.remote_name is not None:
        found["remoteCatalogName"] = corner.connection.remote_name
    return found


async def federate(near: CatalogServer, corner: Corner, server: S3Server, place: str) -> RestCatalog:
    """A catalog of our server before the remote; PyIceberg's view of it."""
    name = f"near_{uuid.uuid4().hex[:12]}"
    wanted = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {
            "default-base-location": place,
            "polaris.config.enable.credential.vending": "true",
        },
        "storageConfigInfo": {**server.storage(), "allowedLocations": [place]},
        "connectionConfigInfo": describe(corner),
    }
    async with near.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": wanted})
        await admin.grant_content(name)
    return await asyncio.to_thread(
        RestCatalog,
        name,
        uri=near.root,
        warehouse=name,
        credential=near.credential.text,
        scope=ALL_ROLES,
        **{
            "oauth2-server-uri": f"{near.root}/v1/oauth/tokens",
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        },
    )


async def test_tables_are_read_and_written_through_our_server(
    near: CatalogServer, corner: Corner, minio: S3Server
):
    place = minio.fresh_location("through")
    namespace = f"through_{uuid.uuid4().hex[:12]}"
    theirs: Catalog = await asyncio.to_thread(corner.connect, minio, place)
    ours = await federate(near, corner, minio, place)

    def work() -> None:
        # A metastore has a place for every database: where nobody names one, in a warehouse of its own.
        theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
        table = theirs.create_table(f"{namespace}.made_there", ROWS.schema, location=f"{place}/made_there")
        table.append(ROWS)

        seen = ours.load_table(f"{namespace}.made_there")
        assert sorted(seen.scan().to_arrow().column("id").to_pylist()) == [1, 2]
        seen.append(ROWS)
        assert theirs.load_table(f"{namespace}.made_there").scan().to_arrow().num_rows == 4
        assert ours.list_tables(namespace) == [(namespace, "made_there")]

        made = ours.create_table(f"{namespace}.made_here", ROWS.schema)
        made.append(ROWS)
        found = theirs.load_table(f"{namespace}.made_here")
        assert found.scan().to_arrow().num_rows == 2
        with found.update_schema() as change:
            change.add_column("more", made.schema().find_type("note"))
        assert ours.load_table(f"{namespace}.made_here").schema().find_field("more")

        ours.rename_table(f"{namespace}.made_here", f"{namespace}.renamed")
        assert theirs.table_exists(f"{namespace}.renamed")
        ours.drop_table(f"{namespace}.renamed")
        with pytest.raises(NoSuchTableError):
            theirs.load_table(f"{namespace}.renamed")

    await asyncio.to_thread(work)
    if (pool := getattr(theirs, "engine", None)) is not None:
        pool.dispose()
