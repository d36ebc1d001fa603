"""A TCP proxy between a client and a real server that breaks connections by rule.

    async with FaultProxy.to_url("postgresql://…", wire=PostgresWire) as proxy:
        rule = proxy.add(LoseAnswer(), when=executes("UPDATE refs"))
        … let the code under test use proxy.url …

A maintainer must not break: without rules it is transparent, byte for byte, in both directions; and when
it is closed no task and no socket of it is left.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import BadInput
from cynosure.testing.harness.faults import (
    CutAnswer,
    CutRequest,
    Delay,
    Fault,
    Hold,
    LoseAnswer,
    ReplaceAnswer,
    Request,
    Respond,
    Rule,
    Throttle,
    always,
)
from cynosure.testing.harness.ports import ReservedPort
from cynosure.testing.harness.wires import HttpWire, Piece, PostgresWire, TcpWire, Wire

_DEFAULT_PORTS = {"http": 80, "postgresql": 5432, "postgres": 5432}


class FaultProxy:
    """Listens on a port of its own that stays the same while the proxy is down."""

    def __init__(
        self,
        upstream_port: int,
        *,
        upstream_host: str = "127.0.0.1",
        wire: Callable[[], Wire] = TcpWire,
        rng: Random | None = None,
        clock: Clock | None = None,
        url: str = "",
    ) -> None:
        self.host = "127.0.0.1"
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self._upstream = (upstream_host, upstream_port)
        self._wire = wire
        self._rng = rng or Random(0)
        self._clock: Clock = clock or SystemClock()
        self._url = url
        self._rules: list[Rule] = []
        self._refuse_next = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepted = 0

    @classmethod
    def to_url(cls, url: str, *, rng: Random | None = None, clock: Clock | None = None) -> Self:
        """In front of the server that this URL names; the scheme chooses the wire."""
        parts = urlsplit(url)
        wire: Callable[[], Wire] = TcpWire
        if parts.scheme == "http":
            wire = HttpWire
        elif parts.scheme in {"postgresql", "postgres"}:
            wire = PostgresWire
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        if port is None:
            raise BadInput("The URL names no port", field="url", fix="Name the port.", scheme=parts.scheme)
        return cls(
            port, upstream_host=parts.hostname or "127.0.0.1", wire=wire, rng=rng, clock=clock, url=url
        )

    @property
    def url(self) -> str:
        """The URL given to `to_url`, leading through this proxy."""
        parts = urlsplit(self._url)
        account = parts.netloc.rpartition("@")[0]
        place = f"{self.host}:{self.port}"
        return parts._replace(netloc=f"{account}@{place}" if account else place).geturl()

    @property
    def open_connections(self) -> int:
        """Connections that pass through now."""
        return len(self._connections)

    # --- rules ---------------------------------------------------------------------------------

    def add(
        self,
        fault: Fault,
        *,
        when: Callable[[Request], bool] = always,
        skip: int = 0,
        times: int | None = 1,
        chance: float = 1.0,
    ) -> Rule:
        """Apply a fault to matching requests: not to the first `skip`, then to `times` (`None`: all) of them.

        With `chance` below 1 each match is decided by the proxy's seeded randomness. The first rule
        that applies wins.
        """
        if isinstance(fault, Respond | ReplaceAnswer) and self._wire is not HttpWire:
            raise BadInput(
                "The proxy can only answer by itself in HTTP", field="fault", fix="Use the wire HttpWire."
            )
        rule = Rule(fault, when, skip=skip, times=times, chance=chance, rng=self._rng)
        self._rules.append(rule)
        return rule

    def lose_answer_after(self, when: Callable[[Request], bool]) -> Rule:
        """The next matching request is applied by the upstream and its answer never arrives."""
        return self.add(LoseAnswer(), when=when)

    def clear(self) -> None:
        """Forget all rules; later requests pass."""
        self._rules.clear()
        self._refuse_next = 0

    def refuse(self, connections: int) -> None:
        """Reset the next connections as soon as they are made."""
        self._refuse_next = connections

    def cut_all(self) -> None:
        """Reset every open connection now."""
        for connection in list(self._connections.values()):
            connection.cut()

    # --- life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to listen; after `stop`, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, self.host, self.port)

    async def stop(self) -> None:
        """Go down: new connections are refused by the system, open ones are reset."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self.cut_all()
            await server.wait_closed()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self._reserved.release()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        number, self._accepted = self._accepted, self._accepted + 1
        try:
            if self._refuse_next:
                self._refuse_next -= 1
                _reset(writer)
                return
            try:
                upstream = await asyncio.open_connection(*self._upstream)
            except OSError:
                _reset(writer)
                return
            connection = _Connection(
                number, (reader, writer), upstream, self._wire(), self._rules, self._clock
            )
            self._connections[number] = connection
            if self._server is None:  # went down while we connected
                connection.cut()
                return
            await connection.run()
        finally:
            self._connections.pop(number, None)
            self._tasks.discard(task)


class _Connection:
    """One client's connection and its twin to the upstream."""

    def __init__(
        self,
        number: int,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        wire: Wire,
        rules: list[Rule],
        clock: Clock,
    ) -> None:
        self._number = number
        self._from_client, self._to_client = client
        self._from_upstream, self._to_upstream = upstream
        self._wire = wire
        self._rules = rules
        self._clock = clock
        self._requests = 0
        self._rule: Rule | None = None
        """The rule that governs the current request and its answer."""
        self._answer_bytes = 0
        self._is_silent = False
        """An answer was lost and the client is left waiting: nothing reaches it any more."""
        self._pumps: list[asyncio.Task[None]] = []
        self._is_cut = False

    async def run(self) -> None:
        self._pumps = [asyncio.create_task(self._pump_requests()), asyncio.create_task(self._pump_answers())]
        try:
            await asyncio.gather(*self._pumps)
        except (OSError, _Cut):
            pass  # either side is gone; the other must learn it
        except asyncio.CancelledError:
            if not self._is_cut:
                raise
        finally:
            self.cut()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    def cut(self) -> None:
        self._is_cut = True
        # Also one that holds an answer back: nobody is there any more to get it.
        for pump in self._pumps:
            pump.cancel()
        _reset(self._to_client)
        _reset(self._to_upstream)

    async def _pump_requests(self) -> None:
        while data := await self._from_client.read(65_536):
            for piece in self._wire.feed_client(data):
                await self._forward(piece)
        # Half-closed: the answer may still be on its way.
        if self._to_upstream.can_write_eof():
            self._to_upstream.write_eof()

    async def _forward(self, piece: Piece) -> None:
        if piece.is_new:
            self._rule, self._answer_bytes = None, 0
            self._requests += 1
        if self._rule is None:
            request = Request(
                self._number, self._requests - 1, piece.request, piece.method, piece.path, piece.statements
            )
            self._rule = next((rule for rule in self._rules if rule.applies(request)), None)

        match self._rule.fault if self._rule else None:
            case Respond() as respond:
                await self._send(self._to_client, _http_answer(respond))
                self._wire.feed_server(_http_answer(respond))
                self._note_done()
                return
            case CutRequest(after_bytes=count):
                await self._send(self._to_upstream, piece.fresh[:count])
                self._to_upstream.close()  # not a reset: the upstream shall read what was forwarded
                self._note_done()
                raise _Cut
            case Delay(request_s=seconds) if seconds:
                await self._clock.sleep(seconds)
            case Throttle(bytes_per_s=speed):
                await self._clock.sleep(len(piece.fresh) / speed)
        await self._send(self._to_upstream, piece.fresh)

    async def _pump_answers(self) -> None:
        while data := await self._read_answer():
            is_complete = self._wire.feed_server(data)
            match self._rule.fault if self._rule else None:
                case _ if self._is_silent:
                    continue
                case LoseAnswer() as loss:
                    self._answer_bytes += len(data)
                    if is_complete:
                        self._lose(loss)
                    continue
                case ReplaceAnswer() as other:
                    self._answer_bytes += len(data)
                    if is_complete:
                        await self._replace(other)
                    continue
                case CutAnswer(after_bytes=count):
                    left = count - self._answer_bytes
                    self._answer_bytes += len(data)
                    if left <= len(data):
                        await self._send(self._to_client, data[:left])
                        self._to_client.close()  # not a reset: the client shall read what was delivered
                        self._note_done()
                        raise _Cut
                case Delay(answer_s=seconds) if seconds:
                    await self._clock.sleep(seconds)
                case Hold(until=released):
                    await released.wait()
                case Throttle(bytes_per_s=speed):
                    await self._clock.sleep(len(data) / speed)
            await self._send(self._to_client, data)
            if is_complete or not self._wire.knows_answers:
                self._note_done()
        # An answer that ends with its connection is complete now.
        fault = self._rule.fault if self._rule else None
        if isinstance(fault, LoseAnswer):
            self._lose(fault)
            return
        if isinstance(fault, ReplaceAnswer) and self._answer_bytes:
            await self._replace(fault)
        if self._to_client.can_write_eof():
            self._to_client.write_eof()

    async def _read_answer(self) -> bytes:
        fault = self._rule.fault if self._rule else None
        if not isinstance(fault, LoseAnswer) or self._wire.knows_answers or not self._answer_bytes:
            return await self._from_upstream.read(65_536)
        try:
            return await asyncio.wait_for(self._from_upstream.read(65_536), fault.settle_s)
        except TimeoutError:
            self._lose(fault)
            return await self._from_upstream.read(65_536)

    def _lose(self, loss: LoseAnswer) -> None:
        self._note_done()
        if loss.is_polite:
            self._to_client.close()
        if not loss.hangs:
            raise _Cut
        self._is_silent = True

    async def _replace(self, other: ReplaceAnswer) -> None:
        self._answer_bytes = 0
        await self._send(self._to_client, _http_answer(other))
        self._note_done()

    def _note_done(self) -> None:
        if self._rule is not None:
            self._rule.note_done()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()


class _Cut(Exception):
    """Ends a connection from inside a pump."""


def _http_answer(respond: Respond | ReplaceAnswer) -> bytes:
    headers = [*respond.headers, ("content-length", str(len(respond.body)))]
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {respond.status} Injected\r\n{lines}\r\n".encode() + respond.body


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close at once, so that the other side sees a broken connection and not a polite end."""
    transport = writer.transport
    if transport.is_closing():
        return
    raw = writer.get_extra_info("socket")
    if raw is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
