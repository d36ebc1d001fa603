"""What every test may ask for: the event loop, real services, published specifications.

A maintainer must not break: a service that is not there fails the tests that need it. Only tests that
compare with the specifications may be left out, and then each of them is named in pytest's summary.
"""

import asyncio
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

from cynosure.testing.s3_servers import VARIABLES, WITH_STS, S3Server, parse_s3_server

# No test may fail because the machine was slow.
hypothesis.settings.register_profile("cynosure", deadline=None, database=None)
hypothesis.settings.register_profile("soak", deadline=None, database=None, max_examples=2_000)
hypothesis.settings.load_profile("cynosure")

pytest_plugins = ["cynosure.testing.harness.fixtures", "tests.written_secrets"]

MARKED_BY_FIXTURE = {
    "postgres_url": "postgres",
    "s3_url": "s3",
    "sts_server": "s3",
    "plain_s3_server": "s3",
    "azure_url": "azure",
    "specs": "specs",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, so that `-m postgres` cannot miss one; name what cannot run."""
    has_specs = "CYNOSURE_SPECS" in os.environ
    for item in items:
        for fixture, marker in MARKED_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        if not has_specs and item.get_closest_marker("specs"):
            item.add_marker(pytest.mark.skip(reason=f"specs: {item.nodeid}: CYNOSURE_SPECS is not set"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The PostgreSQL that `scripts/services` runs."""
    return _service("PostgreSQL", "CYNOSURE_TEST_POSTGRES")


@pytest.fixture(scope="session")
def s3_url() -> str:
    """The S3 server that `scripts/services` runs: `http://KEY:SECRET@HOST:PORT/BUCKET?region=REGION#ROLE`."""
    return _service("an S3 server", "CYNOSURE_TEST_S3")


@pytest.fixture(scope="session", params=WITH_STS)
def sts_server(request: pytest.FixtureRequest) -> S3Server:
    """Each S3 server with a token service that enforces session policies: a test runs on all of them."""
    name: str = request.param
    return parse_s3_server(name, _service(f"the S3 server {name}", VARIABLES[name]))


@pytest.fixture(scope="session")
def plain_s3_server() -> S3Server:
    """An S3 server that has no token service."""
    return parse_s3_server("no-sts", _service("an S3 server without STS", VARIABLES["no-sts"]))


@pytest.fixture(scope="session")
def azure_url() -> str:
    """The Azurite that `scripts/services` runs: `https://HOST:PORT/ACCOUNT?ca=FILE`."""
    return _service("Azurite", "CYNOSURE_TEST_AZURE")


def _service(name: str, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        pytest.fail(
            f"This test needs {name} and {variable} is not set. Use ./dev test, or run: "
            "scripts/services start && export $(scripts/services env)",
            pytrace=False,
        )
    return value


@pytest.fixture
def postgres_schema_url(postgres_url: str) -> Iterator[str]:
    """A store URL in an empty schema of its own, dropped afterwards."""
    with _schema(postgres_url) as url:
        yield url


@pytest.fixture(scope="module")
def shared_schema_url(postgres_url: str) -> Iterator[str]:
    """The same for all tests of a module."""
    with _schema(postgres_url) as url:
        yield url


@contextmanager
def _schema(postgres_url: str) -> Iterator[str]:
    schema = f"test_{uuid.uuid4().hex[:16]}"
    asyncio.run(_execute(postgres_url, f"CREATE SCHEMA {schema}"))
    yield f"{postgres_url}?schema={schema}"
    asyncio.run(_execute(postgres_url, f"DROP SCHEMA {schema} CASCADE"))


async def _execute(url: str, statement: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        # A connection that a test forgot would otherwise hold up the drop for ever.
        await connection.execute("SET lock_timeout = '20s'")
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def specs() -> Path:
    """The folder of published specifications."""
    path = Path(os.environ["CYNOSURE_SPECS"])
    if not path.is_dir():
        pytest.fail(f"CYNOSURE_SPECS is not a folder: {path}", pytrace=False)
    return path
