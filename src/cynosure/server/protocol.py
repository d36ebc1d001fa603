"""uvicorn's HTTP protocol with what it lacks: bounds on a request's head, and the peer's certificate.

uvicorn reads heads of any length for any time, and does not hand the peer's certificate on. Here a head
is bounded in bytes and seconds, and ASGI's `tls` extension is in the scope. uvicorn also sets a timer after
each answer and cancels it with the next request; here a connection has one that looks when it was last used.
And an answer that is there as a whole is sent as a whole (`asgi.SEND_WHOLE`), which ASGI sends in two parts
that are looked at header by header (by instructions, about a tenth of a cached answer).

A maintainer must not break: a request on a connection in use, whose head arrives whole, costs no timer; and
what is special about an answer is left to uvicorn.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from cynosure.api import asgi
from cynosure.api.errors import ErrorEnvelope, ErrorModel
from cynosure.server.corked import CorkedTransport
from cynosure.server.tls import PeerTls

MAX_HEAD_BYTES: Final = 64 * 2**10
"""Request line and headers. Tokens and long names fit many times over."""
HEAD_TIMEOUT_S: Final = 30.0
_CONTROLS: Final = bytes([*range(0x20), 0x7F])
_LEFT_TO_UVICORN: Final = frozenset({b"connection", b"transfer-encoding"})

_TOO_LONG: Final = msgspec.json.encode(
    ErrorEnvelope(
        ErrorModel(
            "Request line and headers are too long. Send less than 64 KiB of them.",
            "RequestHeaderFieldsTooLargeException",
            431,
        )
    )
)


class GuardedProtocol(HttpToolsProtocol):
    """One connection of a client."""

    head_timeout_s = HEAD_TIMEOUT_S
    _extensions: dict[str, Any] | None = None
    _is_in_head = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _idle_since_s = 0.0
    _corked: CorkedTransport
    _answering: RequestResponseCycle | None = None
    """The request that is worked on; others of the connection wait for its answer."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Remember what the TLS handshake, which is over by now, found out about the peer."""
        super().connection_made(transport)
        self._corked = CorkedTransport(transport, self.loop)
        self.transport = cast(asyncio.Transport, self._corked)
        connection = transport.get_extra_info("ssl_object")
        if connection is not None:
            self._extensions = {"tls": PeerTls(connection)}
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._stop_timer()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse, and look whether a head is still incomplete afterwards."""
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse_head()
            elif self._head_timer is None:
                self._start_timer()

    def on_message_begin(self) -> None:
        """A head begins: count its bytes, and give the request's scope the peer's certificate."""
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0
        if self._extensions is not None:
            self.scope["extensions"] = self._extensions

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._is_in_head = False
        if self._head_timer is not None:
            self._stop_timer()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        # A method of the connection: held by its own scope, the cycle would be left to the garbage collector.
        cast("dict[str, Any]", cycle.scope)[asgi.SEND_WHOLE] = self.send_whole
        super()._start_asgi_task(cycle, app)

    def send_whole(
        self, scope: asgi.Scope, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes
    ) -> bool:
        """See `asgi.SendWhole`. The headers must tell the body's length, or the status that there is none."""
        cycle = self._answering
        if cycle is None or cycle.scope is not scope or cycle.response_started or cycle.disconnected:
            return False
        if self.flow.write_paused or not _LEFT_TO_UVICORN.isdisjoint([name for name, _ in headers]):
            return False
        lines = [b"%b: %b" % header for header in (*cycle.default_headers, *headers)]
        if not cycle.keep_alive:
            lines.append(b"connection: close")
        head = b"\n".join(lines)
        # No control characters but the ends of lines put here: no header can bring another one along.
        if len(head.translate(None, _CONTROLS)) != len(head) - len(lines) + 1:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        cycle.message_event.set()
        self._corked.write_now(STATUS_LINE[status], head.replace(b"\n", b"\r\n"), b"\r\n\r\n", body)
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    def on_response_complete(self) -> None:
        """As uvicorn's, but for the timer: begin a request that came early, or wait for the next."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_since_s = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that nobody used for long enough; else look again when it may be."""
        self._idle_timer = None
        if self.transport.is_closing() or not self.cycle.response_complete:
            return  # The end of the answer sets the timer anew.
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._idle_timer = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        elif self._head_timer is None:
            # Otherwise the next head has begun, and its own time limit runs.
            self.transport.close()

    def _refuse_head(self) -> None:
        cycle: Any = self.cycle  # `None` before the first request, whatever its declared type says
        if cycle is None or cycle.response_complete:
            # Otherwise an earlier answer on this connection is half written; only cutting is safe.
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(_TOO_LONG), _TOO_LONG)
            )
        self.transport.close()

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
