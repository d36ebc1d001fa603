"""Many clients append to one table at once, and none of them notices the others (I82).

PyIceberg by commits that the server rebases, plain HTTP clients by the append endpoint; on local files and
with vended credentials on S3; on one server and on two that share a database. Spark is in
`spark/test_contention.py`.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyiceberg.exceptions import CommitFailedException

from cynosure.testing.catalog_server import ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import make_credential
from cynosure.testing.s3_servers import find_s3_servers
from tests.engines.conftest import MakeLake
from tests.engines.contention import (
    NAME,
    NO_RETRY,
    REBASED,
    ROUNDS,
    WRITERS,
    Endpoint,
    all_ids,
    assert_rows_are_numbered,
    assert_whole,
    create_table,
    fetch_metadata,
    run_at_once,
    write_files,
    write_with_pyiceberg,
)
from tests.engines.pyiceberg_client import connect

NOBODY_FAILED = [None] * WRITERS


class Place(NamedTuple):
    """Where the files are, and the table's format version."""

    name: str
    version: int


FILES = pytest.param(Place("files", 2), id="files-v2")
FILES_V3 = pytest.param(Place("files", 3), id="files-v3")
MINIO = pytest.param(Place("minio", 2), id="minio-v2", marks=pytest.mark.s3)
MINIO_V3 = pytest.param(Place("minio", 3), id="minio-v3", marks=pytest.mark.s3)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    return request.param


@pytest.fixture
def lake(
    place: Place, make_lake: MakeLake, make_served_catalog: Callable[[], ServedCatalog]
) -> ServedCatalog:
    return make_served_catalog() if place.name == "files" else make_lake(find_s3_servers()[place.name])


def judge(lake: ServedCatalog) -> set[int]:
    """Whether all that was appended is there, and nothing else; the snapshots."""
    with connect(lake.to_rest()) as catalog:
        assert_whole(catalog.load_table(NAME), all_ids(range(WRITERS)))
    metadata = fetch_metadata(lake)
    if metadata["format-version"] == 3:
        assert_rows_are_numbered(metadata)
    return {snapshot["snapshot-id"] for snapshot in metadata["snapshots"]}


def test_without_rebase_writers_that_begin_together_meet_conflicts(
    make_served_catalog: Callable[[], ServedCatalog],
):
    """What the other tests here would see if nothing were rebased."""
    rest = make_served_catalog().to_rest()
    create_table(rest, 2, NO_RETRY)

    failures = run_at_once([write_with_pyiceberg(rest, writer, 1) for writer in range(WRITERS)])

    assert sum(isinstance(failed, CommitFailedException) for failed in failures) >= 1


# PyIceberg 0.12 cannot write to tables of version 3.
@pytest.mark.parametrize("place", [FILES, MINIO], indirect=True)
def test_writers_of_pyiceberg_meet_no_conflict(lake: ServedCatalog, place: Place):
    rest = lake.to_rest()
    create_table(rest, place.version, REBASED)

    assert run_at_once([write_with_pyiceberg(rest, each) for each in range(WRITERS)]) == NOBODY_FAILED

    assert len(judge(lake)) == WRITERS * ROUNDS


@pytest.mark.parametrize("place", [FILES, FILES_V3, MINIO, MINIO_V3], indirect=True)
def test_clients_of_the_endpoint_meet_no_conflict(lake: ServedCatalog, place: Place):
    rest = lake.to_rest()
    create_table(rest, place.version, NO_RETRY)
    with connect(rest) as catalog:
        files = [write_files(catalog, each) for each in range(WRITERS)]

    endpoint = Endpoint(lake)
    assert run_at_once([endpoint.write(each) for each in files]) == NOBODY_FAILED

    assert judge(lake) == endpoint.told


@pytest.fixture
def two_servers(tmp_path: Path, postgres_schema_url: str) -> Iterator[list[ServedCatalog]]:
    """One catalog through two servers that share a database, keys and files."""
    env = {
        "CYNOSURE_PERSISTENCE__URL": postgres_schema_url,
        "CYNOSURE_STORAGE__FILE_ROOTS__SHARED": str(tmp_path / "shared"),
        "CYNOSURE_KEYRING__FILE": str(tmp_path / "keyring.json"),
    }
    root = make_credential()

    async def start() -> list[ServedCatalog]:
        servers = await asyncio.gather(
            *(
                start_catalog_server(
                    processes, tmp_path, data=tmp_path / name, name=name, credential=root, env=env
                )
                for name in ("first", "second")
            )
        )
        await servers[0].create_catalog("lake", location=(tmp_path / "shared" / "lake").as_uri())
        return [server.get("lake") for server in servers]

    with Processes(tmp_path) as processes:
        yield asyncio.run(start())


def test_writers_and_the_endpoint_on_two_servers_meet_no_conflict(two_servers: list[ServedCatalog]):
    lake = two_servers[0]
    create_table(lake.to_rest(), 2, REBASED)
    with connect(lake.to_rest()) as catalog:
        files = {each: write_files(catalog, each) for each in range(WRITERS // 2)}

    endpoints = [Endpoint(each) for each in two_servers]
    tasks = [endpoints[each % 2].write(files[each]) for each in range(WRITERS // 2)]
    tasks += [
        write_with_pyiceberg(two_servers[each % 2].to_rest(), each) for each in range(WRITERS // 2, WRITERS)
    ]
    assert run_at_once(tasks) == NOBODY_FAILED

    told = endpoints[0].told | endpoints[1].told
    assert told < (found := judge(lake))
    assert len(found) == len(told) + WRITERS // 2 * ROUNDS
