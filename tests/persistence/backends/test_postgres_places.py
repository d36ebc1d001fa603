"""Servers, databases, schemas and users that cannot be used: what is wrong and how to put it right."""

import asyncio
import traceback
from typing import Any
from urllib.parse import urlsplit

import pytest

from cynosure.common.errors import CynosureError, Misconfigured, NewerFormat, Unavailable
from cynosure.persistence.spi import Backend
from cynosure.testing.backend_kit.samples import REF, fixed, reference
from cynosure.testing.harness.processes import Processes

from .postgres_calls import opened, raised

pytestmark = pytest.mark.anyio

PASSWORD = "geheim-9f3"


async def test_a_schema_of_another_program_is_refused_untouched(
    postgres_schema_url: str, admin: Any, schema: str
) -> None:
    await admin.execute(f"CREATE TABLE {schema}.songs (title text)")
    async with opened(postgres_schema_url) as backend:
        error = await raised(backend.setup())

    assert type(error) is Misconfigured
    assert "schema=" in error.fix
    tables = await admin.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    assert [table[0] for table in tables] == ["songs"]


async def test_a_store_laid_out_by_a_newer_version_is_refused(
    postgres_backend: Backend, postgres_schema_url: str, admin: Any, schema: str
) -> None:
    await admin.execute(f"UPDATE {schema}.store_format SET version = 99")

    async with opened(postgres_schema_url) as older:
        errors = [
            await raised(older.setup()),
            await raised(older.fetch_refs([REF])),
            await raised(older.write([fixed(1)])),
        ]

    assert [type(error) for error in errors] == [NewerFormat] * 3


async def test_a_schema_that_is_not_there_is_created(postgres_url: str, admin: Any, schema: str) -> None:
    await admin.execute(f"DROP SCHEMA {schema}")
    async with opened(f"{postgres_url}?schema={schema}") as backend:
        await backend.setup()

        assert await backend.insert_ref(reference(1))


async def test_a_user_without_rights_is_told_which(postgres_url: str, admin: Any, schema: str) -> None:
    async with opened(f"{postgres_url}?schema={schema}") as owner:
        await owner.setup()
    user = f"u_{schema}"
    await admin.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
    try:
        await admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}")
        account = urlsplit(postgres_url).netloc.rpartition("@")[0]
        url = postgres_url.replace(account, f"{user}:{PASSWORD}")
        async with opened(f"{url}?schema={schema}") as backend:
            error = await raised(backend.fetch_refs([REF]))
        assert type(error) is Misconfigured
        assert "grant" in error.fix
    finally:
        await admin.execute(f"DROP OWNED BY {user}")
        await admin.execute(f"DROP ROLE {user}")


async def check_refused(url: str, kind: type[CynosureError], place: str) -> None:
    """All calls are refused with this error, and none of them tells the password."""
    async with opened(url) as backend:
        for call in (backend.setup(), backend.fetch_refs([REF]), backend.write([fixed(1)])):
            error = await raised(call)
            assert type(error) is kind
            assert error.fix
            assert error.details["place"] == place
            shown = (
                "".join(traceback.format_exception(error)) + repr(error) + repr(backend) + str(error.details)
            )
            assert PASSWORD not in shown


async def test_a_server_that_is_not_there_is_unavailable(processes: Processes) -> None:
    port = processes.reserve_port()

    await check_refused(
        f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/db", Unavailable, f"127.0.0.1:{port}/db"
    )


async def test_a_server_that_accepts_and_never_answers_is_unavailable_in_time() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    await check_refused(
        f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/db?connect_timeout_s=0.2",
        Unavailable,
        f"127.0.0.1:{port}/db",
    )
    server.close()


async def test_a_wrong_password_is_misconfigured(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)
    url = f"postgresql://{parts.username}:{PASSWORD}@{parts.hostname}:{parts.port}{parts.path}"

    await check_refused(url, Misconfigured, f"{parts.hostname}:{parts.port}{parts.path}")


async def test_a_database_that_does_not_exist_is_misconfigured(postgres_url: str) -> None:
    parts = urlsplit(postgres_url)

    await check_refused(
        parts._replace(path="/no_such_database").geturl(),
        Misconfigured,
        f"{parts.hostname}:{parts.port}/no_such_database",
    )
