"""Statistics of a table's files, over HTTP."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.common.clock import SystemClock
from cynosure.testing.small_catalog import ROOT, make_catalog, open_directory_in
from tests.catalog.manifests.writing import Writer, data_file, load
from tests.catalog.tables import change, make, snapshot

pytestmark = pytest.mark.anyio

TABLES = "/api/catalog/cynosure/v1/lake/namespaces/ns/tables"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Of a catalog with the table `t`, which has two files."""
    async with open_directory_in(tmp_path) as directory:
        catalog = await make_catalog(directory, tmp_path, "lake")
        await create_namespace(catalog, ROOT, ("ns",), {})
        await make(catalog)
        table = await load(catalog)
        writer = Writer(catalog, table)
        files = [data_file("a", file_size_bytes=10), data_file("b", file_size_bytes=30)]
        await writer.list("snap-1", [await writer.manifest("m", files)])
        await change(catalog, *snapshot(1, at=table.metadata.location))
        service = make_service(
            cynosure_routes(Catalogs(directory)),
            title="t",
            version="1",
            clock=SystemClock(),
            rng=random.Random(1),
            gate=OperatorGate(),
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


async def test_the_files_of_a_table_are_counted(client: httpx.AsyncClient):
    answer = await client.get(f"{TABLES}/t/statistics", params={"branch": "main"})

    assert answer.status_code == 200
    found = answer.json()
    assert found["data"] == {"files": 2, "records": 20, "bytes": 40}
    assert found["file-sizes"] == {"min": 10, "median": 10, "p90": 30, "max": 30}
    assert (found["snapshot-id"], found["snapshots"]) == (1, 1)
    assert found["small-files"] == {
        "files": 2,
        "bytes": 40,
        "ratio": 1.0,
        "below-bytes": 402_653_184,
        "target-bytes": 536_870_912,
    }
    nothing = {"files": 0, "records": 0, "bytes": 0}
    assert found["deletes"] == {
        "files": {"position": nothing, "equality": nothing, "deletion-vectors": nothing},
        "deleted-rows": 0,
        "ratio": 0.0,
        "files-with-deletes": 0,
    }
    assert found["partitions"] == {
        "count": 1,
        "specs": [{"spec-id": 0, "partitions": 1, "files": 2, "bytes": 40}],
        "largest": [{"spec-id": 0, "files": 2, "records": 20, "bytes": 40, "values": {}}],
        "files": {"min": 2, "median": 2, "max": 2, "skew": 1.0},
        "bytes": {"min": 40, "median": 40, "max": 40, "skew": 1.0},
    }
    none = await client.get(f"{TABLES}/t/statistics", params={"partitions": 0})
    assert none.json()["partitions"]["largest"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"snapshot-id": "2"}, "snapshot-id"),
        ({"snapshot-id": "x"}, "snapshot-id"),
        ({"snapshot-id": str(2**63)}, "snapshot-id"),
        ({"branch": "nowhere"}, "branch"),
        ({"branch": "main", "snapshot-id": "1"}, "branch"),
        ({"partitions": "-1"}, "partitions"),
        ({"partitions": "1001"}, "partitions"),
    ],
)
async def test_a_bad_request_is_told_what_is_wrong(
    client: httpx.AsyncClient, query: dict[str, str], field: str
):
    answer = await client.get(f"{TABLES}/t/statistics", params=query)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["message"]


async def test_a_table_that_is_not_there_has_none(client: httpx.AsyncClient):
    answer = await client.get(f"{TABLES}/nowhere/statistics")

    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NoSuchTableException")
