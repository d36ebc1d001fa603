"""Connections that an operator wrote wrong: what is told names the field, for each kind of remote."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from cynosure.catalog.check_connection import FIELD
from cynosure.catalog.connection import Connection, ConnectionSecrets
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.common.secrets import Secret
from cynosure.federation.diagnosing import advise
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remotes import failures as why
from cynosure.federation.remotes.hive.thrift import NOT_THRIFT
from cynosure.federation.remotes.sql import open_sql
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.processes import Processes
from cynosure.testing.lying_remote import LyingRemote
from tests.federation.remotes.pointers.corners import HASTY, GlueCorner, HiveCorner, SqlCorner

pytestmark = pytest.mark.anyio

URI = f"{FIELD}.uri"
PROOF = f"{FIELD}.authenticationParameters"
UNKNOWN_METHOD = bytes.fromhex("80010003 0000000c 6765745f6461746162617365 00000001 08 0002 00000001 00")
"""Thrift's own failure, as a metastore answers `get_database` that does not know it."""


async def find_advice(pointers: PointerCatalog, connection: Connection) -> tuple[str, str | None]:
    try:
        with pytest.raises(CynosureError) as raised:
            await pointers.check()
    finally:
        await pointers.close()
    advice = advise(raised.value, connection)
    assert advice.fix
    return advice.reason, advice.field


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """Something that answers every request with these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.postgres
async def test_a_database_that_is_not_there_a_wrong_password_and_nobody_at_the_port(
    sql: SqlCorner, processes: Processes
) -> None:
    right = sql.connection
    wrong = ConnectionSecrets(password=Secret("hunter2"))
    parts = right.uri.rpartition("/")[0]
    missing, nowhere = (
        replace(right, uri=f"{parts}/nosuch"),
        f"postgresql://127.0.0.1:{processes.reserve_port()}/x",
    )

    def open_wrong(connection: Connection, secrets: ConnectionSecrets = sql.secrets) -> PointerCatalog:
        return open_sql(connection, secrets, HASTY, SystemClock(), "near")

    assert await find_advice(open_wrong(missing), missing) == (why.NO_DATABASE, URI)
    assert await find_advice(open_wrong(right, wrong), right) == (why.NOT_LET_IN, f"{PROOF}.password")
    away = replace(right, uri=nowhere)
    assert await find_advice(open_wrong(away), away) == (why.NOTHING_LISTENS, URI)


@pytest.mark.postgres
async def test_something_else_at_the_port_of_a_database(sql: SqlCorner) -> None:
    async with LyingRemote() as other:
        connection = replace(sql.connection, uri=f"postgresql://{other.url.rpartition('/')[2]}/x")
        opened = open_sql(connection, sql.secrets, HASTY, SystemClock(), "near")

        assert (await find_advice(opened, connection))[1] == URI


async def test_a_metastore_that_is_none_or_of_another_version(processes: Processes) -> None:
    async with answering(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n") as port:
        corner = HiveCorner(f"thrift://127.0.0.1:{port}")
        assert await find_advice(corner.open(), corner.connection) == (NOT_THRIFT, URI)
    async with answering(UNKNOWN_METHOD) as port:
        corner = HiveCorner(f"thrift://127.0.0.1:{port}")
        assert await find_advice(corner.open(), corner.connection) == (why.NOT_UNDERSTOOD, URI)
    corner = HiveCorner(f"thrift://127.0.0.1:{processes.reserve_port()}")
    assert await find_advice(corner.open(), corner.connection) == (why.NOTHING_LISTENS, URI)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("UnrecognizedClientException", f"{PROOF}.secretAccessKey"),
        ("com.amazon.coral.service#InvalidSignatureException", f"{PROOF}.secretAccessKey"),
        ("AccessDeniedException", None),
        ("", URI),
    ],
)
async def test_a_glue_that_does_not_let_us_in_or_is_none(kind: str, field: str | None) -> None:
    async with LyingRemote() as other:
        other.says("POST", "/", lies.answer({"__type": kind} if kind else {}, status=400))
        host = other.url.removeprefix("http://")
        corner = GlueCorner(f"http://key:secret@{host}?region=us-east-1")

        assert (await find_advice(corner.open(), corner.connection))[1] == field
