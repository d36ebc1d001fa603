"""Where a request ends and when its answer is complete, for the protocols the fault proxy understands.

A maintainer must not break: bytes are only grouped here, never changed. What a wire yields, joined, is
what the client sent.
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct


class Piece(Struct, frozen=True):
    """Bytes to forward, with what is known of the request that they belong to."""

    fresh: bytes
    request: bytes
    """The whole request so far; equals `fresh` on wires that wait for complete requests."""
    is_new: bool = True
    """First piece of its request."""
    method: str = ""
    path: str = ""
    statements: tuple[str, ...] = ()


class Wire(Protocol):
    """The state of one connection as seen by the proxy."""

    knows_answers: bool
    """`feed_server` tells when an answer is complete. Otherwise silence has to tell."""

    def feed_client(self, data: bytes) -> Iterator[Piece]:
        """Take bytes of the client and yield what can be forwarded."""
        ...

    def feed_server(self, data: bytes) -> bool:
        """Take bytes of the upstream; true when an answer is complete with them."""
        ...


class TcpWire:
    """Any protocol. A request is whatever the client sends until the upstream sends something."""

    knows_answers = False

    def __init__(self) -> None:
        self._request = b""

    def feed_client(self, data: bytes) -> Iterator[Piece]:
        is_new = not self._request
        self._request += data
        yield Piece(data, self._request, is_new=is_new)

    def feed_server(self, data: bytes) -> bool:
        self._request = b""
        return False


class HttpWire:
    """HTTP/1.1 with keep-alive. Requests are held until they are complete."""

    knows_answers = True

    def __init__(self) -> None:
        self._requests = bytearray()
        self._answers = bytearray()
        self._methods: deque[str] = deque()

    def feed_client(self, data: bytes) -> Iterator[Piece]:
        self._requests += data
        while (end := _http_end(self._requests, has_body_by_default=False)) is not None:
            message = bytes(self._requests[:end])
            del self._requests[:end]
            method, path, _ = message.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            self._methods.append(method)
            yield Piece(message, message, method=method, path=path)

    def feed_server(self, data: bytes) -> bool:
        self._answers += data
        is_complete = False
        while self._methods and (status := re.match(rb"HTTP/1\.[01] (\d{3})", self._answers)):
            code = int(status.group(1))
            is_interim = 100 <= code < 200 and code != 101
            is_bodiless = is_interim or code in {101, 204, 304} or self._methods[0] == "HEAD"
            end = _http_end(self._answers, has_body_by_default=True, is_bodiless=is_bodiless)
            if end is None:
                break
            del self._answers[:end]
            if not is_interim:
                self._methods.popleft()
                is_complete = True
        return is_complete


def _http_end(buffer: bytearray, *, has_body_by_default: bool, is_bodiless: bool = False) -> int | None:
    """Where the first message of the buffer ends, or `None` when it is not complete yet."""
    head_end = buffer.find(b"\r\n\r\n")
    if head_end < 0:
        return None
    body = head_end + 4
    if is_bodiless:
        return body
    head = bytes(buffer[:body]).lower()
    if re.search(rb"\r\ntransfer-encoding:[^\r]*chunked", head):
        return _chunks_end(buffer, body)
    if length := re.search(rb"\r\ncontent-length:\s*(\d+)", head):
        end = body + int(length.group(1))
        return end if len(buffer) >= end else None
    # An answer without a length lasts until its connection closes.
    return None if has_body_by_default else body


def _chunks_end(buffer: bytearray, start: int) -> int | None:
    at = start
    while (line_end := buffer.find(b"\r\n", at)) >= 0:
        size = int(bytes(buffer[at:line_end]).split(b";")[0], 16)
        if size:
            at = line_end + 2 + size + 2
            continue
        # Trailer lines may follow the last chunk; an empty line ends the message.
        end = buffer.find(b"\r\n\r\n", line_end)
        return None if end < 0 else end + 4
    return None


class PostgresWire:
    """The PostgreSQL protocol, version 3, without TLS. Requests are held until the client wants an answer.

    Knows which statement a request executes, also when it was prepared before: drivers send the text
    once and then only its name.
    """

    knows_answers = True

    _PLAIN_STARTUPS = frozenset({80877103, 80877104})  # SSLRequest, GSSENCRequest: answered by one byte
    _WANTS_ANSWER = frozenset(b"QSHXpdcfF")

    def __init__(self) -> None:
        self._client = bytearray()
        self._server = bytearray()
        self._group = bytearray()
        self._executed: list[str] = []
        self._prepared: dict[bytes, str] = {}
        self._bound: dict[bytes, str] = {}
        self._has_started = False
        self._awaits_one_byte = False
        self._is_opaque = False

    def feed_client(self, data: bytes) -> Iterator[Piece]:
        if self._is_opaque:
            yield Piece(data, data)
            return
        self._client += data
        while not self._has_started and (message := _take(self._client, type_bytes=0)):
            code = int.from_bytes(message[4:8], "big")
            self._awaits_one_byte = code in self._PLAIN_STARTUPS
            self._has_started = not self._awaits_one_byte
            yield Piece(message, message)
        while self._has_started and (message := _take(self._client, type_bytes=1)):
            self._group += message
            self._note(message)
            if message[0] in self._WANTS_ANSWER:
                request = bytes(self._group)
                yield Piece(request, request, statements=tuple(self._executed))
                self._group.clear()
                self._executed.clear()

    def feed_server(self, data: bytes) -> bool:
        if self._is_opaque:
            return False
        self._server += data
        if self._awaits_one_byte and self._server:
            self._awaits_one_byte = False
            self._is_opaque = self._server[0:1] != b"N"  # encrypted from here on
            del self._server[0]
            return True
        is_complete = False
        while message := _take(self._server, type_bytes=1):
            is_complete |= message[0:1] == b"Z"  # ReadyForQuery: the transaction, if implicit, is over
        return is_complete

    def _note(self, message: bytes) -> None:
        kind, fields = message[0:1], message[5:].split(b"\0", 2)
        if kind == b"Q":
            self._executed.append(fields[0].decode("utf-8", "replace"))
        elif kind == b"P":
            self._prepared[fields[0]] = fields[1].decode("utf-8", "replace")
        elif kind == b"B":
            self._bound[fields[0]] = self._prepared.get(fields[1], "")
        elif kind == b"E":
            self._executed.append(self._bound.get(fields[0], ""))


def _take(buffer: bytearray, *, type_bytes: int) -> bytes:
    """Remove one complete length-prefixed message from the buffer; empty when there is none."""
    if len(buffer) < type_bytes + 4:
        return b""
    end = type_bytes + int.from_bytes(buffer[type_bytes : type_bytes + 4], "big")
    if len(buffer) < end:
        return b""
    message = bytes(buffer[:end])
    del buffer[:end]
    return message
