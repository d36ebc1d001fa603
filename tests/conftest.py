"""What every test may ask for: the event loop, real services, published specifications.

A maintainer must not break: a service that is not there fails the tests that need it. Only tests that
compare with the specifications may be left out, and then each of them is named in pytest's summary.
"""

import asyncio
import inspect
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

from cynosure.testing.s3_servers import VARIABLES, WITH_STS, S3Server, parse_s3_server

# No test may fail because the machine was slow, or because many drawn values were large or filtered out.
_UNHURRIED = [
    hypothesis.HealthCheck.too_slow,
    hypothesis.HealthCheck.data_too_large,
    hypothesis.HealthCheck.filter_too_much,
]
# Always the same examples: a change is not refused for what a draw finds in something else. Soaks draw anew.
hypothesis.settings.register_profile(
    "cynosure", deadline=None, database=None, derandomize=True, suppress_health_check=_UNHURRIED
)
hypothesis.settings.register_profile(
    "soak", hypothesis.settings.get_profile("cynosure"), derandomize=False, max_examples=2_000
)
hypothesis.settings.load_profile("cynosure")

pytest_plugins = ["cynosure.testing.harness.fixtures", "tests.second_tries", "tests.written_secrets"]

MARKED_BY_FIXTURE = {
    "postgres_url": "postgres",
    "s3_url": "s3",
    "sts_server": "s3",
    "plain_s3_server": "s3",
    "azure_url": "azure",
    "specs": "specs",
}

_DEADLOCKS = 5
"""After which the tables of a test are dropped once more."""
SPARKS = ("natives", "runner", "served", "spark", "spark_side", "sparks")
"""Fixtures of the session that run a Spark."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, so that `-m postgres` cannot miss one; name what cannot run."""
    has_specs = "CYNOSURE_SPECS" in os.environ
    _bring_together(items)
    for item in items:
        _refuse_shared_tasks(item)
        for fixture, marker in MARKED_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        if not has_specs and item.get_closest_marker("specs"):
            item.add_marker(pytest.mark.skip(reason=f"specs: {item.nodeid}: CYNOSURE_SPECS is not set"))


def _bring_together(items: list[pytest.Item]) -> None:
    """Modules that share a Spark come one after the other, wherever the first of them is.

    Between modules that chance put far apart it would have been ended for idleness, and start again.
    """
    modules: dict[Path, str] = {}
    for item in items:
        if (shared := _find_spark(item)) is not None:
            modules.setdefault(item.path, shared)
    begins: dict[str, int] = {}
    places = []
    for at, item in enumerate(items):
        shared = modules.get(item.path)
        places.append(at if shared is None else begins.setdefault(shared, at))
    # Stable: within its place everything stays in the order that chance gave it.
    ordered = sorted(range(len(items)), key=places.__getitem__)
    items[:] = [items[at] for at in ordered]


def _find_spark(item: pytest.Item) -> str | None:
    """The fixture with a Spark that a test uses, and where it is defined."""
    info = getattr(item, "_fixtureinfo", None)
    for name in SPARKS:
        definitions = info.name2fixturedefs.get(name) if info else None
        if definitions and definitions[-1].scope == "session":
            return f"{definitions[-1].baseid}::{name}"
    return None


def _refuse_shared_tasks(item: pytest.Item) -> None:
    """A fixture of the whole session is not asynchronous.

    All tests after it would run in its task, and inherit what another one has put into the task's context:
    heads that were read ahead, the scope of a request.
    """
    info = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        for each in definitions:
            if each.scope == "session" and (
                inspect.iscoroutinefunction(each.func) or inspect.isasyncgenfunction(each.func)
            ):
                raise pytest.UsageError(
                    f"{each.argname}: for the session, use asyncio.run in a plain fixture"
                )


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


@pytest.fixture(scope="session")
def minio() -> S3Server:
    """The MinIO that `scripts/services` runs."""
    return parse_s3_server("minio", _service("MinIO", VARIABLES["minio"]))


@pytest.fixture(scope="session")
def hive_url() -> str:
    """The Hive Metastore that `scripts/services` runs: `thrift://HOST:PORT`."""
    return _service("a Hive Metastore", "CYNOSURE_TEST_HIVE")


@pytest.fixture(scope="session")
def glue_url() -> str:
    """The moto that `scripts/services` runs: `http://KEY:SECRET@HOST:PORT?region=REGION`."""
    return _service("moto", "CYNOSURE_TEST_GLUE")


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
        for _ in range(_DEADLOCKS):
            try:
                await connection.execute(statement)
                return
            except asyncpg.DeadlockDetectedError:
                # With a process of the test that still works there, and locks the same tables otherwise.
                continue
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
