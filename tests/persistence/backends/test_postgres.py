"""The kit on PostgreSQL. Each test has a schema of its own, which its set-up creates."""

import asyncio
import uuid
from collections.abc import Iterator

import asyncpg
import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle


@pytest.fixture(scope="module")
def schemas(postgres_url: str) -> Iterator[list[str]]:
    """Names of schemas that are dropped at the end, all at once: a connection per test takes longer."""
    names: list[str] = []
    yield names
    asyncio.run(drop(postgres_url, names))


async def drop(url: str, schemas: list[str]) -> None:
    connection = await asyncpg.connect(url)
    # A session that a test forgot would otherwise hold this up for ever.
    await connection.execute("SET lock_timeout = '20s'")
    await connection.execute("SET client_min_messages = warning")
    for schema in schemas:
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    await connection.close()


class TestPostgresBackend(BackendKit):
    @pytest.fixture
    def open_handle(self, postgres_url: str, schemas: list[str]) -> OpenHandle:
        schema = f"kit_{uuid.uuid4().hex[:16]}"
        schemas.append(schema)
        return lambda: open_backend(f"{postgres_url}?schema={schema}")
