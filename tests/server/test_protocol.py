"""Raw bytes on real connections, as a careless or hostile client sends them."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from cynosure.api.app import make_service
from cynosure.api.messages import Request, Response
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock
from cynosure.server.http_server import HttpServer
from cynosure.server.listen import listen_tcp
from cynosure.server.protocol import GuardedProtocol

pytestmark = pytest.mark.anyio


class Hasty(GuardedProtocol):
    head_timeout_s = 0.5


class Impatient(GuardedProtocol):
    """Closes a connection that rests for so long."""

    idle_s = 0.1

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.timeout_keep_alive = self.idle_s  # type: ignore[assignment]


class LessImpatient(Impatient):
    """For tests that must be faster than it."""

    idle_s = 3.0


_DATE = re.compile(rb"date: [^\r]*\r\n")
GET = b"GET /t/a HTTP/1.1\r\nhost: x\r\n\r\n"


async def echo(request: Request) -> Response:
    return Response.json(request.params["name"])


@asynccontextmanager
async def connection(
    protocol: type[GuardedProtocol] = GuardedProtocol, *routes: Route
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    routes = (Route("GET", "/t/{name}", echo, operation_id="echo"), *routes)
    service = make_service(
        routes, title="t", version="1", clock=SystemClock(), rng=random.Random(1), gate=OperatorGate()
    )
    listener = listen_tcp("127.0.0.1", 0)
    config = uvicorn.Config(service.app, http=protocol, lifespan="off", log_config=None)  # type: ignore[arg-type]
    server = HttpServer(config)
    task = asyncio.create_task(server.run_until_stopped(listener))
    await server.listening.wait()
    reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await task


async def test_a_head_without_end_is_431() -> None:
    async with connection() as (reader, writer):
        writer.write(b"GET /t/a HTTP/1.1\r\n")
        for number in range(70):
            writer.write(b"x-%d: %b\r\n" % (number, b"y" * 1000))
        answer = await reader.read()

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == 431


async def test_a_long_token_in_a_head_passes() -> None:
    async with connection() as (reader, writer):
        writer.write(b"GET /t/a HTTP/1.0\r\nauthorization: Bearer %b\r\n\r\n" % (b"t" * 30_000))

        assert (await reader.read()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("begin", [b"", b"GET /t/a HTT", b"GET /t/a HTTP/1.1\r\nhost: x\r\n"])
async def test_a_client_that_does_not_finish_its_head_is_cut_off(begin: bytes) -> None:
    async with connection(Hasty) as (reader, writer):
        writer.write(begin)

        assert await reader.read() == b""


async def test_the_time_limit_holds_for_later_requests_of_a_connection_and_not_between_them() -> None:
    async with connection(Hasty) as (reader, writer):
        for _ in range(2):
            writer.write(b"GET /t/a HTTP/1.1\r\nhost: x\r\n\r\n")
            assert b"200 OK" in await reader.readuntil(b'"a"')
            await asyncio.sleep(Hasty.head_timeout_s + 0.1)
        writer.write(b"GET /t/a HTT")

        assert await reader.read() == b""


@pytest.mark.parametrize(
    "head",
    [
        b"GET /t/\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /t/%ff HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /t/a HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\nconnection: close\r\n\r\n",
    ],
)
async def test_what_is_not_http_or_not_a_path_is_400(head: bytes) -> None:
    async with connection() as (reader, writer):
        writer.write(head)

        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")


async def test_an_absolute_path_is_found_like_any_other() -> None:
    async with connection() as (reader, writer):
        writer.write(b"GET http://x/t/a%2Fb HTTP/1.0\r\n\r\n")

        assert (await reader.read()).endswith(b'"a/b"')


async def test_a_connection_that_nobody_uses_is_closed() -> None:
    async with connection(Impatient) as (reader, writer):
        writer.write(GET)
        assert b"200 OK" in await reader.readuntil(b'"a"')

        assert await reader.read() == b""


async def test_a_connection_in_use_is_not_closed_however_long_ago_it_began() -> None:
    async with connection(LessImpatient) as (reader, writer):
        until_s = asyncio.get_running_loop().time() + 1.5 * LessImpatient.idle_s
        while asyncio.get_running_loop().time() < until_s:
            writer.write(GET)
            assert b"200 OK" in await reader.readuntil(b'"a"')
            await asyncio.sleep(LessImpatient.idle_s / 20)


async def test_a_connection_is_not_closed_while_it_waits_for_an_answer() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def think(request: Request) -> Response:
        asked.set()
        await may_answer.wait()
        return Response.json("thought")

    route = Route("GET", "/think", think, operation_id="think")
    async with connection(LessImpatient, route) as (reader, writer):
        writer.write(GET)
        await reader.readuntil(b'"a"')
        writer.write(b"GET /think HTTP/1.1\r\nhost: x\r\n\r\n")
        await asked.wait()
        await asyncio.sleep(1.5 * LessImpatient.idle_s)
        may_answer.set()

        assert b"200 OK" in await reader.readuntil(b'"thought"')
        assert await reader.read() == b"", "it rests again"


async def test_requests_that_come_together_are_answered_in_their_order() -> None:
    async with connection(Impatient) as (reader, writer):
        writer.write(GET + GET.replace(b"/t/a", b"/t/b") + GET.replace(b"/t/a", b"/t/c"))

        for name in (b'"a"', b'"b"', b'"c"'):
            assert b"200 OK" in await reader.readuntil(name)
        assert await reader.read() == b""


# --- answers that are sent as a whole -----------------------------------------------------------------------


class Parted(GuardedProtocol):
    """Sends every answer in the parts that ASGI has."""

    def send_whole(self, *_: object) -> bool:
        return False


async def nothing(_: Request) -> Response:
    return Response(204)


async def unchanged(_: Request) -> Response:
    return Response(304, headers=[(b"etag", b'W/"1"')])


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /t/a HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /t/a HTTP/1.0\r\n\r\n",
        b"HEAD /t/a HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /nothing HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /unchanged HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /no/such HTTP/1.1\r\nconnection: close\r\n\r\n",
        GET + GET.replace(b"host", b"connection: close\r\nhost"),
    ],
)
async def test_an_answer_is_the_same_as_a_whole_and_in_parts(sent: bytes) -> None:
    routes = (
        Route("GET", "/nothing", nothing, operation_id="nothing"),
        Route("GET", "/unchanged", unchanged, operation_id="unchanged"),
    )
    answers: list[bytes] = []
    for protocol in (GuardedProtocol, Parted):
        async with connection(protocol, *routes) as (reader, writer):
            writer.write(sent)
            answers.append(_DATE.sub(b"", await reader.read()))

    whole, parted = answers
    assert whole.startswith(b"HTTP/1.1 ")
    assert whole == parted


@pytest.mark.parametrize("value", [b"a\r\nevil: 1", b"a\nevil: 1", b"a\revil: 1", b"a\x00"])
async def test_no_value_of_a_header_brings_another_header_along(value: bytes) -> None:
    async def careless(_: Request) -> Response:
        return Response(200, b"{}", headers=[(b"x-name", value)])

    async with connection(GuardedProtocol, Route("GET", "/c", careless, operation_id="careless")) as (
        reader,
        writer,
    ):
        writer.write(b"GET /c HTTP/1.1\r\nconnection: close\r\n\r\n")
        answer = await reader.read()

    assert b"evil" not in answer
    assert b"x-name" not in answer
