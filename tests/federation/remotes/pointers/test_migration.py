"""Tables that PyIceberg wrote in a catalog of its own, moved to ours and written here. Files are in MinIO."""

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from cynosure.client.migration import Choices, Migration, MigrationState
from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import Corner
from tests.federation.remotes.pointers.test_through_server import ROWS, federate

VENDED = {
    "header.X-Iceberg-Access-Delegation": "vended-credentials",
    "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
}
pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.glue, pytest.mark.postgres, pytest.mark.s3]


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory: Path = tmp_path_factory.mktemp("near")
    with Processes(directory) as processes:
        env = {"CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
        yield asyncio.run(start_catalog_server(processes, directory, env=env))


async def move(near: CatalogServer, name: str, choices: Choices) -> None:
    """Move what is chosen of a federated catalog, all of its tables to the end."""
    async with near.client(timeout=60) as http:

        async def ask(step: Mapping[str, Any]) -> MigrationState:
            path = f"{MANAGEMENT}/cynosure/catalogs/{name}/migration"
            answer = await http.post(path, json=msgspec.to_builtins(step))
            assert answer.status_code == 200, answer.text
            return msgspec.json.decode(answer.content, type=MigrationState)

        moved = await Migration(ask).move(choices)
    assert moved.phase == "done", moved.objects
    assert {each.outcome for each in moved.objects if each.type == "table"} == {"released"}


async def test_tables_go_on_here_with_their_rows(
    near: CatalogServer, corner: Corner, minio: S3Server
) -> None:
    place, namespace = minio.fresh_location("moving"), f"moving_{uuid.uuid4().hex[:12]}"
    theirs: Catalog = await asyncio.to_thread(corner.connect, minio, place)
    ours = await federate(near, corner, minio, place)
    name = f"{namespace}.orders"

    def write_there() -> None:
        theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
        theirs.create_table(name, ROWS.schema, location=f"{place}/orders").append(ROWS)

    await asyncio.to_thread(write_there)
    # Others have tables in the same metastore: only what is ours is moved.
    await move(near, ours.name, Choices(writers_stopped=True, namespaces=((namespace,),)))

    def write_here() -> None:
        assert theirs.list_tables(namespace) == []
        table = ours.load_table(name)
        table.append(ROWS)
        assert ours.load_table(name).scan().to_arrow().num_rows == 4

    await asyncio.to_thread(write_here)
    _dispose(theirs)


async def test_tables_go_into_another_catalog_with_their_rows(
    near: CatalogServer, corner: Corner, minio: S3Server
) -> None:
    place, namespace = minio.fresh_location("moving"), f"moving_{uuid.uuid4().hex[:12]}"
    theirs: Catalog = await asyncio.to_thread(corner.connect, minio, place)
    through = await federate(near, corner, minio, place)
    served = await near.create_catalog_on(minio, f"into_{uuid.uuid4().hex[:12]}")

    def write_there() -> None:
        theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
        for name in ("orders", "stays"):
            table = theirs.create_table(f"{namespace}.{name}", ROWS.schema, location=f"{place}/{name}")
            table.append(ROWS)

    await asyncio.to_thread(write_there)
    chosen = ((namespace, "orders"),)
    await move(near, through.name, Choices(writers_stopped=True, tables=chosen, into=served.name))

    def write_here() -> None:
        assert theirs.list_tables(namespace) == [(namespace, "stays")]
        # With credentials of the other catalog, for what is in a place that was none of its own.
        ours = load_catalog(served.name, **(served.to_rest().properties | VENDED), uri=near.root, type="rest")
        table = ours.load_table(f"{namespace}.orders")
        assert table.location() == f"{place}/orders"
        table.append(ROWS)
        assert ours.load_table(f"{namespace}.orders").scan().to_arrow().num_rows == 4
        assert not through.table_exists(f"{namespace}.orders")
        through.load_table(f"{namespace}.stays").append(ROWS)
        assert theirs.load_table(f"{namespace}.stays").scan().to_arrow().num_rows == 4

    await asyncio.to_thread(write_here)
    _dispose(theirs)


def _dispose(catalog: Catalog) -> None:
    if (pool := getattr(catalog, "engine", None)) is not None:
        pool.dispose()
