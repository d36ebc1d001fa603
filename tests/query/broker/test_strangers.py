"""Who has no good token gets nothing: no task, no answer, no memory (I105, I106)."""

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.query.broker import broker as broker_module
from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.broker.certificate import make_tls
from cynosure.query.broker.tokens import make_token
from cynosure.query.stream.frames import ENCODER, Beat, Done, Hello
from cynosure.query.stream.framing import MAX_HELLO_BYTES, encode_frame
from cynosure.query.worker.stream_client import BrokerPlace, open_stream
from cynosure.testing.small_broker import HeldScan, SmallBroker

pytestmark = pytest.mark.anyio


def make_hello(query: BrokeredQuery, **changes: object) -> Hello:
    hello = Hello("q", "f0", query.tokens.get("f0", ""), attempt_id=1, attempt=0, worker="host/1")
    return msgspec.structs.replace(hello, **changes)


async def connect(query: BrokeredQuery) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = query.address.rpartition(":")
    context = ssl.create_default_context(cadata=query.ca_pem)
    return await asyncio.open_connection(host, int(port), ssl=context)


async def all_bytes_after(query: BrokeredQuery, sent: bytes) -> bytes:
    """What a stranger hears until the broker hangs up."""
    reader, writer = await connect(query)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except (ConnectionError, ssl.SSLError):
        return b""
    finally:
        writer.transport.abort()


async def test_a_wrong_token_hears_nothing():
    async with SmallBroker() as small:
        query = small.open("q", ["f0", "f1"])
        small.open("other", ["f0"])
        others = small.broker._queries["other"].tokens["f0"]
        hellos = [
            make_hello(query, token=""),
            make_hello(query, token=make_token()[0]),
            make_hello(query, token=query.tokens["f0"][:-1]),
            make_hello(query, token=query.tokens["f1"]),
            make_hello(query, token=others),
            make_hello(query, query_id="other"),
            make_hello(query, query_id="nobody's"),
            make_hello(query, fragment_id="f1"),
            make_hello(query, fragment_id="f9"),
        ]

        heard = [await all_bytes_after(query, encode_frame(hello)) for hello in hellos]

        assert heard == [b""] * len(hellos)
        assert small.broker.workers() == []
        # And the good one is still good.
        assert await all_bytes_after(query, encode_frame(make_hello(query)) + b"\0\0\0\0") != b""


async def test_a_token_of_an_ended_statement_hears_nothing():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        hello = make_hello(query)
        query.close()
        assert await all_bytes_after(query, encode_frame(hello)) == b""
        # Not even when a statement of this id runs again.
        again = small.open("q", ["f0"])
        assert await all_bytes_after(again, encode_frame(hello)) == b""


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 4,
        struct.pack(">I", MAX_HELLO_BYTES + 1) + b"x" * 10,
        struct.pack(">I", 0),
        struct.pack(">I", 5) + b"\xc1\xc1\xc1\xc1\xc1",
        struct.pack(">I", 3) + b"\x92" * 3,
        encode_frame(Beat()),
        encode_frame(Done(1, 1, 1, 1)),
        struct.pack(">I", 8) + ENCODER.encode({"type": "Hello"})[:8],
    ],
    ids=[
        "http",
        "all-ones",
        "too-long",
        "empty",
        "no-msgpack",
        "cut",
        "beat-first",
        "done-first",
        "no-fields",
    ],
)
async def test_garbage_ends_the_connection_and_nothing_else(sent):
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        assert await all_bytes_after(query, sent) == b""
        assert await small.read(query, "f0") == [0, 0, 0]


async def test_garbage_in_a_good_stream_fails_that_attempt_only():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"], retries=5)
        for garbage in (b"\xff\xff\xff\xff", struct.pack(">I", 3) + b"abc", encode_frame(make_hello(query))):
            await all_bytes_after(query, encode_frame(make_hello(query)) + garbage)
        await small.wait_for(lambda: len(small.reports) == 3)
        assert not any(report.is_success for report in small.reports)
        assert query.failed.done()


async def test_whoever_speaks_no_tls_is_hung_up_on():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        host, _, port = query.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(encode_frame(make_hello(query)))
        with suppress(ConnectionError):
            # A TLS alert at most: nothing that is ours.
            assert len(await asyncio.wait_for(reader.read(), 30)) <= 7
        writer.close()
        assert await small.read(query, "f0") == [0, 0, 0]


async def test_older_versions_of_tls_are_refused():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        host, _, port = query.address.rpartition(":")
        context = ssl.create_default_context(cadata=query.ca_pem)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(host, int(port), ssl=context)


async def test_a_slow_hello_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(broker_module, "HELLO_S", 0.5)
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        frame = encode_frame(make_hello(query))

        async def drip(writer: asyncio.StreamWriter) -> None:
            for byte in frame:
                writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        # On a slow machine the time may be over before hands were shaken.
        with suppress(ConnectionError, ssl.SSLError):
            reader, writer = await connect(query)
            dripping = asyncio.create_task(drip(writer))
            try:
                assert await asyncio.wait_for(reader.read(), 30) == b""
            finally:
                dripping.cancel()
                writer.transport.abort()
        # Nor is a handshake that never begins.
        host, _, port = query.address.rpartition(":")
        silent = socket.create_connection((host, int(port)))
        await small.wait_for(lambda: small.broker._connections)
        await small.wait_for(lambda: not small.broker._connections)
        silent.close()


async def test_a_crowd_of_strangers_keeps_nobody_out(monkeypatch):
    monkeypatch.setattr(broker_module, "MAX_STRANGERS", 8)
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        host, _, port = query.address.rpartition(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(40)]
        await small.wait_for(lambda: len(small.broker._strangers) == 8)

        assert await small.read(query, "f0") == [0, 0, 0]

        assert len(small.broker._strangers) <= 8
        for each in crowd:
            each.close()


async def test_a_scan_is_no_stranger(monkeypatch):
    monkeypatch.setattr(broker_module, "MAX_STRANGERS", 2)
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        held = HeldScan()
        running = asyncio.create_task(small.read(query, "f0", scan=held))
        await held.wait_reached()
        host, _, port = query.address.rpartition(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(10)]
        await small.wait_for(lambda: len(small.broker._strangers) == 2)

        held.let_go(3)

        assert await running == [0, 0, 0]
        for each in crowd:
            each.close()


async def test_a_worker_believes_the_authority_of_its_order_only():
    async with SmallBroker() as small:
        query = small.open("q", ["f0"])
        other = make_tls(frozenset({"127.0.0.1"}), SystemClock()).ca_pem
        with pytest.raises(CynosureError) as raised:
            await asyncio.to_thread(open_stream, BrokerPlace(query.address, other), make_hello(query))
        assert type(raised.value).__name__ == "NotAuthenticated"
        # Nor a good certificate under another name.
        host, _, port = query.address.rpartition(":")
        assert host == "127.0.0.1"
        place = BrokerPlace(f"localhost:{port}", query.ca_pem)
        with pytest.raises(CynosureError) as raised:
            await asyncio.to_thread(open_stream, place, make_hello(query))
        assert type(raised.value).__name__ == "NotAuthenticated"


async def test_what_is_kept_and_shown_has_no_secret():
    async with SmallBroker(heartbeat=timedelta(seconds=5)) as small:
        query = small.open("q", ["f0"])
        token = query.tokens["f0"]
        texts = [
            repr(make_hello(query)),
            repr(query.assignment("f0", 5.0)),
            repr(small.broker.runtime.tasks()),
        ]
        for secret in (token, "the-credential", "filter-literal"):
            assert not any(secret in text for text in texts)
        kept = query._fragments["f0"].digest
        assert token.encode() not in kept
