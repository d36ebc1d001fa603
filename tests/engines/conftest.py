"""A server of ours for real clients, and what those clients need fetched before the first test.

CYNOSURE_ENGINE_URI points the tests at another REST catalog, to tell a client's behaviour from ours:

    CYNOSURE_ENGINE_URI="http://127.0.0.1:18181" pytest tests/engines/spark
    CYNOSURE_ENGINE_URI="http://127.0.0.1:18182/iceberg warehouse=wh" pytest tests/engines/spark

(The compatibility kit: ./dev rck --uri URI NAME=VALUE …)

A maintainer must not break: nothing is fetched inside a test, where a slow network would look like a hang.
"""

import asyncio
import os
import random
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import pytest

from cynosure.testing.catalog_server import CatalogServer, RestCatalog, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server
from tests.engines.java import ToolFailed
from tests.engines.lost_answers import LossyServer, open_lossy

HERE = Path(__file__).parent
SERVER = pytest.StashKey[CatalogServer]()
_NEED_FIXTURE = frozenset({"test_peers.py", "test_remote_peers.py"})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch jars and compile, when a selected test needs them."""
    if session.config.option.collectonly:
        return
    chosen = [item.path for item in session.items]
    try:
        if any(HERE / "rck" in path.parents or path.name in _NEED_FIXTURE for path in chosen):
            from tests.engines.rck.build import build_class_path

            build_class_path()
        if any(HERE / "spark" in path.parents for path in chosen):
            from tests.engines.spark.jars import find_jars

            find_jars()
        if any(path == HERE / "test_polaris_cli.py" for path in chosen):
            from tests.engines.polaris.install import install_polaris

            install_polaris()
    except ToolFailed as failed:
        pytest.exit(f"tests/engines cannot run: {failed}", returncode=1)


@pytest.fixture(scope="session")
def catalog_server(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[CatalogServer]:
    """One server for all engines of the run; each takes catalogs of its own.

    Its tokens live so short that a client must renew them while it is used, as in a long session.
    """
    directory = tmp_path_factory.mktemp("engines")
    env = {"CYNOSURE_AUTH__TOKENS__LIFETIME": "15s"}
    with Processes(directory) as processes:
        server = asyncio.run(start_catalog_server(processes, directory, env=env))
        pytestconfig.stash[SERVER] = server
        yield server
        del pytestconfig.stash[SERVER]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the server's log beside a failure."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if report.failed and server and HERE in item.path.parents:
        report.sections.append(("log of the catalog server", server.process.log_tail()))
    return report


@pytest.fixture(scope="session")
def make_catalog(request: pytest.FixtureRequest) -> Callable[[], RestCatalog]:
    """Makes empty catalogs on a server of ours; or hands out the one that CYNOSURE_ENGINE_URI names."""
    if words := os.environ.get("CYNOSURE_ENGINE_URI", "").split():
        uri, *properties = words
        return lambda: RestCatalog(uri, dict(word.split("=", 1) for word in properties))
    make: Callable[[], ServedCatalog] = request.getfixturevalue("make_served_catalog")
    return lambda: make().to_rest()


@pytest.fixture(scope="session")
def make_served_catalog(catalog_server: CatalogServer) -> Callable[[], ServedCatalog]:
    """Makes empty catalogs on a server of ours, for tests that also administer them."""
    return lambda: asyncio.run(catalog_server.create_catalog(unique_name()))


class MakeLake(Protocol):
    def __call__(self, server: S3Server, **storage: Any) -> ServedCatalog: ...


@pytest.fixture(scope="session")
def make_lake(catalog_server: CatalogServer) -> Iterator[MakeLake]:
    """Makes empty catalogs on an S3 server whose clients bring no keys: they get access from the catalog.

    Their files are deleted in the end, since such servers are kept from run to run.
    """
    used: list[tuple[S3Server, str]] = []

    def make(server: S3Server, **storage: Any) -> ServedCatalog:
        location = server.fresh_location("engines")
        used.append((server, location))
        return asyncio.run(
            catalog_server.create_catalog_on(server, unique_name(), location=location, storage=storage)
        )

    yield make
    for server, location in used:
        server.delete_below(location)


@pytest.fixture(scope="session")
def make_s3_catalog(catalog_server: CatalogServer, s3_url: str) -> Callable[[], RestCatalog]:
    """Makes empty catalogs whose files are in a bucket; the client brings keys of its own for it."""
    found = urlsplit(s3_url)
    assert found.username
    assert found.password
    endpoint = f"http://{found.hostname}:{found.port}"
    region = parse_qs(found.query)["region"][0]
    storage = {
        "storageType": "S3",
        "endpoint": endpoint,
        "region": region,
        "pathStyleAccess": True,
        "accessKeyId": found.username,
        "secretAccessKey": found.password,
    }
    keys = {
        "s3.endpoint": endpoint,
        "s3.region": region,
        "s3.access-key-id": found.username,
        "s3.secret-access-key": found.password,
        "s3.path-style-access": "true",
    }

    def make() -> RestCatalog:
        location = f"s3:/{found.path}/engines/{uuid.uuid4().hex}"
        made = asyncio.run(catalog_server.create_catalog(unique_name(), location=location, storage=storage))
        rest = made.to_rest()
        return RestCatalog(rest.uri, {**rest.properties, **keys})

    return make


@pytest.fixture(params=range(12 if os.environ.get("CYNOSURE_SOAK") else 1))
def network(request: pytest.FixtureRequest, catalog_server: CatalogServer) -> Iterator[LossyServer]:
    """A network that loses answers: one run of a test in the suite, many with other seeds in `./dev soak`."""
    with open_lossy(catalog_server, random.Random(random.getrandbits(32) + request.param)) as network:
        yield network


def unique_name() -> str:
    return f"c{uuid.uuid4().hex[:12]}"
