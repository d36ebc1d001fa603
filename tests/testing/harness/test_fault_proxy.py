"""The fault proxy in front of real servers: plain TCP and HTTP."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import httpx
import pytest

from cynosure.common.errors import BadInput
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import (
    CutAnswer,
    CutRequest,
    Delay,
    Hold,
    LoseAnswer,
    ReplaceAnswer,
    Respond,
    Throttle,
    client_sends,
    http_request,
)
from cynosure.testing.harness.wires import HttpWire

pytestmark = pytest.mark.anyio


class LineServer:
    """Answers every line with itself, and remembers what it got."""

    def __init__(self) -> None:
        self.received = b""
        self.port = 0
        self._news = asyncio.Event()

    def note(self, data: bytes) -> None:
        self.received += data
        self._news.set()

    async def wait_received(self, expected: bytes) -> None:
        while self.received != expected:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 20)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unanswered = b""
        try:
            while data := await reader.read(65_536):
                self.note(data)
                *whole, unanswered = (unanswered + data).split(b"\n")
                writer.write(b"".join(line + b"\n" for line in whole))
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


class WebServer(LineServer):
    """Answers every request with its path, and remembers the request lines it got. HEAD has no body."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []
        self.answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = HttpWire()
        try:
            while data := await reader.read(65_536):
                self.note(data)
                for message in wire.feed_client(data):
                    self.requests.append(f"{message.method} {message.path}")
                    body = message.path.encode()
                    answer = self.answer % (len(body), body) if b"%d" in self.answer else self.answer
                    writer.write(answer.removesuffix(body) if message.method == "HEAD" else answer)
                    await writer.drain()
                    if b"connection: close" in answer:
                        return
        except ConnectionError:
            pass
        finally:
            writer.close()


async def listen(upstream: LineServer) -> AsyncIterator[LineServer]:
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    yield upstream
    server.close()
    await server.wait_closed()


@pytest.fixture
async def lines() -> AsyncIterator[LineServer]:
    async for server in listen(LineServer()):
        yield server


@pytest.fixture
async def web() -> AsyncIterator[LineServer]:
    async for server in listen(WebServer()):
        yield server


@pytest.fixture
async def tcp(lines: LineServer) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(lines.port) as proxy:
        yield proxy


@pytest.fixture
async def http(web: WebServer) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.to_url(f"http://127.0.0.1:{web.port}") as proxy:
        yield proxy


@pytest.fixture
async def client(http: FaultProxy) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=http.url, trust_env=False, timeout=20) as client:
        yield client


class Line:
    """A client of `LineServer`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, line: bytes) -> bytes:
        """The answer; empty when the connection ended without one."""
        try:
            self.writer.write(line)
            await self.writer.drain()
            return await asyncio.wait_for(self.reader.readline(), 20)
        except ConnectionError:
            return b""


@pytest.fixture
async def connect(tcp: FaultProxy) -> AsyncIterator:
    opened: list[Line] = []

    async def connect() -> Line:
        opened.append(Line(*await asyncio.open_connection(tcp.host, tcp.port)))
        return opened[-1]

    yield connect
    for line in opened:
        line.writer.transport.abort()


# --- plain TCP ---------------------------------------------------------------------------------------


async def test_without_rules_every_byte_passes_both_ways(tcp: FaultProxy, lines: LineServer, connect):
    payload = bytes(Random(1).randbytes(300_000)).replace(b"\n", b" ") + b"\n"
    reader, writer = (line := await connect()).reader, line.writer

    writer.write(payload)
    echoed = await asyncio.wait_for(reader.readexactly(len(payload)), 20)

    assert lines.received == payload
    assert echoed == payload


async def test_a_lost_answer_comes_after_the_upstream_acted(tcp: FaultProxy, lines: LineServer, connect):
    rule = tcp.lose_answer_after(client_sends(b"commit"))
    line = await connect()
    assert await line.ask(b"begin\n") == b"begin\n"

    assert await line.ask(b"commit\n") == b""

    assert lines.received == b"begin\ncommit\n"
    assert rule.hits == 1
    assert await (await connect()).ask(b"commit\n") == b"commit\n"


async def test_a_marker_split_over_two_writes_is_seen(tcp: FaultProxy, lines: LineServer, connect):
    rule = tcp.lose_answer_after(client_sends(b"commit"))
    line = await connect()
    line.writer.write(b"com")
    await lines.wait_received(b"com")
    assert await line.ask(b"mit\n") == b""
    assert rule.hits == 1


async def test_an_answer_can_be_lost_by_silence(tcp: FaultProxy, lines: LineServer, connect):
    rule = tcp.add(LoseAnswer(hangs=True))
    line = await connect()
    asked = asyncio.create_task(line.ask(b"anyone?\n"))

    await rule.wait_done()

    assert lines.received == b"anyone?\n"
    assert not asked.done()
    assert tcp.open_connections == 1
    asked.cancel()


async def test_a_cut_request_reaches_the_upstream_in_part(tcp: FaultProxy, lines: LineServer, connect):
    tcp.add(CutRequest(after_bytes=3))
    assert await (await connect()).ask(b"abcdef\n") == b""
    await lines.wait_received(b"abc")


async def test_a_cut_answer_reaches_the_client_in_part(tcp: FaultProxy, lines: LineServer, connect):
    tcp.add(CutAnswer(after_bytes=3))
    assert await (await connect()).ask(b"abcdef\n") == b"abc"
    assert lines.received == b"abcdef\n"


async def test_refused_connections_are_reset_and_the_next_one_passes(
    tcp: FaultProxy, lines: LineServer, connect
):
    tcp.refuse(connections=2)
    assert [await (await connect()).ask(b"x\n") for _ in range(3)] == [b"", b"", b"x\n"]
    assert lines.received == b"x\n"


async def test_a_stopped_proxy_refuses_and_comes_back_on_its_port(tcp: FaultProxy, connect):
    line = await connect()
    assert await line.ask(b"x\n") == b"x\n"

    await tcp.stop()
    assert await line.ask(b"y\n") == b""
    with pytest.raises(ConnectionRefusedError):
        await connect()

    await tcp.start()
    assert await (await connect()).ask(b"z\n") == b"z\n"


async def test_cut_all_resets_open_connections_and_accepts_new_ones(tcp: FaultProxy, connect):
    line = await connect()
    assert await line.ask(b"x\n") == b"x\n"
    tcp.cut_all()
    assert await line.ask(b"y\n") == b""
    assert await (await connect()).ask(b"z\n") == b"z\n"


async def test_an_upstream_that_is_down_resets_the_client():
    async with FaultProxy(1) as proxy:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        with pytest.raises(ConnectionError):
            await reader.readexactly(1)
        writer.transport.abort()


async def test_a_closed_upstream_connection_closes_the_client(tcp: FaultProxy, web: WebServer):
    web.answer = b"bye, connection: close"
    async with FaultProxy(web.port) as proxy:
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 20) == web.answer
        writer.close()


# --- rules -------------------------------------------------------------------------------------------


async def test_a_rule_can_spare_the_first_requests_and_end_after_some(tcp: FaultProxy, connect):
    rule = tcp.add(LoseAnswer(), skip=2, times=2)
    answers = [await (await connect()).ask(b"x\n") for _ in range(6)]
    assert answers == [b"x\n", b"x\n", b"", b"", b"x\n", b"x\n"]
    assert rule.hits == 2


async def test_a_chance_is_decided_by_the_seed(lines: LineServer):
    async def run(seed: int) -> list[bytes]:
        answers = []
        async with FaultProxy(lines.port, rng=Random(seed)) as proxy:
            proxy.add(LoseAnswer(settle_s=0.001), times=None, chance=0.5)
            for _ in range(16):
                line = Line(*await asyncio.open_connection(proxy.host, proxy.port))
                answers.append(await line.ask(b"x\n"))
                line.writer.transport.abort()
        return answers

    first = await run(7)
    assert await run(7) == first
    assert set(first) == {b"", b"x\n"}


async def test_the_first_matching_rule_wins_and_clear_ends_all(tcp: FaultProxy, connect):
    first, second = tcp.add(LoseAnswer(), times=None), tcp.add(CutRequest(), times=None)
    assert await (await connect()).ask(b"x\n") == b""
    assert (first.hits, second.hits) == (1, 0)
    tcp.clear()
    assert await (await connect()).ask(b"x\n") == b"x\n"


@pytest.mark.parametrize("fault", [Delay(request_s=5), Delay(answer_s=5), Throttle(bytes_per_s=0.4)])
async def test_delays_run_on_the_injected_clock(lines: LineServer, manual_clock: ManualClock, fault):
    async with FaultProxy(lines.port, clock=manual_clock) as proxy:
        proxy.add(fault)
        line = Line(*await asyncio.open_connection(proxy.host, proxy.port))
        asked = asyncio.create_task(line.ask(b"x\n"))

        await manual_clock.wait_for_sleepers(1)
        assert lines.received == (b"x\n" if fault == Delay(answer_s=5) else b"")
        await manual_clock.advance(5)
        if isinstance(fault, Throttle):  # once more on the way back
            await manual_clock.wait_for_sleepers(1)
            await manual_clock.advance(5)

        assert await asked == b"x\n"
        line.writer.transport.abort()


async def test_an_answer_is_held_until_it_is_let_go(lines: LineServer, tcp: FaultProxy):
    released = asyncio.Event()
    tcp.add(Hold(released))
    line = Line(*await asyncio.open_connection(tcp.host, tcp.port))
    asked = asyncio.create_task(line.ask(b"x\n"))
    await lines.wait_received(b"x\n")
    assert not asked.done()

    released.set()

    assert await asked == b"x\n"
    line.writer.transport.abort()


@pytest.mark.parametrize("fault", [Respond(503), ReplaceAnswer(504)])
async def test_only_an_http_proxy_can_answer_by_itself(tcp: FaultProxy, fault):
    with pytest.raises(BadInput, match="HttpWire"):
        tcp.add(fault)


in_all_shapes = pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end",
    ],
    ids=["length", "no body", "chunked", "until close"],
)


# --- HTTP --------------------------------------------------------------------------------------------


async def test_http_requests_pass_on_one_kept_connection(http: FaultProxy, client: httpx.AsyncClient):
    assert [(await client.get(f"/{i}")).text for i in range(3)] == ["/0", "/1", "/2"]
    assert (await client.head("/x")).status_code == 200
    assert (await client.post("/y", content=b"z" * 100_000)).text == "/y"
    assert http.open_connections == 1


async def test_503_never_reaches_the_upstream_and_keeps_the_connection(http, client, web: WebServer):
    http.add(Respond(503, b"later", (("retry-after", "1"),)), when=http_request("POST", "/v1/"))
    assert (await client.get("/v1/x")).status_code == 200

    refused = await client.post("/v1/x", content=b"body")
    assert (refused.status_code, refused.text, refused.headers["retry-after"]) == (503, "later", "1")

    assert (await client.post("/v1/x", content=b"body")).status_code == 200
    assert web.requests == ["GET /v1/x", "POST /v1/x"]
    assert http.open_connections == 1


@in_all_shapes
async def test_a_lost_http_answer_was_applied_whatever_its_shape(http, client, web: WebServer, answer: bytes):
    web.answer = answer
    rule = http.lose_answer_after(http_request("POST", "/commit"))

    with pytest.raises(httpx.TransportError):
        await client.post("/commit", content=b"change")

    assert web.requests == ["POST /commit"]
    await asyncio.wait_for(rule.wait_done(), 20)
    assert (await client.get("/next")).is_success


async def test_an_answer_can_be_lost_by_a_polite_end(http, client, web: WebServer):
    http.add(LoseAnswer(is_polite=True))

    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        await client.post("/commit", content=b"change")

    assert web.requests == ["POST /commit"]
    assert (await client.get("/next")).is_success


@in_all_shapes
async def test_a_replaced_http_answer_was_applied_whatever_its_shape(http, client, web, answer: bytes):
    web.answer = answer
    rule = http.add(ReplaceAnswer(504, b"unknown", (("retry-after", "1"),)), when=http_request("POST"))

    got = await client.post("/commit", content=b"change")

    assert (got.status_code, got.text, got.headers["retry-after"]) == (504, "unknown", "1")
    assert web.requests == ["POST /commit"]
    assert rule.hits == 1
    assert (await client.get("/next")).is_success


async def test_a_replaced_answer_keeps_the_connection(http, client):
    http.add(ReplaceAnswer(504))

    assert (await client.post("/commit", content=b"change")).status_code == 504
    assert (await client.get("/next")).text == "/next"
    assert http.open_connections == 1


async def test_an_http_answer_can_be_cut_in_its_body(http, client):
    http.add(CutAnswer(after_bytes=45))
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/a-long-path-that-comes-back-as-the-body")


async def test_the_proxied_url_keeps_account_path_and_query():
    url = "postgresql://me:pw@127.0.0.1:5432/db?schema=a"
    async with FaultProxy.to_url(url) as proxy:
        assert proxy.url == f"postgresql://me:pw@127.0.0.1:{proxy.port}/db?schema=a"


async def test_the_fixture_makes_proxies(fault_proxy, web: WebServer):
    proxy = await fault_proxy(f"http://127.0.0.1:{web.port}")
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{proxy.url}/here")).text == "/here"
