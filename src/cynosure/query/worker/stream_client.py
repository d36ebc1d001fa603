"""The worker's end of a fragment's stream: a blocking opening, then a thread that beats and listens.

TLS connections are not made for two threads at once. So the scanning thread opens the stream, and from then
on only the other thread reads and writes; the last message is handed to it.

A maintainer must not break: every error has constant text; `close` leaves neither thread nor socket behind;
and the broker's certificate is believed because of the authority in the fragment's order, and nothing else.
"""

import selectors
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import Final

from msgspec import Struct

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import BadInput, CynosureError, Forbidden, NotAuthenticated, Unavailable
from cynosure.query.errors import QueryCancelled
from cynosure.query.scan_task import Credentials, InlineTask, ScanTask
from cynosure.query.stream.frames import (
    Assigned,
    AssignedRows,
    Done,
    Down,
    Failed,
    Hello,
    Left,
    NewCredentials,
    Probe,
    Refused,
    Stop,
    Up,
)
from cynosure.query.stream.framing import FrameBuffer, encode_frame
from cynosure.query.worker.watch import StreamWatch

CONNECT_S: Final = 10.0
"""How long a broker is looked for."""
ANSWER_S: Final = 30.0
"""How long an answer to a hello may take, and any write."""
_PAUSE_S: Final = 0.2
_CLOSE_S: Final = 2.0
_CHUNK: Final = 64 * 2**10
_READ: Final = selectors.EVENT_READ


class BrokerPlace(Struct, frozen=True):
    """Where the broker is, and how it is known."""

    address: str
    """`HOST:PORT`; of IPv6, `[HOST]:PORT`."""
    ca_pem: str

    @property
    def host_and_port(self) -> tuple[str, int]:
        """Apart."""
        host, _, port = self.address.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)


class FragmentStream:
    """One attempt at a fragment. Made by `open_stream`; `close` it in any case."""

    def __init__(
        self,
        connection: ssl.SSLSocket,
        assigned: Assigned | AssignedRows,
        buffer: FrameBuffer,
        early: list[Down],
        clock: Clock,
    ) -> None:
        self.task: ScanTask | InlineTask = assigned.task
        self.traceparent = assigned.traceparent
        """Of the statement; see `Assigned`."""
        first = assigned.task.credentials if isinstance(assigned.task, ScanTask) else Credentials()
        self.watch = StreamWatch(first, clock, self._wake)
        self._beat_s = assigned.beat_s
        self._clock = clock
        self._connection = connection
        self._buffer = buffer
        self._last: Done | Left | Failed | None = None
        self._is_over = False
        self._is_told = False
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        connection.setblocking(False)
        for message in early:
            self._hear(message)
        self._thread = threading.Thread(target=self._talk, name="cynosure-beat", daemon=True)
        self._thread.start()

    def tell_last(self, message: Done | Left | Failed) -> None:
        """Say how it ended, and wait until the broker has heard it.

        Where it could not be said: why nobody wants the scan any more, or `Unavailable`.
        """
        self._last = message
        self._finish()
        if not self._is_told:
            self.watch.check()
            raise _gone()

    def close(self) -> None:
        """End it. Twice is fine."""
        self._finish()
        self._connection.close()
        self._ours.close()
        self._theirs.close()

    def _finish(self) -> None:
        self._is_over = True
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        # Full means that the other side is being woken already; closed, that there is nobody to wake.
        with suppress(OSError):
            self._ours.send(b"!")

    # The thread that talks

    def _talk(self) -> None:
        try:
            while not self._is_over:
                self._send(self.watch.beat())
                self._listen(self._beat_s)
            if self._last is not None:
                self._send(self._last)
                self._is_told = True
                self._await_end()
        except (OSError, Unavailable):
            self.watch.end(_gone())
        except CynosureError as error:
            self.watch.end(error)
        finally:
            # Whatever ended this thread ends the scan: nobody would hear of it any more.
            if not self._is_told:
                self.watch.end(_gone())

    def _listen(self, seconds: float) -> None:
        """What comes, until it is time for the next beat."""
        until_s = self._clock.monotonic_s() + seconds
        while not self._is_over and (left_s := until_s - self._clock.monotonic_s()) > 0:
            ready = _wait({self._connection: _READ, self._theirs: _READ}, left_s)
            if self._connection in ready:
                for message in self._buffer.feed(self._receive()):
                    self._hear(message)
            if self._theirs in ready:
                self._theirs.recv(_CHUNK)
                # A probe was answered, or it is over.
                return

    def _receive(self) -> bytes:
        """All that is there. TLS may have read more from the socket than it gave: nothing may stay."""
        data = b""
        while True:
            try:
                chunk = self._connection.recv(_CHUNK)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return data
            if not chunk:
                if data:
                    # Messages first, for one of them may say why.
                    for message in self._buffer.feed(data):
                        self._hear(message)
                raise _gone()
            data += chunk

    def _hear(self, message: Down) -> None:
        match message:
            case NewCredentials(credentials):
                self.watch.offer(credentials)
            case Probe(number):
                self.watch.ask(number)
            case Stop() | Refused():
                self.watch.end(QueryCancelled("Nobody wants this scan any more"))
            case Assigned() | AssignedRows():
                raise BadInput(
                    "A scan was told to begin twice",
                    field="frame",
                    fix="Run the same version of Cynosure in the gateway and on the executors.",
                )

    def _send(self, message: Up) -> None:
        data = memoryview(encode_frame(message))
        until_s = self._clock.monotonic_s() + ANSWER_S
        while data:
            try:
                data = data[self._connection.send(data) :]
            except ssl.SSLWantWriteError:
                self._wait_until(until_s, selectors.EVENT_WRITE)
            except ssl.SSLWantReadError:
                self._wait_until(until_s, _READ)

    def _await_end(self) -> None:
        """Until the broker hangs up: what was sent last is lost if this side does so before it was read."""
        until_s = self._clock.monotonic_s() + _CLOSE_S
        with suppress(OSError, Unavailable):
            while True:
                self._wait_until(until_s, _READ)
                self._receive()

    def _wait_until(self, until_s: float, event: int) -> None:
        if not _wait({self._connection: event}, until_s - self._clock.monotonic_s()):
            raise _gone()


def open_stream(place: BrokerPlace, hello: Hello, clock: Clock | None = None) -> FragmentStream:
    """Connect, say hello, get the task.

    `Unavailable`: no broker; `NotAuthenticated`: another one; `Forbidden`: it does not know the fragment;
    `QueryCancelled`: it does, and nobody wants it.
    """
    clock = clock or SystemClock()
    connection = _connect(place, clock)
    try:
        connection.settimeout(ANSWER_S)
        connection.sendall(encode_frame(hello))
        buffer = FrameBuffer()
        messages: list[Down] = []
        while not messages:
            chunk = connection.recv(_CHUNK)
            if not chunk:
                raise _unknown_here()
            messages = buffer.feed(chunk)
        first = messages[0]
        if isinstance(first, Assigned | AssignedRows):
            return FragmentStream(connection, first, buffer, messages[1:], clock)
    except (ConnectionError, ssl.SSLError):
        # Whoever is not known is hung up on.
        error: CynosureError = _unknown_here()
    except OSError:
        error = Unavailable("The gateway's broker does not answer", fix="Try again.")
    except CynosureError as known:
        error = known
    else:
        error = QueryCancelled("Nobody wants this scan any more")
    connection.close()
    raise error


def _connect(place: BrokerPlace, clock: Clock) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=place.ca_pem)
    host, port = place.host_and_port
    until_s = clock.monotonic_s() + CONNECT_S
    while True:
        left_s = until_s - clock.monotonic_s()
        try:
            plain = socket.create_connection((host, port), timeout=max(left_s, 0.1))
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return context.wrap_socket(plain, server_hostname=host)
            except BaseException:
                plain.close()
                raise
        except ssl.SSLCertVerificationError:
            break
        except OSError:
            if clock.monotonic_s() + _PAUSE_S >= until_s:
                raise Unavailable(
                    "No connection to the gateway's broker",
                    fix="Let executors reach query.broker.host and port of the gateway.",
                ) from None
            time.sleep(_PAUSE_S)
    raise NotAuthenticated("What answers at the broker's address is not the broker")


def _wait(sockets: dict[socket.socket, int], seconds: float) -> list[object]:
    """Those of which one can read, or write. Not `select`: it takes no more than a thousand open files."""
    with selectors.DefaultSelector() as selector:
        for each, event in sockets.items():
            selector.register(each, event)
        return [key.fileobj for key, _ in selector.select(max(seconds, 0.0))]


def _gone() -> Unavailable:
    return Unavailable("The gateway's broker is gone")


def _unknown_here() -> Forbidden:
    return Forbidden("The gateway's broker does not know this fragment")
