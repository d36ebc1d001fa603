"""Where requests end, and whose answer is lost, on PostgreSQL's own protocol and on HTTP."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import LoseAnswer, executes
from cynosure.testing.harness.wires import HttpWire, PostgresWire, TcpWire

REQUESTS = [
    b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n",
    b"POST /b HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: 1\r\n\r\n",
]


@given(st.lists(st.sampled_from(REQUESTS), max_size=5), st.integers(1, 40))
def test_http_requests_are_found_however_they_are_cut(requests: list[bytes], size: int):
    stream = b"".join(requests)
    wire = HttpWire()
    pieces = [p for at in range(0, len(stream), size) for p in wire.feed_client(stream[at : at + size])]
    assert [piece.fresh for piece in pieces] == requests


@given(st.lists(st.binary(min_size=1), max_size=5), st.sampled_from([TcpWire, PostgresWire]))
def test_no_wire_changes_bytes(chunks: list[bytes], make):
    wire = make()
    forwarded = b"".join(piece.fresh for chunk in chunks for piece in wire.feed_client(chunk))
    assert b"".join(chunks).startswith(forwarded)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


STARTUP = message(b"", (196608).to_bytes(4, "big") + b"user\0x\0\0")


@given(st.integers(1, 50))
def test_a_prepared_statement_is_known_by_its_text_when_it_runs_again(size: int):
    parse = message(b"P", b"s1\0UPDATE refs\0\0\0") + message(b"H", b"")
    run = message(b"B", b"\0s1\0\0\0\0\0\0\0") + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")
    stream = STARTUP + parse + run + run + message(b"Q", b"COMMIT\0")
    wire = PostgresWire()

    pieces = [p for at in range(0, len(stream), size) for p in wire.feed_client(stream[at : at + size])]

    assert b"".join(piece.fresh for piece in pieces) == stream
    assert [piece.statements for piece in pieces] == [(), (), ("UPDATE refs",), ("UPDATE refs",), ("COMMIT",)]


# --- against the real server -------------------------------------------------------------------------


class Counter:
    """One row in a schema of its own, read past the proxy."""

    def __init__(self, schema: str, connection: asyncpg.Connection) -> None:
        self.increment = f"UPDATE {schema}.t SET v = v + 1 WHERE id = $1 RETURNING v"
        self._schema = schema
        self._connection = connection

    async def create(self) -> None:
        await self._connection.execute(f"CREATE TABLE {self._schema}.t (id int PRIMARY KEY, v int)")
        await self._connection.execute(f"INSERT INTO {self._schema}.t VALUES (1, 0)")

    async def value(self) -> int:
        return await self._connection.fetchval(f"SELECT v FROM {self._schema}.t")


@pytest.fixture
async def counter(postgres_url: str, postgres_schema_url: str) -> AsyncIterator[Counter]:
    connection = await asyncpg.connect(postgres_url)
    counter = Counter(postgres_schema_url.rpartition("=")[2], connection)
    await counter.create()
    yield counter
    await connection.close()


@pytest.fixture
async def proxy(postgres_url: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.to_url(postgres_url) as proxy:
        yield proxy


CONNECTION_LOST = (asyncpg.PostgresConnectionError, ConnectionError, asyncpg.InterfaceError)


@pytest.mark.anyio
async def test_an_update_whose_answer_is_lost_was_applied(proxy: FaultProxy, counter: Counter):
    connection = await asyncpg.connect(proxy.url)
    assert (
        await connection.fetchval(counter.increment, 1) == 1
    )  # prepared now; later requests carry only its name
    rule = proxy.lose_answer_after(executes("set v = V + 1"))

    with pytest.raises(CONNECTION_LOST):
        await connection.fetchval(counter.increment, 1)

    assert rule.hits == 1
    assert await counter.value() == 2
    connection.terminate()


@pytest.mark.anyio
async def test_a_commit_whose_answer_is_lost_was_applied(proxy: FaultProxy, counter: Counter):
    connection = await asyncpg.connect(proxy.url)
    proxy.lose_answer_after(executes("COMMIT"))

    with pytest.raises(CONNECTION_LOST):
        async with connection.transaction():
            await connection.execute(counter.increment, 1)

    assert await counter.value() == 1
    connection.terminate()


@pytest.mark.anyio
async def test_an_answer_lost_in_silence_leaves_the_client_to_its_own_deadline(
    proxy: FaultProxy, counter: Counter
):
    connection = await asyncpg.connect(proxy.url)
    rule = proxy.add(LoseAnswer(hangs=True), when=executes("UPDATE"))
    asked = asyncio.create_task(connection.fetchval(counter.increment, 1))

    await asyncio.wait_for(rule.wait_done(), 20)

    assert await counter.value() == 1
    assert not asked.done()
    connection.terminate()
    with pytest.raises(CONNECTION_LOST):
        await asked
