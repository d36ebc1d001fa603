"""The kit on PostgreSQL. Each test has a schema of its own, which its set-up creates."""

import asyncio
import uuid
from collections.abc import Iterator

import asyncpg
import pytest

from cynosure.persistence.backends.postgres.sessions import lock_number
from cynosure.persistence.open_backend import open_backend
from cynosure.testing.backend_kit import BackendKit, OpenHandle
from cynosure.testing.backend_kit.samples import REF
from cynosure.testing.backend_kit.turns import UntilWaiting


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
    def schema(self, schemas: list[str]) -> str:
        schemas.append(f"kit_{uuid.uuid4().hex[:16]}")
        return schemas[-1]

    @pytest.fixture
    def open_handle(self, postgres_url: str, schema: str) -> OpenHandle:
        return lambda: open_backend(f"{postgres_url}?schema={schema}")

    @pytest.fixture
    def until_waiting(self, postgres_url: str, schema: str) -> UntilWaiting:
        number = lock_number(schema, *REF) % 2**64
        waiting = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
            f"AND classid::bigint = {number >> 32} AND objid::bigint = {number % 2**32}"
        )

        async def wait(count: int) -> None:
            connection = await asyncpg.connect(postgres_url)
            try:
                async with asyncio.timeout(30):
                    while await connection.fetchval(waiting) < count:  # noqa: ASYNC110 - only asking tells
                        await asyncio.sleep(0.01)
            finally:
                await connection.close()

        return wait
