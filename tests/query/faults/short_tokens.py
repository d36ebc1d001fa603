"""A token service before a store's own: it remembers the sessions that it gave, and can make them short.

Stores give sessions of 15 minutes at least. Here they say that they end sooner, and `is_ended` tells whoever
stands before the store that they have: so a scan meets within seconds what else takes a quarter of an hour.
"""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

from cynosure.testing.harness.faults import Request

_KEY = re.compile(rb"Credential=([^/\s]+)/")
_FIELDS = {name: re.compile(rf"<{name}>([^<]+)</{name}>") for name in ("AccessKeyId", "SecretAccessKey")}
_TOKEN = re.compile(r"<SessionToken>([^<]+)</SessionToken>")
_EXPIRATION = re.compile(r"(<Expiration>)[^<]+(</Expiration>)")
LIFE_S = 10.0
EXPIRED = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code></Error>'


def key_of(request: Request) -> str:
    """The key that a request to the store is signed with."""
    found = _KEY.search(request.data.partition(b"\r\n\r\n")[0])
    return found[1].decode() if found else ""


class Session(NamedTuple):
    """What a client was given."""

    key_id: str
    secret: str
    token: str
    ends_s: float
    """On the monotonic clock."""


class ShortTokens(ThreadingHTTPServer):
    """The service."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.upstream = urlsplit(upstream)
        self.life_s = LIFE_S
        """Of sessions that are given from now on."""
        self.is_refusing = False
        self.sessions: list[Session] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def is_ended(self, request: Request) -> bool:
        """Whether a request to the store comes with a session that has ended."""
        key_id = key_of(request)
        ends_s = [each.ends_s for each in self.sessions if each.key_id == key_id]
        return bool(ends_s) and time.monotonic() >= max(ends_s)


class _Forward(BaseHTTPRequestHandler):
    server: ShortTokens

    def do_POST(self) -> None:
        server = self.server
        if server.is_refusing:
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        body = self.rfile.read(int(self.headers["content-length"]))
        upstream = HTTPConnection(server.upstream.hostname or "", server.upstream.port, timeout=30)
        try:
            # With the host that was signed.
            upstream.request("POST", self.path, body, dict(self.headers))
            answer = upstream.getresponse()
            text = answer.read().decode()
        finally:
            upstream.close()
        if answer.status == 200:
            ends = datetime.now(UTC) + timedelta(seconds=server.life_s)
            text = _EXPIRATION.sub(rf"\g<1>{ends:%Y-%m-%dT%H:%M:%S.%fZ}\g<2>", text)
            key_id, secret = (_find(pattern, text) for pattern in _FIELDS.values())
            server.sessions.append(
                Session(key_id, secret, _find(_TOKEN, text), time.monotonic() + server.life_s)
            )
        self._answer(answer.status, text.encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _find(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    assert found is not None
    return found[1]


@contextmanager
def run_short_tokens(upstream: str) -> Iterator[ShortTokens]:
    """While it is open, sessions can be had from it."""
    server = ShortTokens(upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
